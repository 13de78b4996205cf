//! What a runner must know of an agent of which the air hop needs one at each end.

use super::tulip::compression::Compressor;
use crate::packet::Packet;

/// A link protocol.
#[derive(Debug)]
pub struct LinkProtocol {
    /// Bytes that a frame is longer than the packet that it carries, at most.
    pub frame_overhead: usize,
    /// What a frame carries.
    pub carries: fn(&Packet) -> Carried,
    /// Whether the agent makes use of a damaged frame.
    pub takes_damaged: bool,
    /// The header compression of its frames, if it has one: of an end that sends the short form, or
    /// only reads it.
    pub compressor: Option<fn(bool, u64) -> Compressor>,
}

/// What a frame carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Carried {
    /// Nothing of the network layer's; or the frame cannot be read.
    Nothing,
    /// A packet of the network layer.
    Packet(Packet),
    /// A combination, from which packets are recovered that no frame has carried to this end.
    Combination,
}

impl From<Option<Packet>> for Carried {
    fn from(packet: Option<Packet>) -> Self {
        packet.map_or(Self::Nothing, Self::Packet)
    }
}

impl Carried {
    /// The packet.
    pub fn packet(self) -> Option<Packet> {
        match self {
            Self::Packet(packet) => Some(packet),
            Self::Nothing | Self::Combination => None,
        }
    }
}
