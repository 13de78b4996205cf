//! A mobile host that moves between base stations.
//!
//! From the bottom to the top: the configuration; `backbone`, the network between the stations;
//! `schedule`, when the mobile host moves; `arrivals`, how long it then gets nothing;
//! `base_station`, one station with its links; `cells`, the loop that runs them all.

mod arrivals;
mod backbone;
mod base_station;
mod cells;
mod intruder;
pub mod plan;
pub(super) mod report;
mod schedule;

pub(super) use cells::Cells;

use super::config::{Direction, LabConfig, Path, Place};
use super::error::LabError;

/// The most base stations.
pub const MAX_STATIONS: u32 = 16;

impl LabConfig {
    /// Refuses moves that cannot be, and what they cannot be beside.
    ///
    /// # Errors
    /// One sentence with a remedy.
    pub fn check_handoff(&self) -> Result<(), LabError> {
        let Some(plan) = self.handoff else { return Ok(()) };
        let refuse = |wrong: bool, why| if wrong { Err(LabError::Config(why)) } else { Ok(()) };
        let few_or_many = plan.stations < 2 || plan.stations > MAX_STATIONS;
        refuse(few_or_many, "a mobile host moves between 2 to 16 base stations")?;
        refuse(
            plan.ahead.saturating_add(plan.outage) >= plan.every,
            "the outage and the time ahead must be less than the time between two moves",
        )?;
        refuse(
            self.direction == Direction::Up,
            "a handoff carries on what goes down: send the data down",
        )?;
        refuse(
            self.path != Path::Inline || self.place != Place::Base || self.pcap.is_some(),
            "several base stations have their agents in the loop: use the in-line path, agents at \
             the base stations, and no recording",
        )?;
        refuse(
            self.pairs > 1 || self.unmended_flows > 0 || self.short.is_some(),
            "one mobile host moves: use one pair of hosts, and neither unmended nor short flows",
        )?;
        refuse(
            self.far_queue.is_some() || self.far_wired.is_some() || self.turnaround.is_some(),
            "base stations reach the mobile host over a full-duplex air, without a modem or a \
             wired hop beyond it",
        )
    }
}
