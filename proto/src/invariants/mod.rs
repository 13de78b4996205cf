//! The invariants of all agents, checked in every run of every world.
//!
//! An agent never acknowledges data that the receiver has not acknowledged, reports no data that
//! has not arrived, invents no timestamp, never changes or invents a byte of payload, and
//! retransmits within its bound. The checker sees each packet that enters or leaves the agent.

mod bounded_map;
mod content;
mod repairs;
mod sack;
mod timestamps;
mod violation;

pub use self::content::Invariants;
pub use self::violation::Violation;

use self::repairs::Repairs;
use self::sack::Sack;
use self::timestamps::Timestamps;
use crate::agents::link_protocol::LinkProtocol;
use crate::packet::{LinkType, Packet};
use crate::port::Port;
use crate::wire::tcp::Segment;

/// Checks the invariants of one agent. For one end of a link protocol, the packets inside its
/// frames are checked at the air port.
#[derive(Debug)]
pub struct Checker {
    invariants: Invariants,
    sack: Sack,
    timestamps: Timestamps,
    payload: Option<fn(&Packet) -> Option<Packet>>,
    recovers: Option<fn(&Packet) -> bool>,
    /// Whether a frame has entered from which packets are recovered that never enter.
    has_recovered: bool,
    repairs: Option<Repairs>,
}

impl Checker {
    /// A checker of an agent with this bound ([`crate::Agent::repair_credit`]), or of one end of
    /// `link`.
    pub fn new(link: Option<&LinkProtocol>, repair_credit: Option<u64>) -> Self {
        Self {
            invariants: Invariants::default(),
            sack: Sack::default(),
            timestamps: Timestamps::default(),
            payload: link.map(|link| link.payload),
            recovers: link.map(|link| link.recovers),
            has_recovered: false,
            repairs: repair_credit.map(Repairs::new),
        }
    }

    /// The agent is another one from now on, with this bound of its own.
    pub fn agent_replaced(&mut self, repair_credit: Option<u64>) {
        self.repairs = repair_credit.map(Repairs::new);
    }

    /// Notes a packet from `from` that is about to enter the agent.
    pub fn enters(&mut self, from: Port, packet: &Packet) {
        if let Some(repairs) = &mut self.repairs {
            repairs.enters(from, packet);
        }
        match self.payload.filter(|_| packet.link_type() == LinkType::Frame) {
            None => self.enters_whole(packet),
            Some(payload) => {
                self.has_recovered |= self.recovers.is_some_and(|recovers| recovers(packet));
                if let Some(packet) = payload(packet) {
                    self.enters_whole(&packet);
                }
            }
        }
    }

    fn enters_whole(&mut self, packet: &Packet) {
        self.invariants.enters(packet);
        if let Ok(segment) = Segment::parse(packet) {
            self.sack.enters(&segment);
            self.timestamps.enters(&segment);
        }
    }

    /// Checks a packet that the agent has originated for `to`; [`Self::leaves`] checks the rest.
    ///
    /// # Errors
    /// The rule that was broken.
    pub fn originates(&mut self, to: Port, packet: &Packet) -> Result<(), Violation> {
        self.repairs.as_mut().map_or(Ok(()), |repairs| repairs.originates(to, packet))
    }

    /// Checks a packet that leaves the agent towards `to`.
    ///
    /// # Errors
    /// The rule that was broken.
    pub fn leaves(&self, to: Port, packet: &Packet) -> Result<(), Violation> {
        match self.payload.filter(|_| packet.link_type() == LinkType::Frame) {
            Some(payload) => {
                payload(packet).map_or(Ok(()), |packet| self.leaves_whole(to, &packet))
            }
            None => self.leaves_whole(to, packet),
        }
    }

    /// Of packets that were recovered, and never entered, only payload that has entered with other
    /// bytes is wrong: whether theirs is right is seen where both ends are.
    fn leaves_whole(&self, to: Port, packet: &Packet) -> Result<(), Violation> {
        match self.check(to, packet) {
            Err(violation)
                if self.has_recovered
                    && to == Port::Wired
                    && !matches!(violation, Violation::PayloadChanged { .. }) =>
            {
                Ok(())
            }
            result => result,
        }
    }

    fn check(&self, to: Port, packet: &Packet) -> Result<(), Violation> {
        self.invariants.leaves(to, packet)?;
        let Ok(segment) = Segment::parse(packet) else { return Ok(()) };
        self.sack.leaves(to, &segment)?;
        self.timestamps.leaves(to, &segment)
    }
}
