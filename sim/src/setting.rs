//! The settings of a run as its results report them: path and hosts of the first flow.

use crate::plan::{Direction, Flow, Plan, Traffic};
use airmend_proto::link::ErrorModel;
use airmend_proto::tcp::{CongestionControl, Profile};
use std::time::Duration;

/// The settings that every result has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Setting {
    /// The agent of the first station on the path; none without a station.
    pub agent: Option<&'static str>,
    /// The sender's congestion control; `udp` of datagrams.
    pub cc: &'static str,
    /// `down` if the data leaves stations on their air side.
    pub direction: &'static str,
    /// The rate of the air hop in the direction of the data; of the last hop if there is no air
    /// hop. In bit/s.
    pub rate_bps: u64,
    /// One-way delay of all air hops.
    pub air_delay: Duration,
    /// One-way delay of all other hops.
    pub wired_delay: Duration,
    /// The error process of the air hop in the direction of the data.
    pub errors: ErrorModel,
    /// Application bytes of each bulk flow.
    pub bytes: Option<u64>,
    /// The number of flows.
    pub flows: usize,
    /// The upper bound of the goodput in the long run, in bit/s; `None` where flows take different
    /// paths. That of a run is [`Plan::bound_of_run`].
    pub bound_bps: Option<f64>,
}

impl Plan {
    /// The settings that results report.
    pub fn setting(&self) -> Setting {
        let Some(flow) = self.flows.first() else { return Setting::default() };
        let path: Vec<&Direction> = self.path(flow).collect();
        let air = path.iter().find(|direction| direction.air).or(path.last());
        let delay = |air: bool| {
            path.iter()
                .filter(|direction| direction.air == air)
                .map(|direction| direction.delay)
                .sum()
        };
        let station = flow.stations.first().map(|station| &self.stations[*station as usize]);
        let first = flow.stations.first().map(|station| self.hosts + station);
        let enters_from_air = path.iter().any(|hop| hop.air && Some(hop.to) == first);
        Setting {
            agent: station.map(|station| station.agent.name()),
            cc: match flow.traffic {
                Traffic::Datagrams { .. } => "udp",
                _ => cc(&flow.profiles[0]),
            },
            direction: if enters_from_air { "up" } else { "down" },
            rate_bps: air.map_or(0, |direction| direction.rate_bps),
            air_delay: delay(true),
            wired_delay: delay(false),
            errors: air.map_or(ErrorModel::None, |direction| direction.errors),
            bytes: match flow.traffic {
                Traffic::Bulk(bytes) => bytes,
                Traffic::Messages { bytes, .. } => Some(bytes),
                _ => None,
            },
            flows: self.flows.len(),
            bound_bps: self.bound_bps(None),
        }
    }

    /// Whether two flows share all channels, in the same direction, and meet the same there.
    pub(crate) fn is_same_path(&self, one: &Flow, other: &Flow) -> bool {
        let key = |direction: &u32| {
            let Direction { channel, delay, variation, trace, errors, .. } =
                self.directions[*direction as usize];
            (channel, direction % 2, delay, variation, trace, errors)
        };
        one.route == other.route || one.route.iter().map(key).eq(other.route.iter().map(key))
    }

    pub(crate) fn path<'a>(&'a self, flow: &'a Flow) -> impl Iterator<Item = &'a Direction> {
        flow.route.iter().map(|direction| &self.directions[*direction as usize])
    }
}

fn cc(profile: &Profile) -> &'static str {
    match (profile.congestion, profile.recovery) {
        (CongestionControl::Cubic { .. }, _) => "cubic",
        (CongestionControl::Bbr, _) => "bbr",
        (CongestionControl::Reno, recovery) => recovery.name(),
    }
}
