//! The mobile's TS.Recent by the time at which a packet arrives [C-12].

use crate::wire::seq::is_before;

/// What is known of the mobile's TS.Recent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TsRecent {
    /// The TSecr of the mobile's last ACK.
    echoed: Option<u32>,
    /// The lowest position of the sender's retransmissions that may be under way, and the TSval of
    /// the newest of them: data above it may arrive later.
    resent: Option<(u64, u32)>,
}

impl TsRecent {
    /// An ACK of the mobile has this TSecr, if it has one.
    pub(super) fn acked(&mut self, echo: Option<u32>) {
        self.echoed = echo;
    }

    /// The sender has retransmitted data at this position, of which the mobile has acknowledged
    /// what is below `acked`.
    pub(super) fn resent(&mut self, position: u64, acked: u64, timestamp: u32) {
        let lowest = self.resent.map(|(lowest, _)| lowest).filter(|lowest| *lowest >= acked);
        self.resent = Some((lowest.map_or(position, |lowest| lowest.min(position)), timestamp));
    }

    /// Whether the mobile would refuse data with this timestamp (PAWS, RFC 7323 §5.3).
    pub(super) fn refuses(&self, timestamp: u32) -> bool {
        self.echoed.is_some_and(|recent| is_before(timestamp, recent))
    }

    /// The timestamp with which the mobile takes what had this one.
    pub(super) fn renewed(&self, timestamp: u32) -> u32 {
        self.echoed.filter(|_| self.refuses(timestamp)).unwrap_or(timestamp)
    }

    /// TS.Recent when data at this position arrives: by then the mobile may have what the sender
    /// has retransmitted below.
    pub(super) fn at(&self, position: u64) -> Option<u32> {
        let below = self.resent.filter(|(lowest, _)| *lowest < position).map(|(_, stamp)| stamp);
        match (self.echoed, below) {
            (Some(recent), Some(below)) if is_before(below, recent) => Some(recent),
            (recent, below) => below.or(recent),
        }
    }
}
