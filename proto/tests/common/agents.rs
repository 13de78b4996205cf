//! Every agent by its name, with settings by their names.

use airmend_proto::Agent;
use airmend_proto::agents::{AgentConfig, Limits};

/// An agent with these settings; the error says what is wrong.
pub(crate) fn create(
    name: &str,
    settings: &[(String, String)],
    limits: Limits,
) -> Result<Box<dyn Agent>, String> {
    let mut config = AgentConfig::by_name(name)?;
    for (name, value) in settings {
        config.set(name, value)?;
    }
    Ok(config.build(limits, 1))
}
