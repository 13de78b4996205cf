//! The control at a simulated hop: a FIFO beyond the interface, and a sender that fills whatever
//! there is room for, in steps of a millisecond.

use super::*;

const STEP: f64 = 1e-3;
/// Payload of a full frame.
const PAYLOAD: f64 = 1448.0 / 1514.0;

/// A hop beyond the gateway, and the control in front of it.
struct Hop {
    control: Control,
    capacity: f64,
    /// Bits in the queue beyond, and the most that it holds.
    queued: f64,
    limit: f64,
    loss: f64,
    /// Of what is sent, no flow that is measured.
    other: f64,
    /// What the sender offers at most.
    offered: f64,
    /// A delay that is not of a queue.
    extra: f64,
    carried: f64,
    /// Mean rate of ten seconds.
    lately: f64,
    delays: Vec<f64>,
}

impl Hop {
    fn new(capacity: f64) -> Self {
        Self {
            control: Control::default(),
            capacity,
            queued: 0.0,
            limit: 140.0 * 1514.0 * 8.0,
            loss: 0.0,
            other: 0.0,
            offered: 100e6,
            extra: 0.0,
            carried: 0.0,
            lately: 0.0,
            delays: Vec::new(),
        }
    }

    /// Runs for so many seconds; the share of the capacity that was used, and the median delay.
    fn run(&mut self, seconds: f64) -> (f64, f64) {
        (self.carried, self.delays) = (0.0, Vec::new());
        let intervals = (seconds / INTERVAL.as_secs_f64()).round() as u32;
        for _ in 0..intervals {
            let interval = self.interval();
            self.control.step(&interval);
        }
        self.delays.sort_by(f64::total_cmp);
        let median = self.delays[self.delays.len() / 2];
        (self.carried / self.capacity / seconds, median)
    }

    fn interval(&mut self) -> Interval {
        let steps = (INTERVAL.as_secs_f64() / STEP).round() as u32;
        let rate = self.control.rate().unwrap_or(f64::INFINITY).min(self.offered);
        let (mut sent, mut carried, mut delays) = (0.0, 0.0, Vec::new());
        for _ in 0..steps {
            sent += rate * STEP;
            self.queued = (self.queued + rate * STEP).min(self.limit);
            let passed = self.queued.min(self.capacity * STEP);
            self.queued -= passed;
            carried += passed;
            delays.push(self.queued / self.capacity + self.extra);
        }
        self.carried += carried;
        self.delays.extend(&delays);
        delays.sort_by(f64::total_cmp);
        let bytes = |bits: f64| (bits / 8.0) as u64;
        let useful = carried * (1.0 - self.loss) * (1.0 - self.other) * PAYLOAD;
        let lossless = sent * (1.0 - self.other);
        let seconds = INTERVAL.as_secs_f64();
        self.lately += (lossless / seconds - self.lately) * seconds / 10.0;
        Interval {
            took: INTERVAL,
            sent: bytes(sent),
            measured: bytes(lossless),
            delivered: bytes(useful),
            served: [bytes(lossless * (1.0 - self.loss) * PAYLOAD), bytes(lossless)],
            carried: self.lately,
            excess: (sent > 0.0).then(|| Duration::from_secs_f64(delays[delays.len() / 4])),
        }
    }
}

/// A hop to which the control has found its rate.
fn settled(capacity: f64) -> Hop {
    let mut hop = Hop::new(capacity);
    hop.run(5.0);
    hop
}

fn assert_good(hop: &mut Hop, seconds: f64) {
    let (used, delay) = hop.run(seconds);
    assert!(used > 0.94, "{used} of the capacity, {delay} s");
    assert!(delay < 0.008, "{delay} s, {used} of the capacity");
}

#[test]
fn without_a_queue_there_is_no_limit() {
    let mut hop = Hop::new(20e6);
    hop.offered = 10e6;
    hop.run(60.0);
    assert_eq!(hop.control.rate(), None);
}

#[test]
fn the_first_queue_shows_the_capacity_whatever_was_sent_before() {
    let mut hop = Hop { offered: 10e6, ..Hop::new(20e6) };
    hop.run(2.0);
    hop.offered = 100e6;
    hop.run(1.0);
    assert!(hop.control.capacity.bps > 0.98 * 20e6, "{:?}", hop.control.capacity);
}

#[test]
fn the_queue_beyond_is_emptied_and_stays_short() {
    for capacity in [1e6, 5e6, 20e6, 100e6, 1e9] {
        let mut hop = Hop { limit: capacity * 0.1, offered: 2.0 * capacity, ..Hop::new(capacity) };
        hop.run(5.0);
        let (used, delay) = hop.run(60.0);
        let frames = 3.0 * 1514.0 * 8.0 / capacity;
        assert!(used > 0.94 && delay < frames.max(0.008), "{capacity}: {used}, {delay} s");
    }
}

#[test]
fn losses_of_the_air_are_no_lower_rate() {
    for loss in [0.05, 0.1, 0.3] {
        let mut hop = Hop { loss, offered: 15e6, ..Hop::new(20e6) };
        // A transfer begins with what fits.
        hop.run(1.0);
        hop.offered = 100e6;
        hop.run(4.0);
        assert_good(&mut hop, 30.0);
    }
}

#[test]
fn a_rate_that_falls_to_a_half_is_followed_within_two_seconds() {
    let mut hop = settled(20e6);
    assert_good(&mut hop, 20.0);
    hop.capacity = 10e6;
    hop.run(2.0);
    let rate = hop.control.rate().unwrap_or(f64::INFINITY);
    assert!(rate <= 10e6, "{rate}");
    assert_good(&mut hop, 20.0);
}

#[test]
fn a_rate_that_doubles_is_followed_within_ten_seconds() {
    let mut hop = settled(10e6);
    hop.capacity = 20e6;
    hop.run(10.0);
    assert_good(&mut hop, 20.0);
}

#[test]
fn while_nothing_is_sent_the_rate_stays() {
    let mut hop = settled(20e6);
    hop.offered = 0.0;
    // What is under way arrives.
    hop.run(1.0);
    let before = hop.control.rate();
    hop.run(600.0);
    assert_eq!(hop.control.rate(), before);
    hop.offered = 1e6;
    hop.run(60.0);
    assert_eq!(hop.control.rate(), before, "a little shows nothing");
    hop.offered = 100e6;
    assert_good(&mut hop, 20.0);
}

#[test]
fn what_is_not_measured_takes_its_part_of_the_rate() {
    let mut hop = Hop { other: 0.3, ..Hop::new(20e6) };
    hop.run(5.0);
    assert_good(&mut hop, 30.0);
}

#[test]
fn a_delay_that_does_not_drain_costs_the_rate_for_seconds_only() {
    let mut hop = settled(20e6);
    hop.run(10.0);
    hop.extra = 0.03;
    hop.run(3.0);
    let (used, _) = hop.run(40.0);
    assert!(used > 0.9, "{used}");
}

#[test]
fn the_rate_is_never_below_the_least() {
    let mut hop = settled(20e6);
    hop.capacity = 1e3;
    hop.run(60.0);
    assert_eq!(hop.control.rate(), Some(MIN_SHAPE as f64));
}
