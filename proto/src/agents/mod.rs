//! The agents: each a state machine of its own, all on the same contracts. [`registry`] lists them;
//! nothing else outside their folders knows one by name.

pub mod config;
mod deadlines;
mod flow_index;
pub mod flow_table;
mod flows;
pub mod limits;
pub mod link_protocol;
pub mod plain;
pub mod registry;
pub mod settings;
pub mod snoop;
pub mod snoop95;
pub mod tulip;

pub use config::AgentConfig;
pub use limits::Limits;
pub use registry::{AGENTS, Registration};
pub use settings::AgentSettings;
