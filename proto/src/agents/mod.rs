//! The agents, each a state machine of its own, all on the same contracts; and their registry.
//!
//! Nothing else outside an agent's folder knows the agent by name. A new agent needs its module and
//! one entry of [`AGENTS`] here, and nothing in any other file.

mod arq;
pub mod config;
mod deadlines;
mod flow_index;
pub mod flow_table;
mod flows;
pub mod handoff;
pub mod limits;
pub mod link_protocol;
mod negative_ack;
mod packet_cache;
mod repairs;
pub mod settings;

pub mod lack;
pub mod plain;
pub mod snoop;
pub mod snoop95;
pub mod snoop_opnet;
pub mod tulip;

pub use config::AgentConfig;
pub use limits::Limits;
pub use link_protocol::{Carried, LinkProtocol};
pub use settings::AgentSettings;
pub use tulip::compression::Compressor;

use crate::event::Event;
use alloc::boxed::Box;
use plain::Plain;
use settings::NoSettings;

/// An agent that can be chosen.
#[derive(Debug)]
pub struct Registration {
    /// The name by which it is chosen.
    pub name: &'static str,
    /// Its settings, with the values that the name stands for.
    pub settings: fn() -> Box<dyn AgentSettings>,
    /// Set if the air hop needs one at each end: one alone forwards nothing.
    pub link: Option<LinkProtocol>,
    /// Settings under which a test reaches every limit and timer soon.
    pub tight: &'static [(&'static str, &'static str)],
    /// The counters of its own events, besides those of all agents.
    pub counters: &'static [&'static str],
}

/// The baseline of every comparison.
pub(crate) const PLAIN: Registration = Registration {
    name: "plain",
    settings: || Box::new(NoSettings::<Plain>::default()),
    link: None,
    tight: &[],
    counters: &[],
};

/// All agents.
pub static AGENTS: &[Registration] = &[
    PLAIN,
    Registration {
        name: "snoop95",
        settings: || Box::new(snoop95::Settings::default()),
        link: None,
        tight: &[
            ("cache_packets", "6"),
            ("high_water", "0.5"),
            ("idle_timeout", "2s"),
            ("uplink", "sack"),
        ],
        counters: snoop95::COUNTERS,
    },
    Registration {
        name: "snoop",
        settings: || Box::new(snoop::Settings::default()),
        link: None,
        tight: &[("idle_timeout", "2s")],
        counters: snoop::COUNTERS,
    },
    Registration {
        name: "snoop-nosuppress",
        settings: || Box::new(snoop::Settings { suppress: false, ..Default::default() }),
        link: None,
        tight: &[("idle_timeout", "2s")],
        counters: snoop::COUNTERS,
    },
    Registration {
        name: "snoop-opnet",
        settings: || Box::new(snoop_opnet::Settings::default()),
        link: None,
        tight: &[("cache_packets", "6"), ("idle_timeout", "2s")],
        counters: snoop_opnet::COUNTERS,
    },
    Registration {
        name: "snoop-opnet-adaptive",
        settings: || Box::new(snoop_opnet::Settings::adaptive()),
        link: None,
        tight: &[("cache_packets", "6"), ("min_timeout", "10ms"), ("idle_timeout", "2s")],
        counters: snoop_opnet::COUNTERS,
    },
    Registration {
        name: "lack",
        settings: || Box::new(lack::Settings::default()),
        link: Some(lack::PROTOCOL),
        tight: &[],
        counters: arq::LINK_COUNTERS,
    },
    Registration {
        name: "lack-flow",
        settings: || Box::new(lack::Settings::flow()),
        link: Some(lack::PROTOCOL),
        tight: &[],
        counters: arq::LINK_COUNTERS,
    },
    Registration {
        name: "tulip",
        settings: || Box::new(tulip::Settings::default()),
        link: Some(tulip::PROTOCOL),
        tight: &[],
        counters: arq::LINK_COUNTERS,
    },
    Registration {
        name: "tulip99",
        settings: || Box::new(tulip::Settings::tulip99()),
        link: Some(tulip::PROTOCOL),
        tight: &[],
        counters: arq::LINK_COUNTERS,
    },
];

/// The agent of a base station that reports to an agent in a mobile host what the air has lost of
/// the mobile's data [S0-40].
pub fn reporting() -> Box<dyn AgentSettings> {
    Box::new(snoop95::Settings::reporting())
}

/// The names of all counters of agents, queues and handoffs.
pub fn counters() -> impl Iterator<Item = &'static str> {
    let own = AGENTS.iter().flat_map(|agent| agent.counters).chain(handoff::COUNTERS);
    Event::COUNTERS.into_iter().chain(own.copied())
}

/// The agents that stand alone at a gateway.
pub fn names() -> impl Iterator<Item = &'static str> {
    AGENTS.iter().filter(|agent| agent.link.is_none()).map(|agent| agent.name)
}

/// The agents of which the air hop needs one at each end.
pub fn link_names() -> impl Iterator<Item = &'static str> {
    AGENTS.iter().filter(|agent| agent.link.is_some()).map(|agent| agent.name)
}
