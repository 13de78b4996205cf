//! The agent at a base station: which holes are masked, and for how long [C-7 to C-10, C-13, C-31].

use super::cache::{Cached, MAX_EXAMINED};
use super::decision::Sight;
use super::flow::Flow;
use super::hop::Hop;
use super::settings::Settings;
use super::strategy::{Progress, Strategy, Visible};
use crate::time::Instant;
use crate::wire::seq::SeqNumber;
use crate::wire::tcp::Segment;
use core::time::Duration;

/// A mask is brief up to a fifth of the sender's round trip: it costs less than it avoids [C-31].
const BRIEF: u32 = 5;

/// The late repairs of a round trip from which repairs go twice [C-30].
const FEW_LATE: f32 = 0.05;

/// The strategy at a base station.
pub(super) struct BaseStation;

impl Strategy for BaseStation {
    /// [C-13] The longest time for which a hole may be masked: that of two repairs, or for as long
    /// as that is cheap; the limit for a sender whose round trip is unknown, and which without
    /// timestamps cannot undo what it does too early.
    fn hold_budget(&self, flow: &Flow, settings: &Settings) -> Duration {
        match flow.sender.wired.round_trip() {
            Some(_) if flow.uses_sack => {
                (flow.repair_time() * 2).max(flow.cheap_mask()).min(settings.hold_limit)
            }
            // A mask that cannot be given up lasts for as long as repairs now take.
            Some(_) => (flow.air.srtt() * 2).min(settings.hold_limit),
            None => settings.hold_limit,
        }
    }

    /// A hole is masked if it was found missing, the sender has not retransmitted it, and the hold
    /// budget is not spent [C-7, C-10]. In a recovery the sender sees all losses: without the SACK
    /// blocks above a masked hole it would take its window for lost [C-22].
    fn sight(&self, flow: &Flow, cached: &Cached, now: Instant, budget: Duration) -> Sight {
        if cached.start < flow.sender.told.recovery_point {
            Sight::ShownRecovery
        } else if cached.trouble.resent {
            Sight::ShownResent
        } else if cached.trouble.missing_since.is_none_or(|since| now >= since + budget) {
            Sight::ShownLate
        } else {
            flow.policy(budget)
        }
    }

    /// [C-7, C-8, C-9] All but the loss signals for the lowest masked hole and above.
    fn visible(
        &self,
        flow: &Flow,
        now: Instant,
        budget: Duration,
        segment: &Segment,
        progress: Progress,
    ) -> Visible {
        let Some(hole) = flow.lowest_masked(now, budget).map(Cached::span) else {
            return Visible::All;
        };
        let limit = hole.start;
        let blocks = segment.options.sack.as_slice();
        let shows_loss = |left: SeqNumber| flow.position(left).is_some_and(|left| left >= limit);
        let loss_signals = blocks.iter().filter(|(left, _)| shows_loss(*left)).count();
        if loss_signals == 0 && flow.uses_sack {
            return Visible::All;
        }
        if progress.is_answer {
            return if loss_signals > 0 { Visible::Answer(hole) } else { Visible::All };
        }
        let is_only_loss_signal = !progress.advances && loss_signals == blocks.len();
        if is_only_loss_signal && flow.says_nothing_else(segment) {
            return Visible::Nothing(limit);
        }
        // [C-16] A signed ACK may be dropped or passed, never edited.
        if loss_signals == 0 || segment.options.signed {
            return Visible::All;
        }
        Visible::Below(limit)
    }

    fn is_replaced(&self, _: &Flow, _: &Segment) -> bool {
        true
    }

    /// A higher hole does not prolong the suppression of an ACK whose own hole is no longer masked.
    fn release_due(&self, flow: &Flow, now: Instant, budget: Duration) -> Option<Instant> {
        let suppressed = flow.suppressed.as_ref()?;
        let hole = flow.lowest_masked(now, budget).filter(|hole| hole.start <= suppressed.hole);
        let due = hole.map_or(now, |hole| hole.trouble.missing_since.unwrap_or(now) + budget);
        Some(due.min(suppressed.deadline))
    }

    /// No queue stands beyond the agent nor in it, and a second repair would often come too late.
    fn sends_copies(&self, flow: &Flow, hop: &Hop) -> bool {
        hop.is_short() && flow.has_spare_airtime() && flow.late_repairs(hop.air_loss()) >= FEW_LATE
    }
}

impl Flow {
    /// The time until the acknowledgment of a repair, where no queue stands beyond the agent.
    fn repair_time(&self) -> Duration {
        self.outstanding.repair_wait + self.air.min()
    }

    /// [C-31] For how long a mask is cheap. Where the bottleneck is beyond the agent, it idles in a
    /// mask that its queue does not outlast, and must take the burst in which the mask ends.
    fn cheap_mask(&self) -> Duration {
        match self.round_trip() {
            Some(round_trip) if !self.has_queue_beyond => round_trip / BRIEF,
            _ => Duration::ZERO,
        }
    }

    /// What the sender sees of holes under repair as such, if a mask takes this time [C-31].
    fn policy(&self, budget: Duration) -> Sight {
        if !self.uses_sack {
            return Sight::MaskedNoSack;
        }
        let Some(round_trip) = self.round_trip() else { return Sight::MaskedNoRoundTrip };
        // The bottleneck is beyond the agent, and idles in a mask, or drops the burst at its end.
        if self.has_queue_beyond && self.sender.waits() {
            return Sight::ShownPatient;
        }
        if budget <= round_trip / BRIEF { Sight::MaskedBrief } else { Sight::ShownPatient }
    }

    /// Whether the loss of a cached range is masked.
    fn is_masked(&self, cached: &Cached, now: Instant, budget: Duration) -> bool {
        let is_left = cached.trouble.is_congestion || cached.trouble.is_disputed;
        !is_left && BaseStation.sight(self, cached, now, budget).is_masked()
    }

    /// The lowest masked hole: loss signals above it are suppressed.
    ///
    /// The sender must see loss signals below it: for holes that are not cached, that the sender
    /// has retransmitted, or whose hold budget is spent. The search ends after [`MAX_EXAMINED`]
    /// ranges: the loss signals are then forwarded.
    fn lowest_masked(&self, now: Instant, budget: Duration) -> Option<&Cached> {
        if !self.policy(budget).is_masked() {
            return None;
        }
        if self.outstanding.sacked.is_empty() {
            // Without SACK, duplicate ACKs signal the loss of the first range only.
            let is_first = |first: &&Cached| !self.uses_sack && first.start == self.acked;
            let first = self.outstanding.cache.get(0).filter(is_first)?;
            return Some(first).filter(|first| self.is_masked(first, now, budget));
        }
        let holes = self.outstanding.holes(self.acked).take(MAX_EXAMINED);
        let cache = &self.outstanding.cache;
        holes
            .flat_map(|hole| cache.iter_overlapping(hole.start, hole.end))
            .take(MAX_EXAMINED)
            .find(|cached| self.is_masked(cached, now, budget))
    }

    /// [C-30] How many repairs of a round trip come later than any sender waits (RFC 8985 §6.2), if
    /// the air loses the share `loss` of all packets: a sender that has learned to wait does so for
    /// a round trip, and so for as many repairs as that has round trips of the air.
    fn late_repairs(&self, loss: f32) -> f32 {
        let Some(round_trip) = self.round_trip() else { return 0.0 };
        let air = self.air.srtt().max(Duration::from_micros(1));
        let repairs = libm::floorf(round_trip.div_duration_f32(air).min(64.0));
        self.outstanding.cache.segments() as f32 * libm::powf(loss, 1.0 + repairs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::snoop::flow::tests::flow;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// A flow with SACK whose round trips by wire and over the air are known.
    fn measured(wired: Duration, air: Duration) -> Flow {
        let mut flow = flow(0);
        flow.air.sample(Instant::ZERO, air);
        flow.uses_sack = true;
        flow.sender.wired.ack_left(Instant::ZERO, 7);
        flow.sender.wired.data_came(Instant::ZERO + wired, 7);
        flow
    }

    fn budget(flow: &Flow) -> Duration {
        BaseStation.hold_budget(flow, &Settings::default())
    }

    #[test]
    fn a_mask_takes_the_time_of_two_repairs_or_what_is_cheap() {
        for (wired, air, queue, limit) in [
            (ms(190), ms(10), true, ms(20)),
            (ms(190), ms(10), false, ms(40)),
            (ms(80), ms(30), false, ms(60)),
            (ms(80), ms(100), false, ms(150)),
        ] {
            let mut flow = measured(wired, air);
            flow.has_queue_beyond = queue;
            assert_eq!(budget(&flow), limit, "{wired:?} by wire, {air:?} over the air");
            let is_brief = limit <= (wired + air) / BRIEF;
            assert_eq!(flow.policy(limit) == Sight::MaskedBrief, is_brief);
        }
    }

    #[test]
    fn a_sender_of_unknown_round_trip_waits_for_the_limit() {
        let mut flow = flow(0);
        flow.uses_sack = true;
        assert_eq!(budget(&flow), Settings::default().hold_limit);
    }

    #[test]
    fn where_repairs_wait_in_the_interface_a_mask_is_not_brief() {
        let mut flow = measured(ms(190), ms(10));
        for (wait, sight) in [(ms(9), Sight::MaskedBrief), (ms(11), Sight::ShownPatient)] {
            flow.outstanding.repair_wait = wait;
            assert_eq!(flow.policy(budget(&flow)), sight, "{wait:?}");
        }
    }
}
