//! Which flows are mended.

/// All flows, or those that a rule chooses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowRules {}
