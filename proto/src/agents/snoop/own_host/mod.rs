//! The agent in the sending host: it sees a loss when its TCP sees it, and the repair takes a whole
//! round trip of that TCP, so nothing is masked.
//!
//! A loss signal waits for a part of the round trip [C-28], needless retransmissions are withheld
//! and reported as duplicates ([C-29], `duplicates.rs`), and a base station may tell what the air
//! has lost ([S0-40], `nacks.rs`).

mod duplicates;
mod nacks;

pub(super) use duplicates::withheld;

use super::cache::Cached;
use super::decision::Sight;
use super::flow::Flow;
use super::hop::Hop;
use super::settings::Settings;
use super::strategy::{Progress, Strategy, Visible};
use crate::time::Instant;
use crate::wire::seq::SeqNumber;
use crate::wire::tcp::Segment;
use core::time::Duration;

/// The strategy in the sending host.
pub(super) struct OwnHost;

impl Strategy for OwnHost {
    fn hold_budget(&self, flow: &Flow, settings: &Settings) -> Duration {
        flow.air.min().mul_f64(settings.hold_own).min(settings.hold_limit)
    }

    fn sight(&self, _: &Flow, _: &Cached, _: Instant, _: Duration) -> Sight {
        Sight::ShownAlways
    }

    fn visible(
        &self,
        flow: &Flow,
        _: Instant,
        budget: Duration,
        segment: &Segment,
        progress: Progress,
    ) -> Visible {
        let waits = !progress.is_answer
            && !progress.advances
            && !budget.is_zero()
            && flow.is_loss_signal(segment)
            && !flow.reports_duplicates(segment);
        if waits { Visible::Nothing(flow.acked) } else { Visible::All }
    }

    /// Whether all blocks of the withheld ACK are in the newer one.
    fn is_replaced(&self, flow: &Flow, segment: &Segment) -> bool {
        let Some(suppressed) = &flow.suppressed else { return true };
        let Ok(withheld) = Segment::parse(&suppressed.packet) else { return true };
        let is_reported = |&(left, right): &(SeqNumber, SeqNumber)| {
            let mut newer = segment.options.sack.as_slice().iter();
            right <= segment.ack || newer.any(|block| block.0 <= left && right <= block.1)
        };
        withheld.options.sack.as_slice().iter().all(is_reported)
    }

    fn release_due(&self, flow: &Flow, _: Instant, _: Duration) -> Option<Instant> {
        flow.suppressed.as_ref().map(|suppressed| suppressed.deadline)
    }

    /// A base station that reports losses shows that of a repair soon enough.
    fn sends_copies(&self, flow: &Flow, _: &Hop) -> bool {
        !flow.own.is_reported && flow.has_spare_airtime()
    }
}

impl Flow {
    /// Whether the ACK says nothing but which data above its number has arrived.
    fn is_loss_signal(&self, segment: &Segment) -> bool {
        let blocks = segment.options.sack.as_slice();
        let is_above = |left: SeqNumber| self.position(left).is_some_and(|left| left > self.acked);
        !blocks.is_empty()
            && blocks.iter().all(|(left, _)| is_above(*left))
            && self.says_nothing_else(segment)
    }
}
