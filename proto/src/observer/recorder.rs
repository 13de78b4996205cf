//! Records a hop as a trace: what flows show of its rate, delay and losses, by intervals.

use super::flow::{FlowObserver, first_byte};
use crate::extreme::Extreme;
use crate::link::trace::Row;
use crate::packet::Packet;
use crate::port::Port;
use crate::time::Instant;
use crate::wire::flow::FlowKey;
use crate::wire::tcp::{Flags, Segment};
use alloc::collections::BTreeMap;
use core::time::Duration;

/// The interval of rows.
const INTERVAL: Duration = Duration::from_secs(1);
/// Where the queue is not known, what arrives is measured over so long.
const WINDOW: Duration = Duration::from_millis(100);
/// A busy period counts from so many frames and so long a time on.
const RUN_FRAMES: u32 = 5;
const RUN_TIME: Duration = Duration::from_millis(5);
/// A round trip longer than the least one by the airtime of so many frames has met a queue.
const QUEUED_FRAMES: f64 = 3.0;
/// The least round trip is forgotten after one to two of these.
const LEAST_TIME: Duration = Duration::from_secs(30);
/// A loss is an estimate from so many frames on.
const MIN_FRAMES: u64 = 20;
/// Flows at most; one that was silent for `IDLE` is forgotten.
const MAX_FLOWS: usize = 1024;
const IDLE: Duration = Duration::from_secs(30);
/// Bits of a full frame and of its ACK, whose airtime is part of a round trip.
const ROUND_TRIP_BITS: f64 = (1500.0 + 52.0) * 8.0;

/// Sees data as it departs to the hop, and what comes back over it.
///
/// - The *rate* is what a busy hop carries. Who records may know that a packet had waited for the
///   hop: then the time from one departure to the next is its airtime. Else the hop was busy for
///   100 ms if all round trips meanwhile were longer than the least one by a queue, and what has
///   arrived is the rate. A hop that was not busy carries at least what it carried; the first rate
///   is that of the fastest train of frames.
/// - The *delay* is half of the least round trip in the interval, without the airtime of a frame
///   and its ACK at that rate.
/// - The *loss* is the share of frames that were sent again and had not arrived.
///
/// What an interval does not show stays as it was.
#[derive(Debug)]
pub struct HopRecorder {
    begin: Instant,
    /// When the present interval ends.
    until: Instant,
    flows: BTreeMap<FlowKey, Recorded>,
    swept: Instant,
    /// Departures between which the hop was busy.
    run: Option<Run>,
    /// Bytes of IP that have arrived.
    arrived: f64,
    window: Option<Window>,
    /// Of busy times in this interval: bits, and how long they were.
    busy: [f64; 2],
    /// The fastest that was seen of a hop that was not busy, and of a train.
    least_rate: f64,
    train: Option<f64>,
    least: Option<Extreme>,
    round_trip: Option<Duration>,
    frames: u64,
    lost: u64,
    /// A rate that is not measured.
    known: Option<f64>,
    rate: Option<f64>,
    delay: Option<Duration>,
    loss: f64,
    /// The last row.
    last: Option<Row>,
}

#[derive(Debug)]
struct Recorded {
    flow: FlowObserver,
    /// Frames, losses and bytes that have been counted.
    frames: u64,
    lost: u64,
    arrived: u64,
}

/// Departures without a pause.
#[derive(Clone, Copy, Debug)]
struct Run {
    begin: Instant,
    end: Instant,
    bytes: u64,
    frames: u32,
}

/// Where a window began: at an arrival.
#[derive(Clone, Copy, Debug)]
struct Window {
    since: Instant,
    arrived: f64,
    /// Whether round trips were measured, and all of them have met a queue.
    is_queued: Option<bool>,
}

impl HopRecorder {
    /// A recorder whose first interval begins now.
    pub fn new(now: Instant) -> Self {
        Self {
            begin: now,
            until: now + INTERVAL,
            flows: BTreeMap::new(),
            swept: now,
            run: None,
            arrived: 0.0,
            window: None,
            busy: [0.0; 2],
            least_rate: 0.0,
            train: None,
            least: None,
            round_trip: None,
            frames: 0,
            lost: 0,
            known: None,
            rate: None,
            delay: None,
            loss: 0.0,
            last: None,
        }
    }

    /// Sets the rate, where something else than the packets tells it; `None` to measure it.
    pub fn know(&mut self, rate_bps: Option<u64>) {
        self.known = rate_bps.map(|rate| rate as f64);
        self.rate = self.known.or(self.rate);
    }

    /// A packet has departed to the hop (`from` the wired side), or has come over it. Whether one
    /// that departed had waited since the one before it, if that is known. Rows of intervals that
    /// are over must have been [taken](Self::poll_row).
    pub fn packet(&mut self, now: Instant, from: Port, packet: &Packet, waited: Option<bool>) {
        let Ok(segment) = Segment::parse(packet) else { return };
        self.sweep(now);
        let key = FlowKey::of(&segment, from);
        if segment.flags.intersects(Flags::SYN) {
            self.flows.remove(&key);
        }
        if !self.flows.contains_key(&key) {
            let is_full = self.flows.len() >= MAX_FLOWS;
            let Some(next) = first_byte(from, &segment).filter(|_| !is_full) else { return };
            let flow = FlowObserver::new(now, next);
            self.flows.insert(key, Recorded { flow, frames: 0, lost: 0, arrived: 0 });
        }
        let Some(recorded) = self.flows.get_mut(&key) else { return };
        match from {
            Port::Wired => {
                let bytes = recorded.flow.data(now, packet, &segment);
                let counts = recorded.flow.counts;
                self.frames += counts.frames - recorded.frames;
                recorded.frames = counts.frames;
                if segment.payload_len > 0 {
                    waited.into_iter().for_each(|waited| self.run_on(now, bytes, waited));
                }
            }
            Port::Air => {
                if let Some(rate) = recorded.flow.ack(now, &segment) {
                    self.train = Some(self.train.map_or(rate, |fastest| fastest.max(rate)));
                }
                let counts = recorded.flow.counts;
                let arrived = recorded.flow.arrived();
                let new = arrived.saturating_sub(recorded.arrived);
                recorded.arrived = arrived;
                let headers = counts.ip_bytes as f64 / counts.payload_bytes.max(1) as f64;
                self.arrived += new as f64 * headers;
                if let Some(sample) = recorded.flow.take_round_trip() {
                    self.round_trip(now, sample);
                }
                if new > 0 {
                    self.move_window(now);
                }
            }
        }
        // An ACK may show that a retransmission was needless.
        let Some(recorded) = self.flows.get_mut(&key) else { return };
        let lost = recorded.flow.counts.losses();
        self.lost = (self.lost + lost).saturating_sub(recorded.lost);
        recorded.lost = lost;
    }

    /// The row of an interval that is over, if it says anything new.
    pub fn poll_row(&mut self, now: Instant) -> Option<Row> {
        while self.until <= now {
            let at = self.until.since(self.begin) - INTERVAL;
            self.until += INTERVAL;
            self.end_run();
            if !self.has_news() {
                let idle = now.since(self.until).as_nanos() / INTERVAL.as_nanos();
                self.until += INTERVAL * u32::try_from(idle).unwrap_or(u32::MAX);
                continue;
            }
            self.learn();
            let row = self.row(at);
            if row.is_some_and(|row| self.last != Some(Row { at: self.last_at(), ..row })) {
                self.last = row;
                return row;
            }
        }
        None
    }

    /// The row that ends the trace, if there is one before it.
    pub fn finish(&mut self, now: Instant) -> Option<Row> {
        let last = self.last?;
        let at = now.since(self.begin).max(last.at + Duration::from_millis(1));
        Some(Row { at, ..last })
    }

    fn last_at(&self) -> Duration {
        self.last.map_or(Duration::ZERO, |last| last.at)
    }

    fn has_news(&self) -> bool {
        self.busy[1] > 0.0 || self.train.is_some() || self.round_trip.is_some()
    }

    fn row(&self, at: Duration) -> Option<Row> {
        let rate_bps = libm::round(self.rate?) as u64;
        Some(Row { at, rate_bps, delay: self.delay?, loss: self.loss })
    }

    /// Takes over what the interval shows.
    fn learn(&mut self) {
        if self.frames >= MIN_FRAMES {
            self.loss = (self.lost as f64 / self.frames as f64).min(1.0);
            (self.frames, self.lost) = (0, 0);
        }
        let [bits, time] = core::mem::take(&mut self.busy);
        let least = core::mem::take(&mut self.least_rate);
        let train = self.train.take();
        let busy = (time >= RUN_TIME.as_secs_f64()).then(|| bits / time);
        let before = self.rate.or(train).map(|rate| rate.max(least));
        self.rate = self.known.or(busy).or(before).filter(|rate| *rate >= 1.0);
        if let (Some(sample), Some(rate)) = (self.round_trip, self.rate) {
            self.round_trip = None;
            let airtime = Duration::from_secs_f64(ROUND_TRIP_BITS / rate);
            self.delay = Some(sample.saturating_sub(airtime) / 2);
        }
    }

    /// Data departs; the hop was busy since the departure before it if it had waited since then.
    fn run_on(&mut self, now: Instant, bytes: u64, waited: bool) {
        match &mut self.run {
            Some(run) if waited => {
                (run.end, run.bytes, run.frames) = (now, run.bytes + bytes, run.frames + 1);
            }
            _ => {
                self.end_run();
                self.run = Some(Run { begin: now, end: now, bytes: 0, frames: 0 });
            }
        }
    }

    /// Counts what departed without a pause.
    fn end_run(&mut self) {
        let Some(Run { begin, end, bytes, frames }) = self.run else { return };
        let took = end.since(begin);
        if frames >= RUN_FRAMES && took >= RUN_TIME {
            self.busy[0] += bytes as f64 * 8.0;
            self.busy[1] += took.as_secs_f64();
            self.run = Some(Run { begin: end, end, bytes: 0, frames: 0 });
        }
    }

    /// A round trip of the hop was measured.
    fn round_trip(&mut self, now: Instant, sample: Duration) {
        self.round_trip = Some(self.round_trip.map_or(sample, |least| least.min(sample)));
        let first = Extreme::least(LEAST_TIME, now, sample);
        let least = self.least.get_or_insert(first).sample(now, sample);
        if let (Some(window), Some(rate)) = (&mut self.window, self.rate.or(self.train)) {
            let queue = Duration::from_secs_f64(QUEUED_FRAMES * 12_000.0 / rate.max(1e3));
            let has_queued = sample >= least + queue;
            window.is_queued = Some(has_queued && window.is_queued != Some(false));
        }
    }

    /// Data has arrived: begins a window, or ends one that has lasted long enough. What the air
    /// lost has used it too.
    fn move_window(&mut self, now: Instant) {
        let begin = Window { since: now, arrived: self.arrived, is_queued: None };
        let Some(window) = self.window else {
            self.window = Some(begin);
            return;
        };
        let took = now.since(window.since);
        if took < WINDOW {
            return;
        }
        self.window = Some(begin);
        let loss = if self.frames > 0 { self.lost as f64 / self.frames as f64 } else { self.loss };
        let took = took.as_secs_f64();
        let rate = (self.arrived - window.arrived) * 8.0 / took / (1.0 - loss.min(0.9));
        self.least_rate = self.least_rate.max(rate);
        if self.run.is_none() && window.is_queued == Some(true) {
            self.busy[0] += rate * took;
            self.busy[1] += took;
        }
    }

    /// Forgets, now and then, who was silent.
    fn sweep(&mut self, now: Instant) {
        if now.since(self.swept) >= IDLE {
            self.swept = now;
            self.flows.retain(|_, recorded| now.since(recorded.flow.last_seen) < IDLE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LinkType;
    use crate::wire::build::SegmentBuilder;
    use crate::wire::seq::SeqNumber;
    use alloc::vec::Vec;

    const FIXED: ([u8; 4], u16) = ([10, 0, 0, 1], 80);
    const MOBILE: ([u8; 4], u16) = ([10, 0, 1, 2], 5000);
    const AIRTIME: Duration = Duration::from_micros(1_500);
    const DELAY: Duration = Duration::from_millis(10);

    /// The rows of 4000 frames over 8 Mb/s and 10 ms each way, of which every 50th is lost once.
    /// They depart so long after each other, with a pause after every 600th.
    fn rows(spacing: Duration, pause: Duration, waited: Option<bool>) -> Vec<Row> {
        let ack_time = Duration::from_micros(52);
        let mut packets = Vec::new();
        let (mut leaves, mut free) = (Instant::ZERO, Instant::ZERO);
        for number in 0..4_000u32 {
            let data = SegmentBuilder::new(FIXED, MOBILE).seq(SeqNumber(1 + number * 1460));
            let data = data.payload_len(1460).build(LinkType::Ip);
            for _ in 0..if number % 50 == 25 { 2 } else { 1 } {
                packets.push((leaves, Port::Wired, data.clone()));
                free = free.max(leaves) + AIRTIME;
                leaves += spacing;
            }
            if number % 600 == 599 {
                leaves += pause;
            }
            let ack = SegmentBuilder::new(MOBILE, FIXED).ack(SeqNumber(1 + (number + 1) * 1460));
            packets.push((free + DELAY * 2 + ack_time, Port::Air, ack.build(LinkType::Ip)));
        }
        packets.sort_by_key(|(at, ..)| *at);
        let mut recorder = HopRecorder::new(Instant::ZERO);
        let (mut rows, mut now) = (Vec::new(), Instant::ZERO);
        for (at, from, packet) in packets {
            now = at;
            rows.extend(core::iter::from_fn(|| recorder.poll_row(now)));
            recorder.packet(now, from, &packet, waited);
        }
        rows.extend(recorder.finish(now));
        rows
    }

    fn check(rows: &[Row]) {
        assert!(rows.len() >= 5, "{rows:?}");
        for row in rows {
            assert!((row.rate_bps as f64 / 8e6 - 1.0).abs() < 0.02, "{row:?}");
            assert!(row.delay.abs_diff(DELAY) < Duration::from_micros(100), "{row:?}");
            assert!((row.loss - 1.0 / 51.0).abs() < 0.005, "{row:?}");
        }
    }

    #[test]
    fn a_hop_behind_a_known_queue_is_recorded() {
        check(&rows(AIRTIME, Duration::ZERO, Some(true)));
    }

    /// It fills for 0.7 s and has then time to drain.
    #[test]
    fn a_queue_beyond_shows_that_the_hop_is_busy() {
        check(&rows(AIRTIME * 4 / 5, Duration::from_millis(230), None));
    }

    #[test]
    fn what_shows_nothing_makes_no_row() {
        let mut recorder = HopRecorder::new(Instant::ZERO);
        let ack = SegmentBuilder::new(MOBILE, FIXED).build(LinkType::Ip);
        for millis in (0..5_000).step_by(10) {
            let now = Instant::from_millis(millis);
            assert_eq!(recorder.poll_row(now), None);
            recorder.packet(now, Port::Air, &ack, None);
        }
        assert_eq!(recorder.finish(Instant::from_millis(5_000)), None);
    }
}
