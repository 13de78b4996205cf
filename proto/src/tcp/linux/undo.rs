//! Whether a recovery was for nothing: by timestamps (Eifel, RFC 3522) and by duplicate SACKs
//! (RFC 3708), as Linux judges it.

use crate::wire::seq::is_before;

/// The state before a reduction.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Undo {
    /// `una` when the reduction began; none if there is nothing to undo.
    pub(super) marker: Option<u64>,
    /// Retransmissions that are not known to be needless; none before the first.
    retransmissions: Option<u32>,
    /// The timestamp of the first retransmission.
    stamp: Option<u32>,
    /// The threshold before, in bytes; none if this reduction did not change it.
    pub(super) ssthresh: Option<u64>,
    /// The window before, in bytes.
    pub(super) cwnd: u64,
}

impl Undo {
    /// A reduction begins while `on_their_way` segments that were sent again are in flight.
    pub(super) fn begin(&mut self, una: u64, on_their_way: u32) {
        self.marker = Some(una);
        self.retransmissions = Some(on_their_way).filter(|count| *count > 0);
    }

    /// A segment was sent again at this time by the timestamp clock.
    pub(super) fn resent(&mut self, stamp: u32) {
        self.stamp.get_or_insert(stamp);
        self.retransmissions = Some(self.retransmissions.unwrap_or(0) + 1);
    }

    /// No retransmission is in flight any more.
    pub(super) fn forget_stamp(&mut self) {
        self.stamp = None;
    }

    /// So many retransmissions arrived where the original had arrived, the last ending at `end`.
    pub(super) fn duplicate(&mut self, end: u64, segments: u32) {
        if let (Some(count), true) =
            (&mut self.retransmissions, self.marker.is_some_and(|marker| end > marker))
        {
            *count = count.saturating_sub(segments);
        }
    }

    /// Whether every retransmission was needless.
    pub(super) fn all_were_needless(&self) -> bool {
        self.marker.is_some() && self.retransmissions == Some(0)
    }

    /// Whether what was taken for lost was only late: an ACK echoes a stamp from before the first
    /// retransmission, or nothing was sent again.
    pub(super) fn was_only_late(&self, echo: Option<u32>) -> bool {
        self.stamp.is_none_or(|stamp| echo.is_some_and(|echo| is_before(echo, stamp)))
    }

    /// Whether the reduction may be undone.
    pub(super) fn is_due(&self, echo: Option<u32>) -> bool {
        self.marker.is_some() && (self.retransmissions == Some(0) || self.was_only_late(echo))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echo_from_before_the_first_retransmission_undoes() {
        let mut undo = Undo::default();
        undo.begin(1, 0);
        undo.resent(100);
        undo.resent(150);
        assert!(!undo.is_due(Some(100)) && !undo.is_due(None));
        assert!(undo.is_due(Some(99)));
        // Timestamps wrap.
        undo.forget_stamp();
        undo.resent(5);
        assert!(undo.is_due(Some(u32::MAX)));
    }

    #[test]
    fn a_duplicate_of_every_retransmission_undoes() {
        let mut undo = Undo::default();
        undo.begin(1001, 1);
        undo.resent(100);
        undo.duplicate(2001, 1);
        assert!(!undo.all_were_needless());
        // One from before the recovery is not of it.
        undo.duplicate(1001, 1);
        assert!(!undo.all_were_needless());
        undo.duplicate(3001, 1);
        assert!(undo.all_were_needless());
    }

    #[test]
    fn without_a_retransmission_there_is_nothing_needless() {
        let mut undo = Undo::default();
        undo.begin(1, 0);
        undo.duplicate(1001, 1);
        assert!(!undo.all_were_needless());
    }
}
