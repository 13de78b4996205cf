//! What cannot be run, and why.

use super::config::{Amount, Direction, LabConfig, Path};
use super::error::LabError;
use std::time::Duration;

/// Each flow has five descriptors, of which an ordinary process may have 1024.
const MAX_FLOWS: u32 = 150;
/// Each pair has four descriptors, and five with short flows.
const MAX_PAIRS: u32 = 16;

impl LabConfig {
    /// Refuses what cannot be run.
    pub(crate) fn check(&self) -> Result<(), LabError> {
        let refuse = |wrong: bool, why| if wrong { Err(LabError::Config(why)) } else { Ok(()) };
        let no_rate = self.air.rate_bps == 0 || self.wired.rate_bps == 0;
        refuse(no_rate, "a link of 0 bit/s carries nothing: give both hops a rate above 0")?;
        refuse(self.flows == 0, "a run without flows measures nothing: ask for at least 1")?;
        refuse(self.queue_frames == 0, "the air's queue must hold at least 1 frame")?;
        refuse(self.wired_queue_frames == 0, "the wired queue must hold at least 1 frame")?;
        refuse(self.all_flows() > MAX_FLOWS, "a run carries at most 150 flows at a time")?;
        let few_or_many = self.pairs == 0 || self.pairs > MAX_PAIRS;
        refuse(few_or_many, "a run has from 1 to 16 pairs of hosts")?;
        let is_idle = self.pairs > self.flows;
        refuse(is_idle, "each pair of hosts needs a flow: ask for more flows, or fewer pairs")?;
        let is_empty = self.short.is_some_and(|short| short.bytes == 0);
        refuse(is_empty, "a short flow carries at least 1 byte")?;
        refuse(self.sequential == 0, "no transfer at all measures nothing: ask for at least 1")?;
        let (time, is_timed) = match self.amount {
            Amount::Bytes(_) => (Duration::ZERO, false),
            Amount::Time(time) => (time, true),
        };
        let is_repeated = self.sequential > 1;
        refuse(is_repeated && is_timed, "flows one after another carry bytes, not for a time")?;
        let warms_up = self.warmup > Duration::ZERO;
        refuse(warms_up && self.warmup >= time, "the warm-up must end before the timed flows do")?;
        let is_recorded = self.pcap.is_some() && self.unmended_flows > 0;
        refuse(is_recorded, "a recording cannot tell which flows the agent did not see")?;
        self.check_trace().map_err(LabError::Config)?;
        self.check_place()?;
        self.check_modem()?;
        self.check_handoff()?;
        self.check_path()
    }

    /// Refuses what an agent in the mobile host cannot be beside.
    fn check_place(&self) -> Result<(), LabError> {
        let refuse = |has: bool, why| match has && self.place.is_in_mobile() {
            true => Err(LabError::Config(why)),
            false => Ok(()),
        };
        refuse(
            self.path != Path::Inline,
            "an agent in the mobile host is in the loop: use the in-line path",
        )?;
        refuse(
            self.far_wired.is_some(),
            "an agent in the mobile host stands at its radio: leave out the wired hop beyond the \
             air, or place the agent at the base station",
        )?;
        refuse(
            self.far_queue.is_some(),
            "the modem's queue holds what goes down, which an agent in the mobile host does not \
             mend: place it at the base station",
        )?;
        refuse(
            self.pairs > 1 || self.unmended_flows > 0,
            "each mobile host has a radio with a queue of its own, and one agent has one of them: \
             use one pair of hosts and no unmended flows, or place the agent at the base station",
        )
    }

    /// Refuses what has no place beside a modem.
    fn check_modem(&self) -> Result<(), LabError> {
        let refuse = |has: bool, why| match has && self.far_queue.is_some() {
            true => Err(LabError::Config(why)),
            false => Ok(()),
        };
        refuse(
            self.far_queue.is_some_and(|queue| queue.frames() == 0),
            "the modem's queue must hold at least 1 frame",
        )?;
        refuse(
            self.direction == Direction::Up,
            "the modem's queue holds what goes down: send the data down, or leave the modem out",
        )?;
        refuse(
            self.turnaround.is_some(),
            "a modem's queue does not ask whose turn it is: make the radios full duplex",
        )
    }

    /// Refuses what a kernel in the base station cannot do.
    fn check_path(&self) -> Result<(), LabError> {
        let is_other = self.path != Path::Inline;
        let refuse = |has: bool, why| match has && is_other {
            true => Err(LabError::Config(why)),
            false => Ok(()),
        };
        let is_half_duplex = self.turnaround.is_some();
        refuse(
            is_half_duplex,
            "radios take turns on the in-line path only: make them full duplex",
        )?;
        let is_recorded = self.pcap.is_some();
        refuse(is_recorded, "a recording is of an agent in the loop: use the in-line path")?;
        let has_unmended = self.unmended_flows > 0;
        refuse(
            has_unmended,
            "a kernel forwards all flows alike: use the in-line path, or no others",
        )
    }
}
