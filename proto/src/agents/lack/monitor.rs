//! `packet_monitor_module`: is a packet of the host new, or has it come before
//! [lack §3.2 S1-10 S1-11 S1-12]?
//!
//! For each connection the end of the last segment is recorded, in a table of fixed size: a
//! connection that loses its place there is taken for a new one.

use crate::agents::arq::View;
use crate::wire::seq::SeqNumber;
use crate::wire::tcp::Flags;
use alloc::vec;
use alloc::vec::Vec;

/// The most connections in memory.
const MAX_CONNECTIONS: usize = 1_024;
/// A segment so many bytes below the last one is of another connection with the same addresses and
/// ports.
const WINDOW: u32 = 1 << 26;

/// What a packet is to this station.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum News {
    /// New and in sequence, or not TCP data.
    InSequence,
    /// New, behind a segment that was lost before this station.
    OutOfSequence,
    /// All of it came before, or it fills a gap.
    Duplicate,
}

/// The last sequence number of each connection.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Monitor {
    places: Vec<Place>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Place {
    /// The hash of the connection's addresses and ports.
    flow: u64,
    /// The end of its last segment.
    end: SeqNumber,
}

impl Monitor {
    /// No connection is known; at most `connections` will be.
    pub(super) fn new(connections: usize) -> Self {
        let count = connections.clamp(1, MAX_CONNECTIONS);
        Self { places: vec![Place { flow: 0, end: SeqNumber(0) }; count] }
    }

    /// Compares a packet with those before it, and records it.
    pub(super) fn judge(&mut self, view: &View) -> News {
        let Some((seq, flags)) = view.tcp.filter(|_| view.payload_len > 0) else {
            return News::InSequence;
        };
        let count = self.places.len();
        let place = &mut self.places[view.hash as usize % count];
        let end = seq + view.payload_len;
        let is_known = place.flow == view.hash && !flags.intersects(Flags::SYN);
        let advance = end.offset_from(place.end);
        if is_known && advance <= 0 && advance.unsigned_abs() < WINDOW {
            return News::Duplicate;
        }
        let skipped = seq.offset_from(place.end);
        *place = Place { flow: view.hash, end };
        let is_gap = is_known && skipped > 0 && skipped.unsigned_abs() < WINDOW;
        if is_gap { News::OutOfSequence } else { News::InSequence }
    }

    /// The identity of a segment, by which its retransmission is recognized; 0 if it has none.
    pub(super) fn identity(view: &View) -> u64 {
        let Some((seq, _)) = view.tcp.filter(|_| view.payload_len > 0) else { return 0 };
        let words = u64::from(seq.0) << 32 | u64::from(view.payload_len);
        (view.hash.rotate_left(17) ^ words).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1
    }
}
