//! Proportional rate reduction (RFC 6937, RFC 9937): the window shrinks to the threshold with each
//! segment that leaves the network, and not at once.

/// One reduction. All numbers are segments.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reduction {
    /// The window before.
    pub(super) from: u64,
    /// Segments delivered and sent since.
    delivered: u64,
    sent: u64,
}

impl Reduction {
    /// The window was `from`.
    pub(super) fn new(from: u64) -> Self {
        Self { from, delivered: 0, sent: 0 }
    }

    /// A segment left.
    pub(super) fn sent(&mut self) {
        self.sent += 1;
    }

    /// The window after an ACK that delivered this many. `is_safe`: the ACK advances and reports no
    /// new loss; then the window grows back as in slow start (PRR-SSRB).
    pub(super) fn window(
        &mut self,
        in_flight: u64,
        ssthresh: u64,
        delivered: u64,
        is_safe: bool,
    ) -> Option<u64> {
        if delivered == 0 || self.from == 0 {
            return None;
        }
        self.delivered += delivered;
        let allowed = if in_flight > ssthresh {
            (ssthresh * self.delivered).div_ceil(self.from).saturating_sub(self.sent)
        } else {
            let behind = self.delivered.saturating_sub(self.sent).max(delivered);
            (behind + u64::from(is_safe)).min(ssthresh - in_flight)
        };
        // The fast retransmit is never held back.
        Some(in_flight + allowed.max(u64::from(self.sent == 0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seven_of_ten_acks_let_a_segment_leave() {
        let mut reduction = Reduction::new(10);
        let (mut in_flight, mut sent) = (10, 0);
        for _ in 0..10 {
            in_flight -= 1;
            let window = reduction.window(in_flight, 7, 1, false).unwrap();
            while in_flight < window {
                in_flight += 1;
                sent += 1;
                reduction.sent();
            }
        }
        assert_eq!((sent, in_flight), (7, 7));
    }

    #[test]
    fn below_the_threshold_it_grows_by_what_is_delivered_and_one_if_that_is_safe() {
        let window =
            |is_safe| Reduction { from: 10, delivered: 4, sent: 4 }.window(2, 7, 1, is_safe);
        assert_eq!((window(false), window(true)), (Some(3), Some(4)));
        // Never beyond the threshold.
        assert_eq!(Reduction { from: 10, delivered: 9, sent: 1 }.window(2, 7, 1, true), Some(7));
    }

    #[test]
    fn the_fast_retransmit_leaves_at_once() {
        assert_eq!(Reduction::new(10).window(9, 2, 1, false), Some(10));
        assert_eq!(Reduction::new(10).window(9, 2, 0, false), None);
    }
}
