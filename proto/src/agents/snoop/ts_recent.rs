//! The mobile's TS.Recent by the time at which a repair arrives [C-12].

use super::rtt::is_before;

/// What the sender has retransmitted: the mobile's TS.Recent may be that of a retransmission by the
/// time at which data above it arrives [C-12].
#[derive(Clone, Copy, Debug)]
pub(super) struct Resent {
    /// The lowest position that may be under way.
    pub(super) lowest: u64,
    /// The TSval of the newest retransmission.
    pub(super) timestamp: u32,
}

/// [C-12] The mobile's TS.Recent when data at this position arrives: by then the mobile may have
/// what the sender has retransmitted below.
pub(super) fn recent_at(position: u64, recent: Option<u32>, resent: Option<Resent>) -> Option<u32> {
    let below = resent.filter(|resent| resent.lowest < position).map(|resent| resent.timestamp);
    match (recent, below) {
        (Some(recent), Some(below)) if is_before(below, recent) => Some(recent),
        (recent, below) => below.or(recent),
    }
}
