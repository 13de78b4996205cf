//! The settings of an agent, as the registry and the runners see them.

use super::limits::Limits;
use crate::agent::Agent;
use crate::link::mac::MacParams;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use core::fmt;
use core::marker::PhantomData;

/// The settings of one agent. They display as the words that [`AgentSettings::set`] takes:
/// `key=value key=value`.
pub trait AgentSettings: fmt::Debug + fmt::Display + Send + Sync {
    /// Sets one of them from text, or says in a sentence what would be right.
    fn set(&mut self, name: &str, value: &str) -> Result<(), String>;

    /// Builds the agent; `seed` should be secret where hosts are not trusted. A link takes its
    /// epoch from it, so that it should also be another one in every run.
    fn build(&self, limits: Limits, seed: u64) -> Box<dyn Agent + Send>;

    /// A copy.
    fn clone_box(&self) -> Box<dyn AgentSettings>;

    /// Makes the cache hold a window of this many packets, and not less than by default.
    fn hold_window(&mut self, _packets: usize) {}

    /// Makes a link protocol fit the radios that it runs over; full duplex if there are none.
    fn follow_radio(&mut self, _radio: Option<&MacParams>) {}

    /// Makes a link protocol find losses without damaged frames, which its carrier discards.
    fn lose_damaged(&mut self) {}

    /// Makes a link protocol control its rate, since the bottleneck of the path may be anywhere.
    fn control_rate(&mut self) {}

    /// Makes a link protocol carry TCP to and from this port without retransmissions.
    fn exempt(&mut self, _tcp_port: u16) {}
}

/// The settings of an agent that has none.
#[derive(Debug)]
pub struct NoSettings<A>(PhantomData<fn() -> A>);

impl<A> Default for NoSettings<A> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<A> fmt::Display for NoSettings<A> {
    fn fmt(&self, _f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}

impl<A: Agent + Default + Send + fmt::Debug + 'static> AgentSettings for NoSettings<A> {
    fn set(&mut self, name: &str, _value: &str) -> Result<(), String> {
        Err(format!("there is no setting {name:?}"))
    }

    fn build(&self, _limits: Limits, _seed: u64) -> Box<dyn Agent + Send> {
        Box::new(A::default())
    }

    fn clone_box(&self) -> Box<dyn AgentSettings> {
        Box::new(Self::default())
    }
}
