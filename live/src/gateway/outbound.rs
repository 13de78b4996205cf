//! What the agent sends, in a world where the kernel has sent most of it already.

use super::journal::Journal;
use super::sight::Path;
use crate::port::injector::Injector;
use crate::port::transmitter::Transmitter;
use airmend_proto::{Instant, Packet, Ports, Side};
use std::cell::RefCell;
use std::io;

/// The ways out.
#[derive(Debug)]
pub(super) struct Outbound {
    pub(super) injector: Injector,
    pub(super) transmitter: Transmitter,
    /// Send nothing: the agent only observes.
    pub(super) observe: bool,
    /// The packet last handed to the agent, if the kernel has passed it on: the agent will send it
    /// too, and once is enough.
    pub(super) passed: Option<(Side, Packet)>,
    /// What went wrong, since [`Ports::send`] cannot say.
    pub(super) error: Option<io::Error>,
}

/// The ways out with the journal beside them.
pub(super) struct Watched<'a, 'b> {
    pub(super) outbound: &'a mut Outbound,
    pub(super) journal: &'a RefCell<&'b mut Journal>,
}

impl Outbound {
    fn is_passed(&mut self, side: Side, packet: &Packet) -> bool {
        // The very bytes: a copy with the same contents would be something else.
        let is_it = |(to, passed): &mut (Side, Packet)| {
            *to == side && std::ptr::eq(passed.bytes(), packet.bytes())
        };
        self.passed.take_if(is_it).is_some()
    }

    fn send(&mut self, side: Side, packet: &Packet) {
        let result = match side {
            Side::Air => self.transmitter.send(packet),
            Side::Wired => self.injector.inject(packet.bytes()),
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
        let path = match (self.outbound.is_passed(side, &packet), side) {
            (true, _) => None,
            (false, Side::Air) => Some(Path::Repairs),
            (false, Side::Wired) => Some(Path::AcksReturned),
        };
        self.journal.borrow_mut().leaves(now, side, &packet, path);
        if path.is_some() && !self.outbound.observe {
            self.outbound.send(side, &packet);
        }
    }
}
