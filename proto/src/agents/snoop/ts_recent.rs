//! The mobile's TS.Recent by the time at which a packet arrives [C-12].

use crate::wire::seq::is_before;

/// What is known of the mobile's TS.Recent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TsRecent {
    /// The TSecr of the mobile's last ACK.
    echoed: Option<u32>,
}

/// What the sender has retransmitted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Resent {
    /// The lowest position that may be under way: data above it may arrive later.
    lowest: u64,
    /// The TSval of the newest retransmission.
    timestamp: u32,
}

impl Resent {
    /// After the sender has retransmitted data at this position, of which the mobile has
    /// acknowledged what is below `acked`.
    pub(super) fn after(last: Option<Self>, position: u64, acked: u64, timestamp: u32) -> Self {
        let under_way = last.filter(|last| last.lowest >= acked);
        let lowest = under_way.map_or(position, |last| last.lowest.min(position));
        Self { lowest, timestamp }
    }
}

impl TsRecent {
    /// An ACK of the mobile has this TSecr, if it has one.
    pub(super) fn acked(&mut self, echo: Option<u32>) {
        self.echoed = echo;
    }

    /// Whether the mobile would refuse data with this timestamp (PAWS, RFC 7323 §5.3).
    pub(super) fn refuses(&self, timestamp: u32) -> bool {
        self.echoed.is_some_and(|recent| is_before(timestamp, recent))
    }

    /// The timestamp with which the mobile takes data at this position that had this one: when the
    /// data arrives, the mobile may have what the sender has retransmitted below.
    pub(super) fn renewed(&self, timestamp: u32, position: u64, resent: Option<Resent>) -> u32 {
        let below = resent.filter(|resent| resent.lowest < position);
        let recent = [self.echoed, below.map(|resent| resent.timestamp)];
        recent.into_iter().flatten().fold(timestamp, |newest, recent| {
            if is_before(newest, recent) { recent } else { newest }
        })
    }
}
