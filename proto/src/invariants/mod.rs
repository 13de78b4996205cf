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
use crate::agents::link_protocol::{Carried, LinkProtocol};
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
    carries: Option<fn(&Packet) -> Carried>,
    /// Whether a combination has entered, from which packets are recovered that never enter.
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
            carries: link.map(|link| link.carries),
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
        match self.carried_by(packet) {
            None => self.enters_whole(packet),
            Some(Carried::Packet(packet)) => self.enters_whole(&packet),
            Some(Carried::Combination) => self.has_recovered = true,
            Some(Carried::Nothing) => (),
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
        match self.carried_by(packet) {
            None => self.leaves_whole(to, packet),
            Some(Carried::Packet(packet)) => self.leaves_whole(to, &packet),
            Some(Carried::Combination | Carried::Nothing) => Ok(()),
        }
    }

    /// What a frame of the link carries; `None` for a packet of the network layer.
    fn carried_by(&self, packet: &Packet) -> Option<Carried> {
        let carries = self.carries.filter(|_| packet.link_type() == LinkType::Frame)?;
        Some(carries(packet))
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
