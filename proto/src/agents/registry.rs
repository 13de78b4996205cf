//! Every agent that can be chosen by name. A new agent needs one entry here and nothing else
//! outside its own folder.

use super::config::{AgentSettings, NoSettings};
use super::plain::Plain;
use super::{snoop, snoop95, tulip};
use crate::packet::Packet;
use alloc::boxed::Box;

/// An entry of the registry.
#[derive(Debug)]
pub struct Registration {
    /// The name of the agent in flags and files.
    pub name: &'static str,
    /// The settings of the agent, with the defaults of this name.
    pub settings: fn() -> Box<dyn AgentSettings>,
    /// The link protocol, if the agent must run at both ends of the air hop: one end alone forwards
    /// nothing.
    pub link: Option<LinkProtocol>,
    /// Settings with which a test soon reaches every limit and timer.
    pub tight: &'static [(&'static str, &'static str)],
}

/// The properties of a link protocol that a runner needs.
#[derive(Debug)]
pub struct LinkProtocol {
    /// The most bytes by which a frame is longer than its packet.
    pub frame_overhead: usize,
    /// The packet of the network layer in a frame, if there is one.
    pub payload: fn(&Packet) -> Option<Packet>,
}

/// All agents.
pub static AGENTS: [Registration; 6] = [
    Registration {
        name: "plain",
        settings: || Box::new(NoSettings::<Plain>::default()),
        link: None,
        tight: &[],
    },
    Registration {
        name: "snoop95",
        settings: || Box::new(snoop95::Settings::default()),
        link: None,
        tight: &[("cache_packets", "6"), ("high_water", "0.5"), ("idle_timeout", "2s")],
    },
    Registration {
        name: "snoop",
        settings: || Box::new(snoop::Settings::default()),
        link: None,
        tight: &[("idle_timeout", "2s")],
    },
    Registration {
        name: "snoop-nosuppress",
        settings: || Box::new(snoop::Settings { suppress: false, ..Default::default() }),
        link: None,
        tight: &[("idle_timeout", "2s")],
    },
    Registration {
        name: "tulip",
        settings: || Box::new(tulip::Settings::default()),
        link: Some(tulip::PROTOCOL),
        tight: &[],
    },
    Registration {
        name: "tulip99",
        settings: || Box::new(tulip::Settings::tulip99()),
        link: Some(tulip::PROTOCOL),
        tight: &[],
    },
];

/// The names of the agents that run at the gateway alone.
pub fn names() -> impl Iterator<Item = &'static str> {
    AGENTS.iter().filter(|agent| agent.link.is_none()).map(|agent| agent.name)
}

/// The names of the agents that run at both ends of the air hop.
pub fn link_names() -> impl Iterator<Item = &'static str> {
    AGENTS.iter().filter(|agent| agent.link.is_some()).map(|agent| agent.name)
}
