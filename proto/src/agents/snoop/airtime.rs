//! Whether lost packets had their time on the air, or were dropped before it [C-32].
//!
//! A packet that the air loses takes as long as any other one; a packet that a queue drops takes no
//! time. Between two arrivals of a flow a busy air hop carries what arrived in between, of all
//! flows of the mobile host, and what it lost. If the time was enough for what arrived only, the
//! lost packets never were on the air. (Biaz and Vaidya compare inter-arrival times at a receiver,
//! ASSET 1999.)

use super::tally::Tally;
use crate::time::Instant;
use core::mem;
use core::time::Duration;

/// The header bytes that each segment adds: IPv4, TCP and timestamps.
pub(super) const HEADERS: u64 = 52;
/// The bytes of a packet, the unit of times and errors.
const PACKET: f32 = 1_500.0;
/// The packets of a busy period that give a measurement.
const PERIOD: f32 = 12.0;
/// The measurements whose median counts, and how many are enough.
const VALUES: usize = 15;
const FEW_VALUES: usize = 5;
/// The least variance of an interval, in squares of packets: if it begins with an ACK in order, and
/// if it begins with a SACK, which Linux may delay until after the next arrivals.
const VARIANCE: f32 = 0.05;
const SACK_VARIANCE: f32 = 1.0;
/// The mean square of errors, in squares of packets, beyond which nothing is judged: where frames
/// arrive in aggregates, several at one instant, an interval says nothing of one of them. It is
/// (n - 1)/n if each of n frames is acknowledged alone, and more if an ACK answers several; where
/// eight flows take turns at a queue it is about a half.
const INEXACT: f32 = 0.8;
/// The intervals, and the losses, that an average remembers.
const MEMORY: f32 = 32.0;
/// The most that one loss counts, and that all losses before it count.
const LIMIT: f32 = 4.0;
/// By how much the evidence must exceed that of a tie, where intervals are exact.
const DOUBT: f32 = 3.0;
/// The packets on a busy hop after which older ones count half.
const BUSY_PACKETS: f32 = 1_000.0;
/// The deviations from the losses on an idle hop that chance explains.
const CHANCE: f32 = 2.0;

/// An arrival at the mobile host, as an ACK shows it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Arrival {
    at: Instant,
    /// The bytes of all flows of the host that have arrived, with headers.
    bytes: u64,
    by_sack: bool,
    /// Whether the newest segment waited for less than the time of a packet, if that is known.
    was_idle: Option<bool>,
}

/// The air hop to one mobile host, as a server of packets.
#[derive(Debug, Default)]
pub(super) struct Airtime {
    last: Arrival,
    /// The present busy period, and the packets that arrived in it.
    busy: (Duration, f32),
    /// Measured times of a packet, in seconds; the place of the next one, and their median.
    values: [f32; VALUES],
    next: u8,
    packet_time: Option<f32>,
    /// The mean squares of the errors of intervals without a loss that begin with an ACK in order,
    /// and with a SACK.
    error: f32,
    sack_error: f32,
    /// The sum of the evidence of recent losses; and since when it is negative.
    evidence: f32,
    dropped_since: Option<Instant>,
    /// What was lost on an idle hop, and on a busy one.
    idle: Tally,
    busy_losses: Tally,
}

impl Airtime {
    /// Takes the arrival of so many bytes, of which the newest segment waited so long in queues, as
    /// far as that is known.
    pub(super) fn arrived(
        &mut self,
        now: Instant,
        bytes: u64,
        by_sack: bool,
        waited: Option<Duration>,
    ) -> Arrival {
        let is_first = self.last.bytes == 0;
        let taken = now.since(self.last.at);
        let is_short = |(waited, time): (Duration, f32)| waited.as_secs_f32() < time;
        let was_idle = waited.zip(self.packet_time).map(is_short);
        self.last = Arrival { at: now, bytes: self.last.bytes + bytes, by_sack, was_idle };
        // A segment that waited for longer than the time since the last arrival found the hop busy.
        if is_first || waited.is_none_or(|waited| waited < taken) {
            self.busy = Default::default();
            return self.last;
        }
        self.busy.0 += taken;
        self.busy.1 += bytes as f32 / PACKET;
        if self.busy.1 >= PERIOD {
            let (taken, packets) = mem::take(&mut self.busy);
            self.measure(taken.as_secs_f32() / packets);
        }
        self.last
    }

    /// Takes a measured time of a packet.
    fn measure(&mut self, packet_time: f32) {
        if let Some(place) = self.values.get_mut(usize::from(self.next) % VALUES) {
            *place = packet_time;
        }
        self.next = (self.next + 1) % VALUES as u8;
        let mut sorted = self.values;
        sorted.sort_unstable_by(f32::total_cmp);
        // A place without a value is zero.
        let known = sorted.iter().filter(|value| **value > 0.0).count();
        if known >= FEW_VALUES {
            self.packet_time = sorted.get(VALUES - known + known / 2).copied();
        }
    }

    /// Judges the interval between two arrivals of a flow, in which so many `own` bytes of the flow
    /// arrived and so many were lost.
    /// Returns the evidence of each loss: the log-likelihood ratio of a loss on the air and one
    /// before it, 0 if nothing is known.
    pub(super) fn judge(&mut self, from: &Arrival, to: &Arrival, own: u64, lost: u64) -> f32 {
        if lost > 0 {
            self.busy = Default::default();
        }
        let Some(packet_time) = self.packet_time else { return 0.0 };
        let arrived = to.bytes.saturating_sub(from.bytes) as f32 / PACKET;
        let lost = lost as f32 / PACKET;
        self.count(from, to, own as f32 / PACKET, lost);
        let spare = to.at.since(from.at).as_secs_f32() / packet_time - arrived;
        let (error, least) = match from.by_sack {
            true => (&mut self.sack_error, SACK_VARIANCE),
            false => (&mut self.error, VARIANCE),
        };
        if lost == 0.0 {
            // The hop may have been idle, but it cannot have carried more than it can.
            let short = spare.min(0.0);
            *error += (short * short - *error) / MEMORY;
            return 0.0;
        }
        let variance = *error + least;
        if self.error > INEXACT || spare < -2.0 * libm::sqrtf(variance) {
            return 0.0;
        }
        (spare.clamp(0.0, lost) - lost / 2.0) / variance
    }

    /// Counts the packets of an interval if the hop was idle at both ends, or busy.
    fn count(&mut self, from: &Arrival, to: &Arrival, arrived: f32, lost: f32) {
        match (from.was_idle, to.was_idle) {
            (Some(true), Some(true)) => self.idle.add(arrived + lost, lost),
            (Some(_), Some(_)) => self.busy_losses.add_within(BUSY_PACKETS, arrived + lost, lost),
            _ => {}
        }
    }

    /// Whether a packet with this evidence was dropped before the air: its own evidence and that of
    /// the losses before it say so, they have for a third of the sender's `round_trip`, and more is
    /// lost than on an idle hop.
    pub(super) fn is_dropped(&self, now: Instant, evidence: f32, round_trip: Duration) -> bool {
        let ratio = self.evidence + limited(evidence) + DOUBT / (1.0 + 5.0 * self.error);
        let since = self.dropped_since.unwrap_or(now);
        let has_lasted = now.since(since) >= round_trip / 3;
        let is_negative = evidence < 0.0 && ratio < 0.0 && self.evidence_with(evidence) < 0.0;
        is_negative && has_lasted && self.loses_by_queue()
    }

    /// Takes the evidence of a loss.
    pub(super) fn lost(&mut self, now: Instant, evidence: f32) {
        self.evidence = self.evidence_with(evidence);
        if self.evidence >= 0.0 {
            self.dropped_since = None;
        } else {
            self.dropped_since.get_or_insert(now);
        }
    }

    /// The sum of the evidence with that of one more loss.
    fn evidence_with(&self, evidence: f32) -> f32 {
        limited(self.evidence * (1.0 - 1.0 / MEMORY) + limited(evidence))
    }

    /// Whether more is lost on a busy hop than on an idle one, or no loss of an idle one is known.
    /// What another hop has lost before a slower one takes no time on the slower one either, but it
    /// does not depend on the queue.
    fn loses_by_queue(&self) -> bool {
        !self.idle.is_known() || self.busy_losses.exceeds(&self.idle, CHANCE)
    }
}

fn limited(evidence: f32) -> f32 {
    evidence.clamp(-LIMIT, LIMIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET_TIME: Duration = Duration::from_micros(600);
    const ROUND_TRIP: Duration = Duration::from_millis(60);

    /// One flow over a hop with a queue: a packet each 600 us.
    #[derive(Default)]
    struct Hop {
        airtime: Airtime,
        now: Instant,
        from: Arrival,
        /// The packets that wait.
        waiting: u32,
    }

    impl Hop {
        fn busy() -> Self {
            let mut hop = Self { waiting: 100, ..Self::default() };
            (0..200).for_each(|_| assert_eq!(hop.arrive(1, 0), 0.0));
            hop
        }

        /// An arrival after so many packet times, in which so many packets were lost.
        fn arrive(&mut self, times: u32, lost: u64) -> f32 {
            self.now += PACKET_TIME * times;
            let waited = PACKET_TIME * self.waiting;
            let to = self.airtime.arrived(self.now, 1_500, false, Some(waited));
            let from = mem::replace(&mut self.from, to);
            self.airtime.judge(&from, &to, 1_500, lost * 1_500)
        }

        /// Loses one of each `interval` packets of so many, on the air or before it. Returns the
        /// losses that count as dropped.
        fn lose(&mut self, packets: u32, interval: u32, is_on_air: bool) -> u32 {
            let mut dropped = 0;
            for number in 0..packets {
                let is_lost = number % interval == 0;
                let times = 1 + u32::from(is_lost && is_on_air);
                let evidence = self.arrive(times, u64::from(is_lost));
                if is_lost {
                    dropped += u32::from(self.lost(evidence));
                }
            }
            dropped
        }

        /// Takes a loss; returns whether the packet was dropped.
        fn lost(&mut self, evidence: f32) -> bool {
            let is_dropped = self.airtime.is_dropped(self.now, evidence, ROUND_TRIP);
            self.airtime.lost(self.now, evidence);
            is_dropped
        }
    }

    #[test]
    fn a_loss_that_took_its_time_was_on_the_air() {
        let mut hop = Hop::busy();
        assert!(hop.arrive(2, 1) > LIMIT);
        assert!(hop.arrive(1, 1) < -LIMIT);
        assert!(hop.arrive(4, 3) > LIMIT);
        assert_eq!(hop.lose(2_000, 10, true), 0);
    }

    #[test]
    fn losses_that_took_no_time_are_the_queues_once_they_last() {
        let mut hop = Hop::busy();
        assert_eq!(hop.lose(30, 10, false), 0, "less than a third of the round trip");
        assert!(hop.lose(1_000, 10, false) > 90);
    }

    #[test]
    fn the_time_of_a_packet_is_measured_while_the_hop_is_busy_only() {
        let mut hop = Hop::default();
        for _ in 0..500 {
            hop.arrive(3, 0);
        }
        assert_eq!(hop.airtime.packet_time, None);
        let mut hop = Hop::busy();
        assert!((hop.airtime.packet_time.unwrap() - PACKET_TIME.as_secs_f32()).abs() < 1e-6);
        hop.waiting = 0;
        (0..500).for_each(|_| _ = hop.arrive(3, 0));
        assert!((hop.airtime.packet_time.unwrap() - PACKET_TIME.as_secs_f32()).abs() < 1e-6);
    }

    #[test]
    fn inexact_intervals_are_weak_evidence() {
        let mut hop = Hop::busy();
        let exact = hop.arrive(1, 1);
        for number in 0..200 {
            hop.arrive(number % 2 * 2, 0);
        }
        let inexact = hop.arrive(1, 1);
        assert!(inexact < 0.0 && inexact > exact / 5.0, "{inexact} of {exact}");
    }

    #[test]
    fn nothing_is_judged_where_frames_arrive_in_aggregates() {
        let mut hop = Hop::busy();
        for number in 0..2_000 {
            let is_lost = number >= 200 && number % 10 == 0;
            let evidence = hop.arrive(if number % 8 == 0 { 8 } else { 0 }, u64::from(is_lost));
            assert!(!is_lost || !hop.lost(evidence), "{number}");
        }
    }

    #[test]
    fn what_an_idle_hop_loses_as_well_is_not_the_queues() {
        for (idle_interval, is_dropped) in [(10, false), (u32::MAX, true)] {
            let mut hop = Hop::busy();
            hop.waiting = 0;
            hop.lose(2_000, idle_interval, true);
            hop.waiting = 100;
            assert_eq!(hop.lose(1_000, 10, false) > 0, is_dropped);
        }
    }
}
