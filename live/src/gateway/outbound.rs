//! What the agent sends, in a world where the kernel has sent most of it already.

use super::config::GatewayConfig;
use super::interface::Interface;
use super::journal::Journal;
use crate::device::reinjection::Reinjection;
use crate::device::transmitter::Transmitter;
use airmend_proto::{Instant, Packet, Port, Ports};
use std::cell::{Cell, RefCell};
use std::io;

/// The ways out.
#[derive(Debug)]
pub(super) struct Outbound {
    /// Towards the wired side, through the kernel's own forwarding.
    pub(super) reinjection: Reinjection,
    /// Towards the mobiles, before everything else.
    pub(super) repairs: Transmitter,
    /// Towards the mobiles, everything that goes there, if the agent holds data itself: it is asked
    /// for a packet when the interface can take one.
    pub(super) held: Option<Transmitter>,
    /// The agent was not asked, since there was no room.
    pub(super) is_blocked: Cell<bool>,
    /// The packet last handed to the agent and where it went, if the kernel has passed it on: the
    /// agent will send it too, and once is enough.
    pub(super) passed: Option<(Port, Packet)>,
    /// What went wrong, since [`Ports::send`] cannot say.
    pub(super) error: Option<io::Error>,
}

/// The ways out with the journal beside them.
pub(super) struct Watched<'a, 'b> {
    pub(super) outbound: &'a mut Outbound,
    pub(super) journal: &'a RefCell<&'b mut Journal>,
}

impl Outbound {
    /// Opens the ways towards the mobiles; `holds` is whether the agent holds data.
    pub(super) fn open(
        config: &GatewayConfig,
        interface: &Interface,
        reinjection: Reinjection,
        holds: bool,
    ) -> io::Result<Self> {
        let priority = config.priority.unwrap_or_else(|| interface.highest_priority());
        let repairs = Transmitter::open(interface.index, config.mark, priority)?;
        let held = holds.then(|| Transmitter::open(interface.index, config.mark, 0)).transpose()?;
        if let Some(held) = &held {
            held.keep_queue_short()?;
        }
        Ok(Self {
            reinjection,
            repairs,
            held,
            is_blocked: Cell::new(false),
            passed: None,
            error: None,
        })
    }

    /// Sends a packet, be it the agent's or one that it shall not see.
    pub(super) fn send(&mut self, side: Port, packet: &Packet) {
        let result = match side {
            Port::Wired => self.reinjection.inject(packet),
            Port::Air => self.held.as_mut().unwrap_or(&mut self.repairs).send(packet),
        };
        if let Err(error) = result {
            self.error.get_or_insert(error);
        }
    }

    /// Packets that the ways out refused.
    pub(super) fn drops(&self) -> u64 {
        let held = self.held.as_ref().map_or(0, Transmitter::drops);
        self.reinjection.drops() + self.repairs.drops() + held
    }

    fn is_passed(&mut self, side: Port, packet: &Packet) -> bool {
        // The very bytes: a copy with the same contents would be something else.
        let is_it = |(to, passed): &mut (Port, Packet)| {
            *to == side && std::ptr::eq(passed.bytes(), packet.bytes())
        };
        self.passed.take_if(is_it).is_some()
    }

    fn has_room(&self, side: Port) -> bool {
        let Some(held) = self.held.as_ref().filter(|_| side == Port::Air) else { return true };
        let has_room = held.has_room();
        self.is_blocked.set(!has_room);
        has_room
    }
}

impl Ports for Watched<'_, '_> {
    fn can_send(&self, now: Instant, side: Port) -> bool {
        self.journal.borrow_mut().entered(now);
        self.outbound.has_room(side)
    }

    fn send(&mut self, now: Instant, side: Port, packet: Packet) {
        let is_passed = self.outbound.is_passed(side, &packet);
        self.journal.borrow_mut().leaves(now, side, &packet, is_passed);
        if !is_passed {
            self.outbound.send(side, &packet);
        }
    }
}
