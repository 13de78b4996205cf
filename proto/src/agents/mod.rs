//! The agents: each a state machine of its own, all on the same contracts.

pub mod egress;
pub mod plain;
