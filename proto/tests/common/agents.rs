//! Every agent of the registry by its name, with settings by their names.

use airmend_proto::Forwarder;
use airmend_proto::agents::{AGENTS, AgentConfig, Limits};

/// An agent and its queues, with these settings; the error says what is wrong.
pub(crate) fn create(
    name: &str,
    settings: &[(String, String)],
    limits: Limits,
) -> Result<Forwarder, String> {
    let mut config = AgentConfig::by_name(name)?;
    for (name, value) in settings {
        config.set(name, value)?;
    }
    Ok(checked(&config, limits))
}

/// The agent and its queues, with the invariants checked.
pub(crate) fn checked(config: &AgentConfig, limits: Limits) -> Forwarder {
    Forwarder::checked(config.build(limits, 1), limits.egress, config.link())
}

/// The agent and its queues.
pub(crate) fn forwarder(config: &AgentConfig, limits: Limits) -> Forwarder {
    Forwarder::new(config.build(limits, 1), limits.egress)
}

/// The agents that stand alone at a gateway, with settings that let every timer and limit be
/// reached soon.
pub(crate) fn tight() -> impl Iterator<Item = AgentConfig> {
    AGENTS.iter().filter(|agent| agent.link.is_none()).map(|agent| {
        let mut config = AgentConfig::by_name(agent.name).expect("a name of the registry");
        for (name, value) in agent.tight {
            config.set(name, value).expect("a setting of the agent");
        }
        config
    })
}

/// What agents may do for data of the mobile; each knows one of them.
const UPLINK: [&str; 2] = ["timestamps", "sack"];

/// The agent with its switches and its small counts set by `choices`.
pub(crate) fn vary(mut config: AgentConfig, mut choices: u64) -> AgentConfig {
    for word in config.settings().split(' ') {
        let Some((name, value)) = word.split_once('=') else { continue };
        let choice = choices & 7;
        let value = match (value, value.parse::<u64>()) {
            _ if name == "uplink" && choice & 1 == 1 => "off".to_owned(),
            _ if name == "uplink" => {
                let known = UPLINK.into_iter().find(|value| config.set(name, value).is_ok());
                known.expect("a help for data of the mobile").to_owned()
            }
            ("true" | "false", _) => (choice & 1 == 1).to_string(),
            (_, Ok(0..=1_000)) => (choice + 1).to_string(),
            _ => continue,
        };
        config.set(name, &value).expect("a value of the same kind");
        choices = choices.rotate_right(3);
    }
    config
}
