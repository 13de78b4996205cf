//! `packet_monitor_module`: is a packet of the host new, or has it come before
//! [lack §3.2 S1-10 S1-11 S1-12]?
//!
//! For each connection the end of the last segment is recorded. Of more connections than the table
//! has places for, the one that came first is forgotten, and taken for a new one.

use crate::agents::arq::View;
use crate::wire::seq::SeqNumber;
use crate::wire::tcp::Flags;
use alloc::collections::{BTreeMap, VecDeque};

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
    /// New, behind a segment that was lost before this station: from and to these numbers.
    OutOfSequence { from: SeqNumber, to: SeqNumber },
    /// All of it came before, or it fills a gap.
    Duplicate,
}

/// The last sequence number of each connection.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Monitor {
    /// The end of the last segment, by a hash of the connection's addresses and ports.
    ends: BTreeMap<u64, SeqNumber>,
    /// The connections as they came.
    order: VecDeque<u64>,
    limit: usize,
}

impl Monitor {
    /// No connection is known; at most `connections` will be.
    pub(super) fn new(connections: usize) -> Self {
        let limit = connections.clamp(1, MAX_CONNECTIONS);
        Self { ends: BTreeMap::new(), order: VecDeque::new(), limit }
    }

    /// Compares a packet with those before it, and records it.
    pub(super) fn judge(&mut self, view: &View) -> News {
        let Some((seq, flags)) = view.tcp.filter(|_| view.payload_len > 0) else {
            return News::InSequence;
        };
        let end = seq + view.payload_len;
        let Some(last) = self.ends.get_mut(&view.hash) else {
            self.record(view.hash, end);
            return News::InSequence;
        };
        let advance = end.offset_from(*last);
        let is_syn = flags.intersects(Flags::SYN);
        if !is_syn && advance <= 0 && advance.unsigned_abs() < WINDOW {
            return News::Duplicate;
        }
        let from = core::mem::replace(last, end);
        let skipped = seq.offset_from(from);
        let is_gap = !is_syn && skipped > 0 && skipped.unsigned_abs() < WINDOW;
        if is_gap { News::OutOfSequence { from, to: seq } } else { News::InSequence }
    }

    /// Records a connection that is not known.
    fn record(&mut self, hash: u64, end: SeqNumber) {
        if self.order.len() >= self.limit
            && let Some(oldest) = self.order.pop_front()
        {
            self.ends.remove(&oldest);
        }
        self.order.push_back(hash);
        self.ends.insert(hash, end);
    }

    /// The identity of a segment, by which its retransmission is recognized; 0 if it has none.
    pub(super) fn identity(view: &View) -> u64 {
        let Some((seq, _)) = view.tcp.filter(|_| view.payload_len > 0) else { return 0 };
        let words = u64::from(seq.0) << 32 | u64::from(view.payload_len);
        (view.hash.rotate_left(17) ^ words).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1
    }
}
