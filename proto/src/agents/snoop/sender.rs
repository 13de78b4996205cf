//! The sender of a flow, as its data shows it to the agent: its round trip, its window, what it was
//! told of congestion, and whether it answers.
//!
//! One clock counts its rounds. What it sends anew in a round trip of its own is its window, while
//! that is what limits it. A sender that has as much in flight after losses as before, such as BBR,
//! gains nothing from a loss that is hidden, and a queue that it fills only grows by repairs
//! [C-22].

use super::patience::Patience;
use crate::ranges::Span;
use crate::rare::{Empty, Rare};
use crate::time::Instant;
use crate::wire::seq::SeqNumber;
use crate::wire::tcp::Segment;
use crate::wired_path::WiredPath;
use core::time::Duration;

/// The round trip of the wired side before its measurement.
pub(super) const UNKNOWN_ROUND_TRIP: Duration = Duration::from_millis(100);
/// Of what was in flight before a loss, the part that a sender keeps at most if it answers: CUBIC
/// keeps 0.7 (RFC 9438 §4.6) and grows until it is measured.
const ANSWERED: f64 = 0.85;
/// The rounds after a recovery that are measured, as many as before it: senders that probe vary
/// what is in flight.
const MEASURED: u8 = 2;
/// From which on the sender counts as one that ignores losses: a loss without an answer counts 2,
/// one with an answer -1. BBR often has less in flight for reasons of its own.
const IGNORED: u8 = 4;

/// What is known of the sender.
#[derive(Clone, Debug, Default)]
pub(super) struct Sender {
    pub(super) wired: WiredPath,
    /// The ACK number of its last packet.
    expects: Option<SeqNumber>,
    /// The begin of the round, and the end of the stream then.
    round: Option<(Instant, u64)>,
    /// What was sent in the last two rounds, in bytes.
    sent: [u32; 2],
    /// The most that was in flight in this round and in the last one: bytes that the mobile has not
    /// acknowledged, selectively or not.
    peak: u32,
    last_peak: u32,
    /// What it was told of congestion.
    pub(super) told: Rare<Told>,
}

/// What a sender was told of congestion, and how it answered. Few flows have any.
#[derive(Clone, Debug)]
pub(super) struct Told {
    /// When its answer to the last loss that was taken for congestion can be here [C-22].
    pub(super) answer_at: Option<Instant>,
    /// The position behind all data that it had sent when it saw that loss: it answers all losses
    /// below by one reduction of its window.
    pub(super) recovery_point: u64,
    episode: Option<Episode>,
    /// The losses that it did not answer, weighted, less those that it answered.
    ignored: u8,
    patience: Patience,
}

impl Empty for Told {
    const EMPTY: &'static Self = &Self {
        answer_at: None,
        recovery_point: 0,
        episode: None,
        ignored: 0,
        patience: Patience::UNKNOWN,
    };
}

/// The most in flight, and the window, of two rounds.
#[derive(Clone, Copy, Debug)]
struct Load {
    in_flight: u32,
    window: u32,
}

/// A loss that the sender was shown.
#[derive(Clone, Copy, Debug)]
struct Episode {
    before: Load,
    /// The position whose acknowledgment ends the recovery.
    end: u64,
    /// The rounds since the recovery.
    rounds: u8,
}

impl Sender {
    /// A packet of the sender departs.
    pub(super) fn packet_came(&mut self, now: Instant, segment: &Segment) {
        self.expects = Some(segment.ack);
        if let Some(timestamps) = segment.options.timestamps {
            self.wired.data_came(now, timestamps.echo);
        }
        if let Some(told) = self.told.there() {
            told.patience.packet_came(now);
        }
    }

    /// Whether it would take a segment of the mobile with this number for the next one.
    pub(super) fn expects(&self, seq: SeqNumber) -> bool {
        self.expects == Some(seq)
    }

    /// It has sent all data below `highest`. Of that the mobile has acknowledged what is below
    /// `acked`, and so many bytes of the rest are in flight. What it sent before it knew of the
    /// last congestion belongs to the recovery that answers that.
    pub(super) fn sent(
        &mut self,
        now: Instant,
        air: Duration,
        highest: u64,
        acked: u64,
        in_flight: u64,
    ) {
        if self.told.answer_at.is_some_and(|at| now <= at) {
            self.told.recovery_point = highest;
        }
        let in_flight = u32::try_from(in_flight).unwrap_or(u32::MAX);
        self.peak = self.peak.max(in_flight);
        let &mut (begin, from) = self.round.get_or_insert((now, highest));
        let round_trip = self.wired_round_trip() + air.max(Duration::from_micros(1));
        let taken = now.since(begin);
        if taken < round_trip {
            return;
        }
        let sent = round_trip.div_duration_f64(taken) * highest.saturating_sub(from) as f64;
        self.sent = [sent as u32, self.sent[0]];
        self.round = Some((now, highest));
        let older = self.last_peak;
        self.last_peak = core::mem::replace(&mut self.peak, in_flight);
        let after = Load { in_flight: self.last_peak.max(older), window: self.rounds() };
        self.measure(acked, after);
    }

    /// A round has ended: whether the last loss that was shown has an answer. A hop that becomes
    /// faster or slower hides it in one of the two measures.
    fn measure(&mut self, acked: u64, after: Load) {
        let Some(told) = self.told.there() else { return };
        let Some(episode) = &mut told.episode else { return };
        episode.rounds += u8::from(acked >= episode.end);
        // The round in which the recovery ended began before its end.
        if episode.rounds <= MEASURED {
            return;
        }
        let before = episode.before;
        let is_less = |after: u32, before: u32| f64::from(after) <= ANSWERED * f64::from(before);
        let has_answered =
            is_less(after.in_flight, before.in_flight) || is_less(after.window, before.window);
        told.ignored = match has_answered {
            true => told.ignored.saturating_sub(1),
            false => (told.ignored + 2).min(IGNORED + 2),
        };
        told.episode = None;
    }

    /// It retransmits a range that was left to it; `highest` is the position behind all that it has
    /// sent.
    pub(super) fn began_recovery(&mut self, highest: u64) {
        let before = Load { in_flight: self.peak.max(self.last_peak), window: self.rounds() };
        self.told.episode.get_or_insert(Episode { before, end: highest, rounds: 0 });
    }

    /// It is shown the hole at this position, over a hop with this round trip.
    pub(super) fn shown(&mut self, now: Instant, air: Duration, hole: u64) {
        let due = answer_at(now, self.wired_round_trip(), air);
        self.told.patience.ask(hole, due);
    }

    /// It has retransmitted these positions; `highest` is the position behind all that it has sent.
    pub(super) fn retransmitted(&mut self, span: Span, highest: u64) {
        self.told.patience.retransmitted(span, highest);
    }

    /// Whether it waits for the repair of a hole that it is shown.
    pub(super) fn waits(&self) -> bool {
        self.told.patience.waits()
    }

    /// Whether the sender ignores losses.
    pub(super) fn ignores_losses(&self) -> bool {
        self.told.ignored >= IGNORED
    }

    /// The window in bytes, 0 if it is not known. In slow start the present round, in which the
    /// sender has sent all data below `highest`, soon has more than the last one.
    pub(super) fn window(&self, highest: u64) -> u64 {
        let is_known = self.wired.round_trip().is_some() && self.rounds() > 0;
        let Some((_, from)) = self.round.filter(|_| is_known) else { return 0 };
        highest.saturating_sub(from).max(self.rounds().into())
    }

    /// What was sent in a round trip.
    fn rounds(&self) -> u32 {
        self.sent[0].max(self.sent[1])
    }

    /// The round trip of the wired side.
    pub(super) fn wired_round_trip(&self) -> Duration {
        self.wired.round_trip().unwrap_or(UNKNOWN_ROUND_TRIP)
    }

    /// A loss is taken for congestion, over a hop with this least round trip; all data below
    /// `highest` was sent before the sender knows.
    pub(super) fn signal(&mut self, now: Instant, air: Duration, highest: u64) {
        self.told.answer_at = Some(answer_at(now, self.wired_round_trip(), air));
        self.told.recovery_point = highest;
    }
}

/// From when on the agent sees what a sender may have sent as an answer to a loss that it is shown
/// now: it takes a packet for lost after three others, or after a quarter of its round trip (RFC
/// 8985 §6.2 step 4).
pub(super) fn answer_at(now: Instant, wired: Duration, air: Duration) -> Instant {
    now + wired + wired.saturating_add(air) / 4
}

#[cfg(test)]
mod tests {
    use super::*;

    const AIR: Duration = Duration::from_millis(20);
    const ROUND_TRIP: Duration = Duration::from_millis(50);

    /// A sender 30 ms beyond the agent.
    fn sender() -> Sender {
        let mut sender = Sender::default();
        sender.wired.ack_left(Instant::ZERO, 1);
        sender.wired.data_came(Instant::ZERO + (ROUND_TRIP - AIR), 1);
        sender
    }

    #[test]
    fn the_window_is_what_a_round_trip_brings() {
        let mut sender = sender();
        let mut highest = 1 << 32;
        for packet in 0..200 {
            assert!(sender.window(highest) == 0 || packet > 49, "{packet}");
            sender.sent(Instant::from_millis(packet), AIR, highest, highest, 0);
            highest += 1_000;
        }
        assert_eq!(sender.window(highest), 50_000);
        sender.sent(Instant::from_millis(1_000), AIR, highest, highest, 0);
        sender.sent(Instant::from_millis(2_000), AIR, highest, highest, 0);
        assert!(sender.window(highest) < 4_000, "an idle sender");
    }

    #[test]
    fn in_slow_start_the_window_is_that_of_the_present_round() {
        let mut sender = sender();
        let mut highest = 1 << 32;
        for packet in 0..200 {
            sender.sent(Instant::from_millis(packet), AIR, highest, highest, 0);
            // Twice as many in each round.
            highest += 1_000 << (packet / 50);
        }
        assert_eq!(sender.window(highest), 400_000);
        assert_eq!(sender.rounds(), 200_000);
    }

    #[test]
    fn what_is_sent_before_the_answer_can_be_here_belongs_to_the_recovery() {
        let mut sender = sender();
        sender.signal(Instant::from_millis(100), AIR, 1 << 32);
        // 30 ms by wire, and a quarter of the whole round trip.
        for (millis, expected) in [(142, 5_000), (143, 5_000)] {
            let highest = (1 << 32) + u64::from(millis == 143) * 1_000 + 5_000;
            sender.sent(Instant::from_millis(millis), AIR, highest, 1 << 32, 5_000);
            assert_eq!(sender.told.recovery_point - (1 << 32), expected, "{millis}");
        }
    }

    /// Rounds of a sender with 100,000 bytes in flight, which it multiplies at each loss; a loss in
    /// each sixth round.
    fn feed(sender: &mut Sender, factor: f64, rounds: u64) {
        let (begin, mut at) = sender.round.unwrap_or((Instant::ZERO, 1 << 32));
        let mut window = 100_000.0;
        for round in 1..=rounds {
            at += window as u64;
            sender.sent(begin + ROUND_TRIP * round as u32, AIR, at, at, window as u64);
            if round % 6 == 0 {
                sender.began_recovery(at);
                window *= factor;
            } else {
                window = 100_000_f64.min(window * 1.02);
            }
        }
    }

    #[test]
    fn a_sender_that_keeps_its_window_ignores_losses_until_it_answers_some() {
        let mut sender = sender();
        feed(&mut sender, 1.0, 40);
        assert!(sender.ignores_losses());
        feed(&mut sender, 0.7, 40);
        assert!(!sender.ignores_losses());
    }

    #[test]
    fn a_sender_that_reduces_its_window_answers() {
        for factor in [0.5, 0.7] {
            let mut sender = sender();
            feed(&mut sender, factor, 100);
            assert!(!sender.ignores_losses());
        }
    }
}
