//! Hosts that go from station to station: the tables `roaming`.

use super::error::Fault;
use super::value::Time;
use serde::Deserialize;
use std::time::Duration;
use toml::Spanned;

/// A host that moves all the time, at regular intervals or as its radio's signals say.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RoamingTable {
    /// The stations in the order in which it visits them; at the end it goes back.
    pub(super) stations: Vec<Spanned<String>>,
    /// From one handoff to the next.
    every: Option<Spanned<Time>>,
    /// A path along the stations.
    path: Option<Spanned<PathTable>>,
    /// How long it has no link at a handoff.
    #[serde(default = "none")]
    outage: Time,
    /// How long before a handoff the next station joins; none if it does not.
    pub(super) ahead: Option<Time>,
    /// Duplicate ACKs that it sends after a handoff [CI94].
    #[serde(default)]
    pub(super) acks: u32,
}

/// Stations in a line, and a host that goes from the first to the last and back.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PathTable {
    /// Metres from a station to the next.
    spacing: f64,
    /// Metres in a second.
    speed: f64,
    /// Metres beyond which there is no link.
    reach: f64,
    /// How much stronger another station's signal must be, in dB.
    #[serde(default = "hysteresis")]
    hysteresis: f64,
    /// By the power of the distance the signal decreases.
    #[serde(default = "exponent")]
    exponent: f64,
}

fn none() -> Time {
    Time(Duration::ZERO)
}

fn hysteresis() -> f64 {
    3.0
}

fn exponent() -> f64 {
    3.0
}

/// The most handoffs of a host.
const MAX_HANDOFFS: usize = 100_000;
/// How often a moving host compares signals.
const STEP: Duration = Duration::from_millis(10);

/// What one host does at a handoff: from when to when it has no link, and to which of its stations
/// it goes.
pub(super) struct Handoff {
    pub(super) from: Duration,
    pub(super) until: Duration,
    pub(super) to: usize,
}

impl RoamingTable {
    /// The handoffs of a host until the end of the run.
    pub(super) fn handoffs(
        &self,
        name: &Spanned<String>,
        end: Duration,
    ) -> Result<Vec<Handoff>, Fault> {
        if self.stations.len() < 2 {
            let message = format!("`{name}` needs two `stations` or more to roam between");
            return Err(Fault::new(name.span(), message));
        }
        match (&self.every, &self.path) {
            (Some(every), None) => {
                let Time(interval) = *every.get_ref();
                if interval <= self.outage.0 {
                    let message = "`every` must be longer than `outage`, such as \"5s\"";
                    return Err(Fault::new(every.span(), message));
                }
                if end.as_secs_f64() / interval.as_secs_f64() > MAX_HANDOFFS as f64 {
                    return Err(too_many(every.span()));
                }
                Ok(self.at_intervals(interval, end))
            }
            (None, Some(path)) => {
                path.get_ref().check().map_err(|why| Fault::new(path.span(), why))?;
                let steps = end.as_secs_f64() / STEP.as_secs_f64();
                if steps > 100.0 * MAX_HANDOFFS as f64 {
                    return Err(too_many(path.span()));
                }
                Ok(path.get_ref().handoffs(self.stations.len(), self.outage.0, end))
            }
            _ => {
                let message = format!("`{name}` needs either `every` or `path` to roam");
                Err(Fault::new(name.span(), message))
            }
        }
    }

    fn at_intervals(&self, interval: Duration, end: Duration) -> Vec<Handoff> {
        let last = self.stations.len() - 1;
        let mut handoffs = Vec::new();
        let mut from = interval;
        while from < end {
            // To the last station and back: 0 1 2 1 0 1 …
            let turn = (handoffs.len() + 1) % (2 * last);
            let to = if turn > last { 2 * last - turn } else { turn };
            handoffs.push(Handoff { from, until: from + self.outage.0, to });
            from += interval;
        }
        handoffs
    }
}

impl PathTable {
    fn check(&self) -> Result<(), String> {
        let positive = [
            ("spacing", self.spacing),
            ("speed", self.speed),
            ("reach", self.reach),
            ("exponent", self.exponent),
        ];
        for (name, value) in positive {
            if !(value > 0.0 && value < 1e6) {
                return Err(format!("`{name}` must be more than 0 and less than 1000000"));
            }
        }
        match self.hysteresis >= 0.0 && self.hysteresis < 100.0 {
            true => Ok(()),
            false => Err("`hysteresis` must be 0 to 100, in dB".to_owned()),
        }
    }

    /// The handoffs of a host that begins at the first station.
    fn handoffs(&self, stations: usize, outage: Duration, end: Duration) -> Vec<Handoff> {
        let length = self.spacing * (stations - 1) as f64;
        let mut handoffs: Vec<Handoff> = Vec::new();
        let (mut at, mut now, mut lost_at) = (0, Duration::ZERO, None);
        while now < end {
            let turn = (self.speed * now.as_secs_f64()) % (2.0 * length);
            let place = if turn > length { 2.0 * length - turn } else { turn };
            let distance = |station: usize| (self.spacing * station as f64 - place).abs();
            let nearest = (place / self.spacing).round() as usize;
            let gain =
                10.0 * self.exponent * (distance(at).max(1.0) / distance(nearest).max(1.0)).log10();
            let is_lost = distance(at) > self.reach;
            if is_lost {
                lost_at.get_or_insert(now);
            }
            let is_better = nearest != at && (is_lost || gain > self.hysteresis);
            let is_back = is_lost || lost_at.is_some();
            if distance(nearest) <= self.reach && (is_better || is_back) {
                let from = lost_at.take().unwrap_or(now);
                let until = (now + outage).max(from);
                handoffs.push(Handoff { from, until, to: nearest });
                at = nearest;
                now = until;
            }
            now += STEP;
        }
        handoffs
    }
}

fn too_many(span: std::ops::Range<usize>) -> Fault {
    let message = "there would be too many handoffs before `time_limit`; it must be shorter";
    Fault::new(span, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(spacing: f64, reach: f64, hysteresis: f64) -> PathTable {
        PathTable { spacing, speed: 10.0, reach, hysteresis, exponent: 3.0 }
    }

    fn seconds(handoffs: &[Handoff]) -> Vec<(f64, f64, usize)> {
        let round = |time: Duration| (time.as_secs_f64() * 10.0).round() / 10.0;
        handoffs.iter().map(|h| (round(h.from), round(h.until), h.to)).collect()
    }

    const MINUTE: Duration = Duration::from_secs(40);

    #[test]
    fn hysteresis_delays_a_handoff_beyond_the_middle() {
        // 10 dB * 3 * log10(d / (100 - d)) = 3 dB at d = 55.7 m.
        let handoffs = path(100.0, 80.0, 3.0).handoffs(2, Duration::ZERO, MINUTE);
        assert_eq!(
            seconds(&handoffs),
            [(5.6, 5.6, 1), (15.6, 15.6, 0), (25.6, 25.6, 1), (35.6, 35.6, 0)]
        );
        let at_once = path(100.0, 80.0, 0.0).handoffs(2, Duration::ZERO, MINUTE);
        assert_eq!(seconds(&at_once)[0], (5.0, 5.0, 1));
    }

    #[test]
    fn between_cells_that_do_not_overlap_there_is_no_link() {
        let handoffs = path(100.0, 40.0, 3.0).handoffs(2, Duration::ZERO, MINUTE);
        assert_eq!(seconds(&handoffs)[..2], [(4.0, 6.0, 1), (14.0, 16.0, 0)]);
    }
}
