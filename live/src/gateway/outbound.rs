//! The ways out of the gateway: the kernel has forwarded most packets already.

use super::config::GatewayConfig;
use super::interface::Interface;
use super::journal::Journal;
use crate::device::reinjection::Reinjection;
use crate::device::transmitter::Transmitter;
use airmend_proto::{Instant, Packet, Port, Ports};
use std::cell::RefCell;
use std::io;

/// The ways out.
#[derive(Debug)]
pub(super) struct Outbound {
    /// Towards the wired side, through the kernel's own forwarding.
    pub(super) reinjection: Reinjection,
    /// Towards the mobiles, before everything else.
    pub(super) repairs: Transmitter,
    /// The first error, since [`Ports::send`] returns none.
    pub(super) error: Option<io::Error>,
}

/// The ways out with the journal beside them.
pub(super) struct Watched<'a, 'b> {
    pub(super) outbound: &'a mut Outbound,
    pub(super) journal: &'a RefCell<&'b mut Journal>,
    /// Repairs that may leave; more wait for the next packet or turn.
    pub(super) repairs: usize,
    /// Those that have left.
    pub(super) repaired: Vec<Packet>,
}

impl Outbound {
    /// Opens the way towards the mobiles; `None` for the interface's highest priority.
    pub(super) fn open(
        config: &GatewayConfig,
        interface: &Interface,
        reinjection: Reinjection,
        priority: Option<u32>,
    ) -> io::Result<Self> {
        let priority = priority.unwrap_or_else(|| interface.highest_priority());
        let repairs = Transmitter::open(interface.index, config.mark, priority)?;
        Ok(Self { reinjection, repairs, error: None })
    }

    /// Sends a packet of the agent, or one that the agent shall not see.
    pub(super) fn send(&mut self, port: Port, packet: &Packet) {
        let result = match port {
            Port::Wired => self.reinjection.inject(packet),
            Port::Air => self.repairs.send(packet),
        };
        if let Err(error) = result {
            self.error.get_or_insert(error);
        }
    }

    /// Packets that the ways out refused.
    pub(super) fn drops(&self) -> u64 {
        self.reinjection.drops() + self.repairs.drops()
    }
}

impl Ports for Watched<'_, '_> {
    /// Always, but for the bound of a burst: no interface reports when its queue has room.
    fn can_send(&self, now: Instant, port: Port) -> bool {
        self.journal.borrow_mut().entered(now);
        port == Port::Wired || self.repairs > 0
    }

    fn send(&mut self, now: Instant, port: Port, packet: Packet) {
        if port == Port::Air {
            self.repairs -= 1;
            self.repaired.push(packet.clone());
        }
        self.journal.borrow_mut().leaves(now, port, &packet);
        self.outbound.send(port, &packet);
    }
}
