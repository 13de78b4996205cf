//! What a runner must know of an agent of which the air hop needs one at each end.

use super::tulip::compression::Compressor;
use crate::packet::Packet;

/// A link protocol.
#[derive(Debug)]
pub struct LinkProtocol {
    /// Bytes that a frame is longer than the packet that it carries, at most.
    pub frame_overhead: usize,
    /// The packet of the network layer that a frame carries, if it carries one.
    pub payload: fn(&Packet) -> Option<Packet>,
    /// Whether packets are recovered from a frame that it does not carry.
    pub recovers: fn(&Packet) -> bool,
    /// Whether the agent makes use of a damaged frame.
    pub takes_damaged: bool,
    /// The header compression of its frames, if it has one: of an end that sends the short form, or
    /// only reads it.
    pub compressor: Option<fn(bool, u64) -> Compressor>,
}
