//! The agents: each a state machine of its own, all on the same contracts.

mod deadlines;
pub mod egress;
mod flow_index;
pub mod flow_table;
pub mod plain;
pub mod snoop;
pub mod snoop95;
pub mod tulip;

use crate::agent::Agent;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;
use egress::EgressLimits;

/// The agents that can be chosen by name.
pub const NAMES: [&str; 4] = ["plain", "snoop95", "snoop", "snoop-nosuppress"];

/// The agents of which the air hop needs one at each end: neither alone forwards anything.
pub const LINK_NAMES: [&str; 2] = ["tulip", "tulip99"];

/// What an agent may take at most. Hitting a limit degrades to passthrough, counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Flows with state.
    pub flows: usize,
    /// Bytes of cached packets, all flows together.
    pub cache_bytes: usize,
    /// Frames in the egress queues.
    pub egress: EgressLimits,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            flows: 100_000,
            cache_bytes: 256 << 20,
            egress: EgressLimits { air: 1_000, wired: 1_000 },
        }
    }
}

impl fmt::Display for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { flows, cache_bytes, egress } = self;
        write!(
            f,
            "{flows} flows, {} MiB of cached packets, {} frames queued to the air, {} to the wire",
            cache_bytes >> 20,
            egress.air,
            egress.wired
        )
    }
}

/// Which agent, and with which settings.
#[derive(Clone, Debug, PartialEq)]
pub enum AgentConfig {
    /// Passthrough.
    Plain,
    /// The 1995 Snoop agent.
    Snoop95(snoop95::Settings),
    /// The modern Snoop agent, with or without suppression.
    Snoop(snoop::Settings),
    /// One end of a TULIP link.
    Tulip(tulip::Settings),
}

impl AgentConfig {
    /// The agent of this name with its default settings, or a sentence that names those known.
    pub fn by_name(name: &str) -> Result<Self, String> {
        match name {
            "plain" => Ok(Self::Plain),
            "snoop95" => Ok(Self::Snoop95(snoop95::Settings::default())),
            "snoop" => Ok(Self::Snoop(snoop::Settings::default())),
            "snoop-nosuppress" => {
                Ok(Self::Snoop(snoop::Settings { suppress: false, ..Default::default() }))
            }
            "tulip" => Ok(Self::Tulip(tulip::Settings::default())),
            "tulip99" => Ok(Self::Tulip(tulip::Settings::tulip99())),
            _ => {
                let known = [&NAMES[..], &LINK_NAMES].concat().join(", ");
                Err(format!("unknown agent {name:?}; known agents are {known}"))
            }
        }
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Snoop95(_) => "snoop95",
            Self::Snoop(settings) if settings.suppress => "snoop",
            Self::Snoop(_) => "snoop-nosuppress",
            Self::Tulip(settings) if settings.adaptive => "tulip",
            Self::Tulip(_) => "tulip99",
        }
    }

    /// Whether the air hop needs one at each end ([`LINK_NAMES`]).
    pub fn is_link(&self) -> bool {
        matches!(self, Self::Tulip(_))
    }

    /// Whether it holds data on its way to the mobiles, in a queue of its own [snoop95 §4]: a
    /// gateway must then hand it the data itself, and not a copy of what has left.
    pub fn holds_data(&self) -> bool {
        matches!(self, Self::Snoop95(_))
    }

    /// Makes the cache hold a window of this many packets, and not less than by default: a cache
    /// must hold the maximum transmission window [snoop95 §4].
    pub fn hold_window(&mut self, packets: usize) {
        match self {
            Self::Plain | Self::Snoop(_) | Self::Tulip(_) => {}
            Self::Snoop95(settings) => settings.hold_window(packets),
        }
    }

    /// Sets one of its thresholds from text.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match self {
            Self::Plain => Err(format!("plain has no settings, so {name:?} cannot be set")),
            Self::Snoop95(settings) => settings.set(name, value),
            Self::Snoop(settings) => settings.set(name, value),
            Self::Tulip(settings) => settings.set(name, value),
        }
    }

    /// All its settings, each a word that [`Self::set`] takes: `key=value key=value`.
    pub fn settings(&self) -> String {
        match self {
            Self::Plain => String::new(),
            Self::Snoop95(settings) => settings.to_string(),
            Self::Snoop(settings) => settings.to_string(),
            Self::Tulip(settings) => settings.to_string(),
        }
    }

    /// Builds the agent; `hash_seed` should be secret where hosts are not trusted. A link takes its
    /// epoch from it, so that it should also be another one in every run.
    pub fn build(&self, limits: Limits, hash_seed: u64) -> Box<dyn Agent + Send> {
        match self {
            Self::Plain => Box::new(plain::Plain::new(limits.egress)),
            Self::Snoop95(settings) => {
                Box::new(snoop95::Snoop95::new(settings.clone(), limits, hash_seed))
            }
            Self::Snoop(settings) => {
                Box::new(snoop::Snoop::new(settings.clone(), limits, hash_seed))
            }
            Self::Tulip(settings) => {
                let epoch = hash_seed as u32 ^ (hash_seed >> 32) as u32;
                Box::new(tulip::Tulip::new(limits, settings.clone(), epoch))
            }
        }
    }
}
