//! The data path of the base station between the two hops.

use super::hop::End;
use super::inline_agent::InlineAgent;
use super::links::Links;
use super::record::Recorder;
use crate::device::Device;
use airmend_proto::agent::LinkSignal;
use airmend_proto::{Deadline, Instant, Packet, Port};
use std::io;

/// The data path between the two hops.
pub(crate) enum DataPath {
    /// An agent in the loop.
    Agent(Box<InlineAgent>),
    /// A kernel that forwards, in a namespace of its own.
    Kernel(KernelPorts),
}

/// The other ends of that kernel's two interfaces.
pub(crate) struct KernelPorts {
    /// Behind its interface towards the fixed hosts.
    pub(crate) wired: Box<dyn Device>,
    /// Behind its interface towards the mobile hosts.
    pub(crate) air: Box<dyn Device>,
}

impl DataPath {
    /// The agent, if there is one.
    pub(crate) fn agent(&self) -> Option<&InlineAgent> {
        match self {
            Self::Agent(agent) => Some(agent),
            Self::Kernel(_) => None,
        }
    }

    /// The recorder of the agent, which ends with this call.
    pub(crate) fn into_recorder(self, now: Instant) -> Option<Recorder> {
        match self {
            Self::Agent(agent) => Some(agent.into_recorder(now)),
            Self::Kernel(_) => None,
        }
    }

    /// The deadline of the agent.
    pub(crate) fn poll_timeout(&self) -> Option<Deadline> {
        self.agent()?.poll_timeout()
    }

    /// Takes a signal of the air.
    pub(crate) fn signal(&mut self, now: Instant, signal: LinkSignal) {
        if let Self::Agent(agent) = self {
            agent.signal(now, signal);
        }
    }

    /// Takes a frame that arrived damaged.
    pub(crate) fn damaged(&mut self, now: Instant, frame: &Packet) {
        if let Self::Agent(agent) = self {
            agent.damaged(now, frame);
        }
    }

    /// Moves what a kernel has forwarded into the links towards the hosts; an agent waits until it
    /// is asked.
    pub(crate) fn take(
        &mut self,
        now: Instant,
        links: &mut Links,
        batch: &mut Vec<Packet>,
    ) -> io::Result<()> {
        let Self::Kernel(ports) = self else { return Ok(()) };
        ports.wired.receive(batch)?;
        links.wired.feed(now, End::Station, batch.drain(..));
        ports.air.receive(batch)?;
        links.towards_air().feed(now, End::Station, batch.drain(..));
        Ok(())
    }

    /// The ports of a kernel.
    pub(crate) fn ports(&self) -> impl Iterator<Item = &dyn Device> {
        let ports = match self {
            Self::Agent(_) => None,
            Self::Kernel(KernelPorts { wired, air }) => Some([&**wired, &**air]),
        };
        ports.into_iter().flatten().map(|port| port as &dyn Device)
    }

    /// Packets lost between a kernel and these ports.
    pub(crate) fn drops(&mut self) -> u64 {
        match self {
            Self::Agent(_) => 0,
            Self::Kernel(KernelPorts { wired, air }) => wired.drops() + air.drops(),
        }
    }
}

impl KernelPorts {
    /// The one on this side.
    pub(crate) fn on(&mut self, side: Port) -> &mut dyn Device {
        match side {
            Port::Wired => &mut *self.wired,
            Port::Air => &mut *self.air,
        }
    }
}
