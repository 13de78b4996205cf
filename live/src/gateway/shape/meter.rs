//! What ACKs show of the hop beyond the interface: how much arrives, and the delay. Packets and
//! times go in; it has no clock, and is the same with every agent.

use super::control::Interval;
use airmend_proto::extreme::{Extreme, PATH_WINDOW};
use airmend_proto::ranges::{Ranges, Span};
use airmend_proto::wire::flow::FlowKey;
use airmend_proto::wire::seq::SeqNumber;
use airmend_proto::wire::tcp::{Flags, Segment};
use airmend_proto::{Instant, Packet, Port};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

/// Flows that are measured at most, and addresses of mobiles.
const MAX_FLOWS: usize = 1024;
/// A flow or a mobile that was silent for this time is forgotten.
const IDLE: Duration = Duration::from_secs(10);
const IDLE_MOBILE: Duration = Duration::from_secs(300);
/// The interval between packets of a flow that are timed, and how many are on their way at most.
const SPACING: Duration = Duration::from_millis(5);
const MAX_TIMED: usize = 64;
/// Spans that a mobile has selectively, at most.
const MAX_SPANS: usize = 1024;
/// Samples of a mobile in an interval at most.
const MAX_SAMPLES: usize = 256;
/// The time in which what was sent to a mobile counts, in seconds.
const WEIGHT_SECONDS: f64 = 10.0;

/// Measures the flows of one interface.
#[derive(Debug, Default)]
pub(super) struct Meter {
    flows: HashMap<FlowKey, Flow>,
    mobiles: HashMap<[u8; 16], Mobile>,
    /// Bytes of measured flows that left, and bytes of their payload that arrived.
    left: u64,
    delivered: u64,
    /// Both, at the ACK and at the departure of the packet whose ACK came last.
    served: Option<[u64; 2]>,
    interval: Interval,
    /// The delays of an interval: of each mobile one, and its weight.
    delays: Vec<(Duration, f64)>,
    swept: Instant,
}

/// A flow. Positions in its stream are 64 bits wide.
#[derive(Debug)]
struct Flow {
    acked: u64,
    highest: u64,
    sacked: Ranges,
    timed: VecDeque<Timed>,
    last_seen: Instant,
}

/// A packet with new data.
#[derive(Clone, Copy, Debug)]
struct Timed {
    end: u64,
    at: Instant,
    /// Bytes that had left before it.
    left: u64,
}

/// A mobile, whatever the number of its flows.
#[derive(Debug)]
struct Mobile {
    /// Bytes that left towards it; older ones count less.
    weight: f64,
    least: Option<Extreme>,
    /// How much the round trips of this interval were beyond the least.
    excess: Vec<Duration>,
    last_seen: Instant,
}

impl Meter {
    /// A packet with data, or a repair, left towards a mobile.
    pub(super) fn left(&mut self, now: Instant, packet: &Packet) {
        let Ok(segment) = Segment::parse(packet) else { return };
        let key = FlowKey::of(&segment, Port::Wired);
        if segment.flags.intersects(Flags::SYN.union(Flags::RST)) {
            self.flows.remove(&key);
            return;
        }
        self.sweep(now);
        if !self.flows.contains_key(&key) {
            if segment.payload_len == 0 || self.flows.len() >= MAX_FLOWS {
                return;
            }
            self.flows.insert(key, Flow::new(now, segment.seq));
        }
        let Some(flow) = self.flows.get_mut(&key) else { return };
        flow.left(now, &segment, self.left);
        let bytes = u64::from(packet.wire_len());
        self.left += bytes;
        self.interval.measured += bytes;
        if let Some(mobile) = self.mobile(now, key.air.address) {
            mobile.weight += bytes as f64;
        }
    }

    /// A packet of a mobile came.
    pub(super) fn came(&mut self, now: Instant, packet: &Packet) {
        let Ok(segment) = Segment::parse(packet) else { return };
        let key = FlowKey::of(&segment, Port::Air);
        let Some(flow) = self.flows.get_mut(&key) else { return };
        let Some(mobile) = self.mobiles.get_mut(&key.air.address) else { return };
        let Some(delivered) = flow.acknowledge(now, &segment) else { return };
        self.delivered += delivered;
        self.interval.delivered += delivered;
        while let Some(timed) = flow.arrived() {
            mobile.sample(now, now.since(timed.at));
            if let Some([delivered, left]) = self.served
                && timed.left > left
            {
                self.interval.served[0] += self.delivered - delivered;
                self.interval.served[1] += timed.left - left;
            }
            if self.served.is_none_or(|[_, left]| timed.left > left) {
                self.served = Some([self.delivered, timed.left]);
            }
        }
    }

    /// The mobile with this address, if it has a place.
    fn mobile(&mut self, now: Instant, address: [u8; 16]) -> Option<&mut Mobile> {
        let is_full = self.mobiles.len() >= MAX_FLOWS;
        let mobile = match self.mobiles.entry(address) {
            Entry::Vacant(_) if is_full => return None,
            entry => entry.or_insert_with(|| Mobile::new(now)),
        };
        mobile.last_seen = now;
        Some(mobile)
    }

    /// Ends an interval of this length, in which so many bytes left the interface's queue.
    pub(super) fn take(&mut self, took: Duration, sent: u64) -> Interval {
        self.delays.clear();
        self.delays.extend(self.mobiles.values_mut().filter_map(Mobile::delay));
        let excess = median(&mut self.delays);
        let weight: f64 = self.delays.iter().map(|(_, weight)| weight).sum();
        let kept = (-took.as_secs_f64() / WEIGHT_SECONDS).exp();
        self.mobiles.values_mut().for_each(|mobile| mobile.weight *= kept);
        let carried = weight * 8.0 / WEIGHT_SECONDS;
        Interval { took, sent, excess, carried, ..std::mem::take(&mut self.interval) }
    }

    /// Forgets, now and then, who was silent.
    fn sweep(&mut self, now: Instant) {
        if now.since(self.swept) >= IDLE {
            self.swept = now;
            self.flows.retain(|_, flow| now.since(flow.last_seen) < IDLE);
            self.mobiles.retain(|_, mobile| now.since(mobile.last_seen) < IDLE_MOBILE);
        }
    }
}

impl Flow {
    /// A flow whose next byte is `seq`.
    fn new(now: Instant, seq: SeqNumber) -> Self {
        // Room below: what comes now may have been sent again.
        let begin = (1 << 32) + u64::from(seq.0);
        Self {
            acked: begin,
            highest: begin,
            sacked: Ranges::default(),
            timed: VecDeque::new(),
            last_seen: now,
        }
    }

    /// Data left, when so many bytes had left before.
    fn left(&mut self, now: Instant, segment: &Segment, left: u64) {
        self.last_seen = now;
        let Some(start) = self.position(segment.seq) else { return };
        let end = start + u64::from(segment.payload_len);
        if start < self.highest {
            // An ACK of what was sent again is ambiguous (Karn's algorithm).
            self.timed.retain(|timed| timed.end <= start || timed.end > end);
        }
        if end <= self.highest {
            return;
        }
        self.highest = end;
        let is_due = self.timed.back().is_none_or(|last| now.since(last.at) >= SPACING);
        if is_due && self.timed.len() < MAX_TIMED {
            self.timed.push_back(Timed { end, at: now, left });
        }
    }

    /// Bytes of payload that arrived for the first time; `None` for an ACK that says nothing.
    fn acknowledge(&mut self, now: Instant, segment: &Segment) -> Option<u64> {
        let ack = self.position(segment.ack)?;
        // A FIN takes a position, too.
        if ack < self.acked || ack > self.highest + 1 || !segment.flags.intersects(Flags::ACK) {
            return None;
        }
        self.last_seen = now;
        let ack = ack.min(self.highest);
        let mut delivered = self.sacked.missing(self.acked, ack);
        self.acked = ack;
        self.sacked.remove_below(ack);
        for &(left, right) in segment.options.sack.as_slice() {
            let (Some(start), Some(end)) = (self.position(left), self.position(right)) else {
                continue;
            };
            if start > ack && start < end && end <= self.highest && self.sacked.len() < MAX_SPANS {
                delivered += self.sacked.missing(start, end);
                self.sacked.insert(Span { start, end });
            }
        }
        Some(delivered)
    }

    /// The first of the timed packets, if it has arrived.
    fn arrived(&mut self) -> Option<Timed> {
        let (acked, sacked) = (self.acked, &self.sacked);
        let has = |end: u64| end <= acked || sacked.span_at(end - 1).is_some();
        let at = self.timed.iter().position(|timed| has(timed.end))?;
        // Those before it are lost, or on their way again.
        self.timed.drain(..at);
        self.timed.pop_front()
    }

    /// The position of a sequence number, next to the highest one.
    fn position(&self, seq: SeqNumber) -> Option<u64> {
        let offset = seq.offset_from(SeqNumber(self.highest as u32));
        self.highest.checked_add_signed(offset.into())
    }
}

impl Mobile {
    fn new(now: Instant) -> Self {
        Self { weight: 0.0, least: None, excess: Vec::new(), last_seen: now }
    }

    fn sample(&mut self, now: Instant, sample: Duration) {
        let first = Extreme::least(PATH_WINDOW, now, sample);
        let least = self.least.get_or_insert(first);
        let excess = sample.saturating_sub(least.sample(now, sample));
        if self.excess.len() < MAX_SAMPLES {
            self.excess.push(excess);
        }
    }

    /// The lower quartile of the samples of the interval that ends, and the weight of this mobile.
    fn delay(&mut self) -> Option<(Duration, f64)> {
        let quartile = self.excess.len() / 4;
        let delay = (!self.excess.is_empty()).then(|| *self.excess.select_nth_unstable(quartile).1);
        self.excess.clear();
        delay.map(|delay| (delay, self.weight))
    }
}

/// The least delay of those that have half of the weight or more below them and in them.
fn median(delays: &mut [(Duration, f64)]) -> Option<Duration> {
    delays.sort_unstable_by_key(|(delay, _)| *delay);
    let total: f64 = delays.iter().map(|(_, weight)| weight).sum();
    let mut below = 0.0;
    let is_middle = |(_, weight): &&(Duration, f64)| {
        below += weight;
        below >= total / 2.0
    };
    delays.iter().find(is_middle).map(|(delay, _)| *delay)
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmend_proto::LinkType;
    use airmend_proto::wire::build::SegmentBuilder;
    use airmend_proto::wire::tcp::Options;

    const FIXED: ([u8; 4], u16) = ([10, 0, 0, 2], 80);
    const MOBILE: ([u8; 4], u16) = ([10, 0, 0, 1], 5000);

    fn data(seq: u32) -> Packet {
        SegmentBuilder::new(FIXED, MOBILE)
            .seq(SeqNumber(seq))
            .payload(&[1; 1000])
            .build(LinkType::Ethernet)
    }

    fn ack(ack: u32, sack: &[(u32, u32)]) -> Packet {
        let sack = sack.iter().map(|&(left, right)| (SeqNumber(left), SeqNumber(right))).collect();
        let options = Options { sack, ..Options::default() };
        SegmentBuilder::new(MOBILE, FIXED)
            .ack(SeqNumber(ack))
            .options(options)
            .build(LinkType::Ethernet)
    }

    fn at(millis: u64) -> Instant {
        Instant::from_millis(1000 + millis)
    }

    const TOOK: Duration = Duration::from_millis(100);

    #[test]
    fn what_arrives_is_counted_once_and_its_delay_is_beyond_the_least() {
        let mut meter = Meter::default();
        for (number, seq) in (0..).zip([0, 1000, 2000, 3000]) {
            meter.left(at(10 * number), &data(seq));
        }
        meter.came(at(12), &ack(1000, &[]));
        meter.came(at(42), &ack(1000, &[(2000, 3000)]));
        let first = meter.take(TOOK, 0);
        assert_eq!(first.delivered, 2000);
        // 12 ms were the least, then 22.
        assert_eq!(first.excess, Some(Duration::ZERO), "the lower quartile");
        // Before the second packet one had left.
        let bytes = u64::from(data(0).wire_len());
        assert_eq!((first.measured, first.served), (4 * bytes, [1000, 2 * bytes]));
        meter.came(at(62), &ack(4000, &[]));
        let second = meter.take(TOOK, 7);
        assert_eq!((second.delivered, second.sent), (2000, 7));
        assert_eq!(second.excess, Some(Duration::from_millis(20)));
        assert_eq!(meter.take(TOOK, 0).excess, None);
    }

    #[test]
    fn what_was_sent_again_is_not_timed() {
        let mut meter = Meter::default();
        meter.left(at(0), &data(0));
        meter.left(at(50), &data(0));
        meter.came(at(52), &ack(1000, &[]));
        let interval = meter.take(TOOK, 0);
        assert_eq!((interval.delivered, interval.excess), (1000, None));
    }

    #[test]
    fn flows_are_bounded_and_forgotten() {
        let mut meter = Meter::default();
        for port in 0..2000 {
            let to = (MOBILE.0, port);
            let packet = SegmentBuilder::new(FIXED, to).payload(&[1; 10]).build(LinkType::Ethernet);
            meter.left(at(0), &packet);
        }
        assert_eq!(meter.flows.len(), MAX_FLOWS);
        meter.left(at(60_000), &data(0));
        assert_eq!(meter.flows.len(), 1);
    }
}
