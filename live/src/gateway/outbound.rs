//! What the agent sends, in a world where the kernel has sent most of it already.

use super::journal::Journal;
use super::sight::Path;
use crate::port::detour::Detour;
use crate::port::transmitter::Transmitter;
use airmend_proto::{Instant, Packet, Ports, Side};
use std::cell::RefCell;
use std::io;

/// The ways out.
#[derive(Debug)]
pub(super) struct Outbound {
    /// Towards the wired side, through the kernel's own forwarding.
    pub(super) detour: Detour,
    /// Towards the mobiles, before everything else.
    pub(super) repairs: Transmitter,
    /// Towards the mobiles, in turn: what the agent holds.
    pub(super) held: Transmitter,
    /// Send nothing: the agent only observes.
    pub(super) observe: bool,
    /// The packet last handed to the agent, where it would go, and whether the kernel has passed it
    /// on: the agent will send it too, and once is enough.
    pub(super) current: Option<(Side, Packet, bool)>,
    /// What went wrong, since [`Ports::send`] cannot say.
    pub(super) error: Option<io::Error>,
}

/// The ways out with the journal beside them.
pub(super) struct Watched<'a, 'b> {
    pub(super) outbound: &'a mut Outbound,
    pub(super) journal: &'a RefCell<&'b mut Journal>,
}

/// What a packet is that the agent sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The one that came in last, which the kernel has sent.
    Passed,
    /// The one that came in last, which nobody has sent.
    Held,
    /// Something else.
    Own,
}

impl Outbound {
    /// Passes a packet on that the agent shall not see.
    pub(super) fn pass(&mut self, side: Side, packet: &Packet) {
        self.send(side, packet, Kind::Held);
    }

    /// Packets that the ways out refused.
    pub(super) fn drops(&self) -> u64 {
        self.detour.drops() + self.repairs.drops() + self.held.drops()
    }

    fn kind(&mut self, side: Side, packet: &Packet) -> Kind {
        // The very bytes: a copy with the same contents would be something else.
        let is_it = |(to, current, _): &mut (Side, Packet, bool)| {
            *to == side && std::ptr::eq(current.bytes(), packet.bytes())
        };
        match self.current.take_if(is_it) {
            Some((.., true)) => Kind::Passed,
            Some((.., false)) => Kind::Held,
            None => Kind::Own,
        }
    }

    fn send(&mut self, side: Side, packet: &Packet, kind: Kind) {
        let result = match (side, kind) {
            (Side::Wired, _) => self.detour.inject(packet),
            (Side::Air, Kind::Held) => self.held.send(packet),
            (Side::Air, _) => self.repairs.send(packet),
        };
        if let Err(error) = result {
            self.error.get_or_insert(error);
        }
    }
}

impl Ports for Watched<'_, '_> {
    fn can_send(&self, now: Instant, _side: Side) -> bool {
        self.journal.borrow_mut().entered(now);
        true
    }

    fn send(&mut self, now: Instant, side: Side, packet: Packet) {
        let kind = self.outbound.kind(side, &packet);
        let path = match (side, kind) {
            (_, Kind::Passed) | (Side::Air, Kind::Held) => None,
            (Side::Air, Kind::Own) => Some(Path::Repairs),
            (Side::Wired, _) => Some(Path::AcksReturned),
        };
        self.journal.borrow_mut().leaves(now, side, &packet, path);
        if kind != Kind::Passed && !self.outbound.observe {
            self.outbound.send(side, &packet, kind);
        }
    }
}
