//! The rate of the gateway's own queue: a little below what the hop beyond the interface delivers,
//! so that the queue stands here. A state machine: measurements go in, a rate comes out.
//!
//! - While a queue stands beyond, the hop is busy, and what arrives is what it carries: that is the
//!   capacity. The rate then is lower still until that queue is empty.
//! - Who delays ACKs looks like a slow hop. So a queue counts by what the mobiles had of the
//!   capacity that show it: it falls at once if that was most of it, and by the square of their
//!   part otherwise, for no longer than a queue may take to drain.
//! - While no queue stands there, arrivals show no more than what was sent. If the rate is used up,
//!   it is raised slowly, and faster the longer no queue comes of it.
//! - A delay that a lower rate does not remove, if that rate was used, is not a queue of what is
//!   sent here: the capacity is as before, and such a delay does not count for a minute.

use super::super::config::MIN_SHAPE;
use crate::qdisc::MAX_RATE;
use std::collections::VecDeque;
use std::time::Duration;

/// How often the rate is decided.
pub(super) const INTERVAL: Duration = Duration::from_millis(100);
/// The rate as a share of the capacity: the queue beyond must drain, though HTB sends in bursts of
/// a millisecond and the capacity is known to some percent. 4 % are what is lost by it.
const SHARE: f64 = 0.96;
/// A delay that is no standing queue (RFC 8289 §4.2), and in frames, for slow hops.
const TARGET: f64 = 0.005;
const TARGET_BITS: f64 = 3.0 * 1514.0 * 8.0;
/// Intervals in a row that a queue must stand, and the most that are measured.
const STANDING: usize = 2;
const MEASURED: usize = 5;
/// The share by which the rate is lower while the queue beyond drains: what empties it in a second,
/// within these limits.
const MIN_DRAIN: f64 = 0.10;
const MAX_DRAIN: f64 = 0.25;
/// The longest time that a queue may take to drain.
const MAX_DRAINING: f64 = 10.0;
/// Arrivals below this share of the rate show that the capacity has fallen, or falls further while
/// a queue drains.
const FALLEN: f64 = 0.9;
/// After a queue the rate stays for this time, in seconds; then it rises by the first share in a
/// second, twice as fast with every further second, up to the last.
const HOLD: f64 = 2.0;
const FIRST_GAIN: f64 = 0.025;
const MAX_GAIN: f64 = 0.5;
/// The rate is used up if so much of it is sent, over half a second.
const USED: f64 = 0.95;
/// The share of an interval in that.
const USED_WEIGHT: f64 = 0.25;
/// For so long a delay that does not drain is no queue, and by this factor it may grow.
const FLOOR_SECONDS: f64 = 60.0;
const FLOOR_FACTOR: f64 = 1.25;
/// Payload in what leaves, before it is measured; and the bytes after which older ones count half.
const USUAL_YIELD: f64 = 0.9;
const MIN_YIELD: f64 = 0.4;
const YIELD_BYTES: f64 = 4e6;
const FIRST_YIELD_BYTES: f64 = 50e3;
/// The share of an interval in the mean mix of traffic.
const MIX: f64 = 0.05;

/// What happened in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Interval {
    /// Its length.
    pub(super) took: Duration,
    /// Bytes that left the interface's queue.
    pub(super) sent: u64,
    /// Those of the flows that are measured.
    pub(super) measured: u64,
    /// Bytes of payload of these flows that arrived.
    pub(super) delivered: u64,
    /// Bytes of payload that arrived between the ACKs of two packets, and bytes that had left
    /// between these packets.
    pub(super) served: [u64; 2],
    /// The delay beyond the least one, if there are samples: of each mobile the lower quartile, and
    /// of these the median, by bytes.
    pub(super) excess: Option<Duration>,
    /// Bits per second that the mobiles with samples have lately had.
    pub(super) carried: f64,
}

/// What the hop carries.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Capacity {
    bps: f64,
    /// A queue was seen at this rate: the rate is limited. Until then it is what has arrived most.
    is_limit: bool,
}

/// A queue that stands beyond the interface.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Queue {
    /// The share by which the rate is lower so that it drains; 0 until the capacity is that of what
    /// arrives.
    share: f64,
    /// When it must have drained, in seconds.
    until: f64,
    /// The capacity before.
    before: Capacity,
}

/// The control. Times are seconds, rates bits per second.
#[derive(Debug, Default)]
pub(super) struct Control {
    now: f64,
    capacity: Capacity,
    queue: Option<Queue>,
    /// The last intervals, if a queue stands.
    standing: VecDeque<Interval>,
    /// The rate that is used, smoothed.
    used: f64,
    /// When a queue stood last, and since then the time in which the rate was used up.
    stood_at: f64,
    probed: f64,
    /// Payload that arrived, and what had left for it, while no queue stood.
    served: [f64; 2],
    /// Mean bytes of an interval: of flows that are measured, and of all.
    mix: [f64; 2],
    /// A delay that did not drain, and when it was found.
    floor: Option<(f64, f64)>,
}

impl Control {
    /// Decides after an interval; `None` for no limit yet.
    pub(super) fn step(&mut self, interval: &Interval) -> Option<f64> {
        let took = interval.took.as_secs_f64();
        if took <= 0.0 {
            return self.rate();
        }
        self.now += took;
        for (mean, bytes) in self.mix.iter_mut().zip([interval.measured, interval.sent]) {
            *mean += (bytes as f64 - *mean) * MIX;
        }
        let used = self.whole(interval.measured, took);
        self.used += (used - self.used) * USED_WEIGHT;
        match interval.excess.map(|excess| excess.as_secs_f64()) {
            Some(excess) if excess > self.threshold() => {
                self.remember(interval);
                self.stood_at = self.now;
                self.probed = 0.0;
                if self.standing.len() >= STANDING {
                    self.congested(excess);
                }
            }
            Some(excess) => {
                self.standing.clear();
                self.drained();
                self.learn(interval.served);
                if !self.capacity.is_limit {
                    let arriving = self.whole(interval.delivered, took) / self.payload_share();
                    self.capacity.bps = self.capacity.bps.max(arriving);
                }
                // A queue that begins to build up needs no more.
                if excess <= self.threshold() / 2.0 {
                    self.probe(took);
                }
            }
            None if !self.standing.is_empty() => self.remember(interval),
            None => {}
        }
        self.rate()
    }

    /// The present rate.
    pub(super) fn rate(&self) -> Option<f64> {
        let share = SHARE - self.queue.map_or(0.0, |queue| queue.share);
        self.limit().map(|capacity| (capacity * share).max(MIN_SHAPE as f64))
    }

    fn limit(&self) -> Option<f64> {
        self.capacity.is_limit.then_some(self.capacity.bps)
    }

    fn remember(&mut self, interval: &Interval) {
        if self.standing.len() >= MEASURED {
            self.standing.pop_front();
        }
        self.standing.push_back(*interval);
    }

    fn threshold(&self) -> f64 {
        let frames = self.limit().map_or(0.0, |capacity| TARGET_BITS / capacity);
        let floor = self.floor.filter(|(_, at)| self.now - at < FLOOR_SECONDS);
        let floor = floor.map_or(0.0, |(delay, _)| delay * FLOOR_FACTOR);
        TARGET.max(frames).max(floor)
    }

    /// No queue stands. One that went before the rate was that of what arrives was none of what is
    /// sent here.
    fn drained(&mut self) {
        let vanished = self.queue.take().filter(|queue| queue.share == 0.0);
        self.capacity = vanished.map_or(self.capacity, |queue| queue.before);
    }

    /// A queue stands beyond the interface.
    fn congested(&mut self, excess: f64) {
        let Some(arriving) = self.arriving() else { return };
        let Capacity { bps: capacity, .. } = self.capacity;
        let rate = self.rate().unwrap_or(capacity);
        let first = Queue { share: 0.0, until: self.now + MAX_DRAINING, before: self.capacity };
        let queue = *self.queue.get_or_insert(first);
        let is_used = queue.share > 0.0 && arriving >= FALLEN * rate;
        if self.now >= queue.until {
            // What a rate that nobody uses does not remove may be a queue.
            self.floor = if is_used { Some((excess, self.now)) } else { self.floor };
            self.capacity = queue.before;
            self.queue = None;
            self.standing.clear();
            return;
        }
        if is_used {
            return;
        }
        let part = (self.carried().max(arriving) / rate).min(1.0);
        // What arrives from now on shows whether the capacity falls further.
        self.standing.clear();
        let fallen = capacity - part * part * (capacity - arriving).max(0.0);
        if FALLEN * fallen > arriving {
            self.capacity.bps = fallen;
            return;
        }
        // While there was no limit, no more arrived than was sent.
        let bps = if self.capacity.is_limit { capacity.min(arriving) } else { arriving };
        self.capacity = Capacity { bps, is_limit: true };
        let share = excess.clamp(MIN_DRAIN, MAX_DRAIN);
        let until = self.now + (2.0 * excess / share + 1.0).min(MAX_DRAINING);
        self.queue = Some(Queue { share, until, ..queue });
    }

    /// The rate of what arrives, as bits that leave here, since the queue stands.
    fn arriving(&self) -> Option<f64> {
        let rate = |i: &Interval| self.whole(i.delivered, i.took.as_secs_f64());
        // Of slow start's bursts, some intervals may be half empty.
        let most = self.standing.iter().map(rate).fold(0.0, f64::max);
        (most > 0.0).then(|| most / self.payload_share())
    }

    /// What the mobiles have lately had that show the queue.
    fn carried(&self) -> f64 {
        let most = self.standing.iter().map(|interval| interval.carried).fold(0.0, f64::max);
        most / self.part()
    }

    /// The rate of all traffic if these are the bytes of flows that are measured.
    fn whole(&self, measured: u64, seconds: f64) -> f64 {
        measured as f64 * 8.0 / seconds / self.part()
    }

    /// The part of the traffic that is measured.
    fn part(&self) -> f64 {
        let [measured, sent] = self.mix;
        if sent > 0.0 { (measured / sent).clamp(0.1, 1.0) } else { 1.0 }
    }

    /// Bytes of payload that arrive for each byte that leaves: without headers, losses, repairs.
    fn payload_share(&self) -> f64 {
        let [delivered, left] = self.served;
        match left >= FIRST_YIELD_BYTES {
            true => (delivered / left).clamp(MIN_YIELD, 1.0),
            false => USUAL_YIELD,
        }
    }

    fn learn(&mut self, served: [u64; 2]) {
        for (sum, bytes) in self.served.iter_mut().zip(served) {
            *sum += bytes as f64;
        }
        if self.served[1] > YIELD_BYTES {
            self.served = self.served.map(|sum| sum / 2.0);
        }
    }

    /// No queue stands beyond: perhaps there is more to be had.
    fn probe(&mut self, took: f64) {
        let (Some(capacity), Some(rate)) = (self.limit(), self.rate()) else { return };
        if self.used < USED * rate || self.now - self.stood_at < HOLD {
            return;
        }
        self.probed += took;
        let gain = (FIRST_GAIN * self.probed.exp2()).min(MAX_GAIN);
        self.capacity.bps = (capacity * (1.0 + gain * took)).min(MAX_RATE as f64);
    }
}

#[cfg(test)]
mod tests;
