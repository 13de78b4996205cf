//! A record of the connection table [snoop-opnet §3.5; S3-05].

use super::cache::Cache;
use super::settings::{Settings, TimerPeriod};
use crate::agents::flows::{FlowBase, FlowState};
use crate::event::Cause;
use crate::packet::Packet;
use crate::rtt::RoundTrip;
use crate::time::Instant;
use crate::wire::seq::SeqNumber;
use crate::wire::tcp::{Flags, Segment};
use core::time::Duration;

/// The state of one connection, for the data from the wired side.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    pub(super) base: FlowBase,
    /// Packets that the receiver has not acknowledged.
    pub(super) cache: Cache,
    /// The end of the highest data that has departed: `last_seq_num`.
    pub(super) last_seq: SeqNumber,
    /// The receiver's last ACK: `last_ack_num`.
    pub(super) last_ack: Option<LastAck>,
    /// Whether the last ACK has been repeated and has caused a retransmission: `repeat_ack`.
    pub(super) repeat_ack: bool,
    /// The ACK number that acknowledges the sender's FIN: `fin_flag` and `fin_seq_num`.
    pub(super) fin_end: Option<SeqNumber>,
    /// The last duplicate ACK that was withheld, if nothing was forwarded since.
    pub(super) withheld: Option<Packet>,
    /// The end of the highest data that was discarded since the last new ACK.
    pub(super) discarded_end: Option<SeqNumber>,
    /// Whether data below the last ACK has departed: the receiver answers it with the same ACK.
    pub(super) is_answer_due: bool,
    /// The expiry time of the retransmission timer, meaningful while packets are cached:
    /// `timeout_evt`.
    pub(super) timer_due: Instant,
    /// What is being retransmitted.
    pub(super) resending: Option<Resending>,
    /// The data whose round trip is measured; used by the adaptive timer only.
    pub(super) timed: Option<Timed>,
    /// The smoothed round trip, after the first sample.
    pub(super) round_trip: Option<RoundTrip>,
    /// The number of times that the timer has expired since the last sample [Karn].
    pub(super) expiries: u32,
}

/// The last ACK that was forwarded to the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LastAck {
    pub(super) number: SeqNumber,
    /// The window as it stands in the header.
    pub(super) window: u16,
    /// The ECN bits among the flags.
    ecn: u16,
}

impl LastAck {
    pub(super) fn of(segment: &Segment) -> Self {
        let ecn = Flags::ECE.union(Flags::CWR).union(Flags::AE);
        Self { number: segment.ack, window: segment.window, ecn: segment.flags.0 & ecn.0 }
    }
}

/// A retransmission that is not complete.
#[derive(Clone, Copy, Debug)]
pub(super) struct Resending {
    /// The next packet does not begin below this number.
    pub(super) next: SeqNumber,
    /// All packets begin below this number: what was cached when the retransmission began.
    pub(super) end: SeqNumber,
    pub(super) cause: Cause,
}

/// The data whose round trip is measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timed {
    /// The ACK that ends the measurement.
    pub(super) end: SeqNumber,
    /// When the data departed; `None` if data was retransmitted since, so that the ACK would be
    /// ambiguous [Karn].
    pub(super) sent_at: Option<Instant>,
}

impl Flow {
    pub(super) fn new(base: FlowBase, first: SeqNumber) -> Self {
        Self {
            timer_due: base.active_at,
            base,
            cache: Cache::default(),
            last_seq: first,
            last_ack: None,
            repeat_ack: false,
            fin_end: None,
            withheld: None,
            discarded_end: None,
            is_answer_due: false,
            resending: None,
            timed: None,
            round_trip: None,
            expiries: 0,
        }
    }

    /// Whether the receiver takes no data: what comes now probes its window, and only the receiver
    /// can answer that (RFC 9293 §3.8.6.1).
    pub(super) fn is_closed(&self) -> bool {
        self.last_ack.is_some_and(|last| last.window == 0)
    }

    /// Whether this asks if the receiver is alive or its window open. A keep-alive with a byte
    /// repeats the last byte that was acknowledged (RFC 9293 §3.8.4).
    pub(super) fn is_probe(&self, segment: &Segment) -> bool {
        let acked = self.last_ack.map(|last| last.number);
        self.is_closed() || segment.seq_len() == 1 && Some(segment.end()) == acked
    }

    /// Extends the retransmission timer [S3-08].
    pub(super) fn restart_timer(&mut self, now: Instant, settings: &Settings) {
        self.timer_due = now + self.period(settings);
    }

    /// The expiry time of the timer; none while nothing can be retransmitted.
    pub(super) fn due(&self) -> Option<Instant> {
        let runs = !self.cache.is_empty() && !self.is_closed();
        runs.then_some(self.timer_due)
    }

    /// The period of the retransmission timer [S3-08]; the adaptive one is that of RFC 6298 with
    /// Karn's algorithm [S3-32].
    fn period(&self, settings: &Settings) -> Duration {
        let (Some(round_trip), TimerPeriod::Adaptive) = (&self.round_trip, settings.timer) else {
            return settings.timeout;
        };
        let period = round_trip.bound().max(round_trip.srtt() + settings.min_timeout);
        let longest = settings.timeout.max(period);
        // The period doubles with each expiry until a round trip is measured without ambiguity.
        let factor = 1u32.checked_shl(self.expiries).unwrap_or(u32::MAX);
        period.checked_mul(factor).map_or(longest, |backed_off| backed_off.min(longest))
    }

    /// Measures one round trip per window, which ends with the ACK of this segment.
    pub(super) fn time_segment(&mut self, now: Instant, segment: &Segment) {
        self.timed.get_or_insert(Timed { end: segment.end(), sent_at: Some(now) });
    }

    /// Invalidates the measurement: data is retransmitted, and what is outstanding waits for it.
    pub(super) fn spoil_measurement(&mut self) {
        self.timed = Some(Timed { end: self.last_seq, sent_at: None });
    }

    /// Takes a sample if this ACK ends a measurement; returns it.
    pub(super) fn measure(&mut self, now: Instant, ack: SeqNumber) -> Option<Duration> {
        let sample = now - self.timed.take_if(|timed| timed.end <= ack)?.sent_at?;
        self.expiries = 0;
        match &mut self.round_trip {
            Some(round_trip) => round_trip.sample(sample),
            None => self.round_trip = Some(RoundTrip::first(sample)),
        }
        Some(sample)
    }
}

impl FlowState for Flow {
    fn base(&self) -> &FlowBase {
        &self.base
    }

    fn base_mut(&mut self) -> &mut FlowBase {
        &mut self.base
    }

    fn memory(&self) -> usize {
        self.cache.memory()
    }

    fn packets(&self) -> usize {
        self.cache.len()
    }

    fn is_answered(&self) -> bool {
        self.last_ack.is_some()
    }

    fn take_withheld(&mut self) -> Option<(Packet, SeqNumber)> {
        let number = self.last_ack?.number;
        self.withheld.take().map(|packet| (packet, number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::FlowId;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn the_adaptive_period_follows_the_round_trip_and_doubles_up_to_the_fixed_one() {
        let settings = Settings::adaptive();
        let mut flow = Flow::new(FlowBase::new(FlowId(0), Instant::ZERO), SeqNumber(0));
        assert_eq!(flow.period(&settings), MS(1_000), "before the first sample");
        flow.round_trip = Some(RoundTrip::first(MS(20)));
        assert_eq!(flow.period(&settings), MS(220), "4 · 10 ms is less than min_timeout");
        flow.expiries = 2;
        assert_eq!(flow.period(&settings), MS(880));
        for expiries in [3, 31, 32, u32::MAX] {
            flow.expiries = expiries;
            assert_eq!(flow.period(&settings), MS(1_000), "{expiries}");
        }
        flow.round_trip = Some(RoundTrip::first(MS(2_000)));
        assert_eq!(flow.period(&settings), MS(6_000), "2 s + 4 · 1 s, not limited");
        assert_eq!(flow.period(&Settings::default()), MS(1_000));
    }

    #[test]
    fn a_retransmission_spoils_the_measurement_of_all_that_is_outstanding() {
        let mut flow = Flow::new(FlowBase::new(FlowId(0), Instant::ZERO), SeqNumber(0));
        let at = |ms| Instant::ZERO + MS(ms);
        flow.timed = Some(Timed { end: SeqNumber(100), sent_at: Some(at(0)) });
        flow.last_seq = SeqNumber(300);
        flow.expiries = 1;
        assert_eq!(flow.measure(at(5), SeqNumber(99)), None);
        flow.spoil_measurement();
        assert_eq!(flow.measure(at(10), SeqNumber(200)), None);
        assert!(flow.timed.is_some(), "up to the end of what was outstanding");
        assert_eq!((flow.measure(at(10), SeqNumber(300)), flow.expiries), (None, 1));
        flow.timed = Some(Timed { end: SeqNumber(400), sent_at: Some(at(10)) });
        assert_eq!((flow.measure(at(18), SeqNumber(400)), flow.expiries), (Some(MS(8)), 0));
    }
}
