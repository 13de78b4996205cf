//! What a base station must remember to report holes to the mobile [S0-40].

use super::kept::KeptData;
use crate::packet::Packet;
use crate::ranges::{Ranges, Span};
use crate::time::Instant;

/// What is known for negative acknowledgments.
#[derive(Clone, Debug, Default)]
pub(super) struct Nack {
    /// Whether the fixed host has sent SACK blocks, which shows that the mobile understands them
    /// (RFC 2018 §2) [S0-42].
    pub(super) is_permitted: bool,
    /// The last ACK of the fixed host, which a negative acknowledgment repeats.
    pub(super) last_ack: Option<Packet>,
    /// What the fixed host has acknowledged selectively.
    pub(super) sacked: Ranges,
    pub(super) kept: KeptData,
    /// The position of the highest hole that was reported.
    pub(super) reported: u64,
    /// The packets since the newest hole that is not reported.
    pub(super) above: u32,
    /// The end of the silence after which it is.
    pub(super) due: Option<Instant>,
}

impl Nack {
    pub(super) fn memory(&self) -> usize {
        self.kept.memory()
    }

    pub(super) fn packets(&self) -> usize {
        self.kept.len()
    }

    /// The fixed host's ACK, at position `ack`, has departed to the mobile.
    pub(super) fn acknowledged(&mut self, ack: u64, packet: &Packet) {
        self.last_ack = Some(packet.clone());
        self.kept.acknowledged(ack);
        self.sacked.remove_below(ack);
    }

    /// The fixed host's SACK block.
    pub(super) fn sacked(&mut self, block: Span) {
        self.is_permitted = true;
        if self.sacked.len() <= self.kept.len() {
            self.sacked.insert(block);
        }
    }
}
