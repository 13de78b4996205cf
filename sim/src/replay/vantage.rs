//! Where a flow was captured, as far as its packets show it.

use super::flow::FlowReport;
use std::time::Duration;

/// A host answers itself within this time; what crosses a network takes longer.
const OWN_ANSWER: Duration = Duration::from_micros(100);

/// Where a flow was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vantage {
    /// Between the hosts, where both directions pass.
    Between,
    /// Where nothing passes that the mobile host sends: losses are unknown.
    OneWay,
    /// At the mobile host: what the air has lost is not in the capture.
    MobileHost,
    /// At the fixed host: all of the path counts as air.
    FixedHost,
}

impl FlowReport {
    /// Where the flow was captured.
    pub fn vantage(&self) -> Vantage {
        let is_own = |round_trip: Option<Duration>| round_trip.is_some_and(|rtt| rtt < OWN_ANSWER);
        if self.answers == 0 {
            Vantage::OneWay
        } else if is_own(self.air_round_trip) {
            Vantage::MobileHost
        } else if is_own(self.wired_round_trip) {
            Vantage::FixedHost
        } else {
            Vantage::Between
        }
    }

    /// Whether no acknowledgment of the flow was captured, so that its losses are unknown.
    pub fn is_one_way(&self) -> bool {
        self.vantage() == Vantage::OneWay
    }
}
