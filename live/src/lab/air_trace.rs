//! An air that varies as files say.

use airmend_proto::link::trace::{VariableRate, WayTrace};

/// What varies of the air.
#[derive(Clone, Debug, PartialEq)]
pub struct AirTrace {
    /// Towards the mobile hosts, and back.
    pub ways: [WayTrace; 2],
    /// The files, for reports.
    pub name: String,
}

impl AirTrace {
    /// Whether the rate of a way varies.
    pub(crate) fn has_rates(&self) -> bool {
        self.ways.iter().any(|way| way.rate.is_some())
    }

    /// The rates that vary.
    pub(crate) fn rates(&self) -> [Option<&VariableRate>; 2] {
        self.ways.each_ref().map(|way| way.rate.as_ref())
    }
}
