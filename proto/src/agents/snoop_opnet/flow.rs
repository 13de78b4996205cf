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
    /// The smoothed round trip of packets whose ACK acknowledges several: the receiver has sent it
    /// at once. Of the adaptive timer only.
    pub(super) prompt: Option<RoundTrip>,
    /// The smoothed round trip of packets whose ACK acknowledges one: the receiver may have delayed
    /// it.
    pub(super) alone: Option<RoundTrip>,
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
            prompt: None,
            alone: None,
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
    /// Karn's algorithm [S3-32]. A receiver may delay the ACK of a packet alone, so while one is
    /// outstanding the period follows those ACKs (compare RFC 8985 §7.2).
    fn period(&self, settings: &Settings) -> Duration {
        let bound = |round_trip: RoundTrip| {
            round_trip.bound().max(round_trip.srtt() + settings.min_timeout)
        };
        let (prompt, alone) = (self.prompt.map(bound), self.alone.map(bound));
        let measured = match (settings.timer, self.cache.len()) {
            (TimerPeriod::Fixed, _) => None,
            (TimerPeriod::Adaptive, 0 | 1) => {
                alone.or(prompt.map(|prompt| prompt + settings.ack_delay))
            }
            (TimerPeriod::Adaptive, _) => prompt.or(alone),
        };
        let Some(period) = measured else { return settings.timeout };
        let longest = settings.timeout.max(period);
        // The period doubles with each expiry until a round trip is measured without ambiguity.
        let factor = 1u32.checked_shl(self.expiries).unwrap_or(u32::MAX);
        period.checked_mul(factor).map_or(longest, |backed_off| backed_off.min(longest))
    }

    /// Takes the round trip of packets that departed once and were acknowledged together; returns
    /// it, and the smoothed one.
    pub(super) fn measure(&mut self, sample: Duration, packets: usize) -> (Duration, Duration) {
        self.expiries = 0;
        let smoothed = if packets > 1 { &mut self.prompt } else { &mut self.alone };
        match smoothed {
            Some(round_trip) => round_trip.sample(sample),
            None => *smoothed = Some(RoundTrip::first(sample)),
        }
        (sample, smoothed.map_or(sample, |round_trip| round_trip.srtt()))
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
        assert_eq!(flow.period(&settings), MS(250), "before the first sample");
        flow.alone = Some(RoundTrip::first(MS(20)));
        assert_eq!(flow.period(&settings), MS(70), "4 · 10 ms is less than min_timeout");
        flow.expiries = 1;
        assert_eq!(flow.period(&settings), MS(140));
        for expiries in [2, 31, 32, u32::MAX] {
            flow.expiries = expiries;
            assert_eq!(flow.period(&settings), MS(250), "{expiries}");
        }
        flow.alone = Some(RoundTrip::first(MS(2_000)));
        assert_eq!(flow.period(&settings), MS(6_000), "2 s + 4 · 1 s, not limited");
        assert_eq!(flow.period(&Settings::default()), MS(1_000));
    }

    #[test]
    fn a_packet_alone_waits_for_a_delayed_ack() {
        let settings = Settings::adaptive();
        let mut flow = Flow::new(FlowBase::new(FlowId(0), Instant::ZERO), SeqNumber(0));
        flow.expiries = 3;
        assert_eq!(flow.measure(MS(20), 2), (MS(20), MS(20)));
        assert_eq!(flow.period(&settings), MS(270), "no such ACK was measured");
        assert_eq!(flow.measure(MS(120), 1), (MS(120), MS(120)));
        assert_eq!((flow.period(&settings), flow.expiries), (MS(360), 0));
        assert_eq!(flow.prompt, Some(RoundTrip::first(MS(20))));
    }
}
