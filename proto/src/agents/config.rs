//! The choice of an agent and its settings.

use super::limits::Limits;
use super::link_protocol::LinkProtocol;
use super::settings::AgentSettings;
use super::{AGENTS, PLAIN, Registration};
use crate::agent::Agent;
use crate::link::mac::MacParams;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// An agent with its settings.
#[derive(Debug)]
pub struct AgentConfig {
    registration: &'static Registration,
    settings: Box<dyn AgentSettings>,
}

impl AgentConfig {
    /// The agent of this name with its default settings; the error names the known agents.
    pub fn by_name(name: &str) -> Result<Self, String> {
        let Some(registration) = AGENTS.iter().find(|agent| agent.name == name) else {
            let known = AGENTS.iter().map(|agent| agent.name).collect::<Vec<_>>().join(", ");
            return Err(format!("unknown agent {name:?}; known agents are {known}"));
        };
        Ok(Self { registration, settings: (registration.settings)() })
    }

    /// Passthrough, the baseline.
    pub fn plain() -> Self {
        Self { registration: &PLAIN, settings: (PLAIN.settings)() }
    }

    /// The name of the agent.
    pub fn name(&self) -> &'static str {
        self.registration.name
    }

    /// Whether the agent is passthrough.
    pub fn is_plain(&self) -> bool {
        *self == Self::plain()
    }

    /// The link protocol, if the agent must run at both ends of the air hop.
    pub fn link(&self) -> Option<&'static LinkProtocol> {
        self.registration.link.as_ref()
    }

    /// Whether the agent must run at both ends of the air hop.
    pub fn is_link(&self) -> bool {
        self.link().is_some()
    }

    /// Makes the cache hold a window of this many packets, and not less than by default: a cache
    /// must hold the maximum transmission window [snoop95 §4].
    pub fn hold_window(&mut self, packets: usize) {
        self.settings.hold_window(packets);
    }

    /// Sets the constants of a link protocol for half-duplex radios; full duplex if there are none.
    pub fn follow_radio(&mut self, radio: Option<&MacParams>) {
        self.settings.follow_radio(radio);
    }

    /// Makes a link protocol control its rate, since the bottleneck of the path may be anywhere,
    /// and share it out among flows.
    pub fn control_rate(&mut self) {
        self.settings.control_rate();
    }

    /// Makes a link protocol carry TCP to and from this port without retransmissions.
    pub fn exempt(&mut self, tcp_port: u16) {
        self.settings.exempt(tcp_port);
    }

    /// Sets a setting of the agent from text; the error is one sentence.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        if self.settings().is_empty() {
            return Err(format!("{} has no settings, so {name:?} cannot be set", self.name()));
        }
        self.settings.set(name, value)
    }

    /// All settings in the form that [`Self::set`] takes: `key=value key=value`.
    pub fn settings(&self) -> String {
        self.settings.to_string()
    }

    /// Builds the agent; see [`AgentSettings::build`].
    pub fn build(&self, limits: Limits, seed: u64) -> Box<dyn Agent + Send> {
        self.settings.build(limits, seed)
    }
}

impl Clone for AgentConfig {
    fn clone(&self) -> Self {
        Self { registration: self.registration, settings: self.settings.clone_box() }
    }
}

impl PartialEq for AgentConfig {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name() && self.settings() == other.settings()
    }
}
