//! The link layer of AIRMAIL [Ayanoglu et al., WINET 1995] (S0-67): selective repeat within a
//! window, with forward error correction whose strength follows the losses, and delivery in order.
//!
//! It is asymmetric. The mobile has no timer: it reports what it has received at regular
//! intervals, many acknowledgments in one status frame, and it learns from the base station's
//! status frames, which come at once, what it must send again. All status frames take airtime of
//! the other direction and may be lost; the next one says the same and more. Since the delay of the
//! link is fixed, a sender knows from the time of a report which frames it should have named.
//!
//! Of the three levels of its error correction only that of bytes is modelled ([`code`]).

mod code;
mod report;

use crate::plan::{AirmailSpec, Direction};
use airmend_proto::link::{ErrorModel, LinkCounters, Medium, Output};
use airmend_proto::random::{Purpose, Stream};
use airmend_proto::{Instant, Packet};
use code::{Adaptive, Code};
use report::Report;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

/// Number, code and checksum of a frame.
const HEADER: u32 = 8;
/// A status frame: header, the first missing number, and a bit for each number of the window.
const STATUS: u32 = HEADER + 4 + AirmailSpec::MOST_WINDOW / 8;
/// The side of the base station, which is the first end of the link.
const BASE: usize = 0;

/// The share of a link's rate that arrives as packets of so many bytes at most, whatever code the
/// frames bear.
pub(crate) fn most_of_rate(bytes: u32, errors: ErrorModel, fec: bool) -> f64 {
    let frame = bytes + HEADER;
    f64::from(bytes) / f64::from(frame) * code::best_share(frame, bit_errors(errors), fec)
}

/// A medium of two stations, the base station and a mobile.
pub(crate) struct Airmail {
    spec: AirmailSpec,
    /// The stations on both sides.
    stations: [usize; 2],
    /// By the side that sends.
    ways: [Way; 2],
    now: Instant,
    outputs: VecDeque<Output>,
}

/// One direction.
struct Way {
    params: Direction,
    errors: Stream,
    busy_until: Instant,
    arrivals: VecDeque<(Instant, Frame)>,
    counters: LinkCounters,
    /// At the sender: packets not yet sent, the number of the next one, and what was sent and is
    /// not known to have arrived.
    waiting: VecDeque<Packet>,
    next: u64,
    sent: BTreeMap<u64, Sent>,
    /// Of these, the ones to be sent again.
    lost: BTreeSet<u64>,
    fec: Adaptive,
    /// At the receiver: the first missing number, and what arrived beyond it.
    expected: u64,
    held: BTreeMap<u64, Packet>,
    /// When a report is due.
    report_at: Option<Instant>,
}

struct Sent {
    packet: Packet,
    code: Code,
    /// When its last transmission would have arrived.
    arrives: Instant,
}

enum Frame {
    Data(u64, Packet),
    Status(Report),
}

impl Airmail {
    /// An idle medium between two stations with these directions.
    pub(crate) fn new(
        spec: AirmailSpec,
        directions: [Direction; 2],
        stations: [usize; 2],
        seed: u64,
        link: u32,
    ) -> Self {
        let way = |way: u8, params| Way {
            params,
            errors: Stream::new(seed, link, way, Purpose::BitError),
            busy_until: Instant::ZERO,
            arrivals: VecDeque::new(),
            counters: LinkCounters::default(),
            waiting: VecDeque::new(),
            next: 0,
            sent: BTreeMap::new(),
            lost: BTreeSet::new(),
            fec: Adaptive::default(),
            expected: 0,
            held: BTreeMap::new(),
            report_at: None,
        };
        let [down, up] = directions;
        let ways = [way(0, down), way(1, up)];
        Self { spec, stations, ways, now: Instant::ZERO, outputs: VecDeque::new() }
    }

    fn side(&self, station: usize) -> usize {
        usize::from(station != self.stations[0])
    }

    /// A frame has arrived at the other end of a direction.
    fn arrived(&mut self, side: usize, frame: Frame) {
        let way = &mut self.ways[side];
        let (number, packet) = match frame {
            Frame::Data(number, packet) => (number, packet),
            Frame::Status(report) => {
                let other = &mut self.ways[1 - side];
                other.learn(&report);
                return;
            }
        };
        if number >= way.expected {
            way.held.insert(number, packet);
        }
        while let Some(packet) = way.held.remove(&way.expected) {
            way.expected += 1;
            let [from, to] = [self.stations[side], self.stations[1 - side]];
            self.outputs.push_back(Output::Delivery { from, to, packet });
        }
        if side != BASE {
            // The base station reports at once.
            way.report_at = Some(self.now);
        }
    }

    /// The next tick of the regular reports.
    fn next_tick(&self) -> Instant {
        let interval = self.spec.status.as_nanos() as u64;
        Instant::from_nanos((self.now.as_nanos() / interval + 1) * interval)
    }

    /// Sends what is most urgent on a side, if anything is: a report, what was lost, new data.
    fn serve(&mut self, side: usize) {
        let now = self.now;
        let (is_free, other) = (self.ways[side].busy_until <= now, 1 - side);
        if !is_free {
            return;
        }
        let received = &mut self.ways[other];
        if received.report_at.is_some_and(|at| at <= now) {
            received.report_at = None;
            let report = Report::new(now, received.expected, received.held.keys());
            self.ways[side].transmit(now, STATUS, Code::STATUS, Frame::Status(report));
            return;
        }
        let way = &mut self.ways[side];
        let lost = way.lost.pop_first();
        if let Some((number, packet)) =
            lost.and_then(|number| Some((number, way.sent.get(&number)?.packet.clone())))
        {
            way.send_data(now, self.spec.fec, number, packet);
        } else if way.has_room(self.spec.window)
            && let Some(packet) = way.waiting.pop_front()
        {
            way.next += 1;
            way.send_data(now, self.spec.fec, way.next - 1, packet);
            if way.waiting.is_empty() {
                self.outputs.push_back(Output::Ready(self.stations[side]));
            }
        }
    }

    /// Reports go on while frames may be missing.
    fn schedule_reports(&mut self) {
        let tick = self.next_tick();
        for way in self.ways.iter_mut().filter(|way| !way.sent.is_empty()) {
            way.report_at.get_or_insert(tick);
        }
    }

    /// When a side has something to do.
    fn side_timeout(&self, side: usize) -> Option<Instant> {
        let (way, other) = (&self.ways[side], &self.ways[1 - side]);
        let has_data =
            !way.lost.is_empty() || !way.waiting.is_empty() && way.has_room(self.spec.window);
        let data = has_data.then_some(way.busy_until);
        let report = other.report_at.map(|at| at.max(way.busy_until));
        let arrival = way.arrivals.front().map(|(at, _)| *at);
        [data, report, arrival].into_iter().flatten().min()
    }
}

impl Way {
    /// Whether the window has room for a new frame.
    fn has_room(&self, window: u32) -> bool {
        let oldest = self.sent.keys().next().copied().unwrap_or(self.next);
        self.next - oldest < u64::from(window)
    }

    fn send_data(&mut self, now: Instant, is_coded: bool, number: u64, packet: Packet) {
        let code = if is_coded { self.fec.code() } else { Code::default() };
        let bytes = packet.wire_len() + HEADER;
        let arrives = self.transmit(now, bytes, code, Frame::Data(number, packet.clone()));
        self.sent.insert(number, Sent { packet, code, arrives });
    }

    /// Puts a frame of so many bytes before coding on the air; returns when it arrives, if it does.
    fn transmit(&mut self, now: Instant, bytes: u32, code: Code, frame: Frame) -> Instant {
        let coded = code.coded(bytes);
        let nanos = u64::from(coded) * 8_000_000_000 / self.params.rate_bps.max(1);
        let airtime = Duration::from_nanos(nanos);
        self.busy_until = now + airtime;
        let arrives = self.busy_until + self.params.delay;
        self.counters.frames += 1;
        self.counters.bytes += u64::from(coded);
        self.counters.busy += airtime;
        let ber = bit_errors(self.params.errors);
        let is_damaged = self.errors.happens(code.failure(bytes, ber));
        if self.params.handoff.is_some_and(|handoff| handoff.is_under_way(now)) {
            self.counters.lost += 1;
        } else if is_damaged {
            self.counters.damaged += 1;
        } else {
            self.arrivals.push_back((arrives, frame));
        }
        arrives
    }

    /// What a report says of the frames of this direction.
    fn learn(&mut self, report: &Report) {
        let (fec, lost) = (&mut self.fec, &mut self.lost);
        self.sent.retain(|number, sent| {
            if report.names(*number) {
                lost.remove(number);
                fec.learn(sent.code, false);
                return false;
            }
            if sent.arrives <= report.taken_at() && lost.insert(*number) {
                fec.learn(sent.code, true);
            }
            true
        });
    }
}

impl Medium for Airmail {
    fn can_send(&self, _now: Instant, from: usize) -> bool {
        self.ways[self.side(from)].waiting.is_empty()
    }

    fn free_at(&self, _from: usize) -> Option<Instant> {
        None
    }

    fn send(&mut self, now: Instant, from: usize, _to: usize, packet: Packet) -> bool {
        let side = self.side(from);
        let way = &mut self.ways[side];
        if way.waiting.len() > way.params.queue_frames {
            way.counters.dropped += 1;
            return false;
        }
        way.waiting.push_back(packet);
        self.now = now;
        self.serve(side);
        self.schedule_reports();
        true
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if !self.outputs.is_empty() {
            return Some(self.now);
        }
        (0..2).filter_map(|side| self.side_timeout(side)).min()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.now = now;
        for side in 0..2 {
            while let Some((_, frame)) = self.ways[side].arrivals.pop_front_if(|(at, _)| *at <= now)
            {
                self.arrived(side, frame);
            }
        }
        (0..2).for_each(|side| self.serve(side));
        self.schedule_reports();
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    fn counters(&self, from: usize, _to: usize) -> LinkCounters {
        self.ways[self.side(from)].counters
    }
}

/// The bit error rate: a scenario allows no other errors.
fn bit_errors(errors: ErrorModel) -> f64 {
    match errors {
        ErrorModel::Ber(ber) => ber,
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests;
