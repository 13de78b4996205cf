//! The model against a path of known rate, delay, queue and losses.

use super::*;
use crate::agents::arq::fields::clock_field;
use crate::random::{Purpose, Stream};
use alloc::collections::VecDeque;

const FRAME: u32 = 1_500;

/// A bottleneck with a FIFO, and a sender that always has frames.
struct Path {
    rate_bps: u64,
    round_trip: Duration,
    /// Frames that the queue takes; a policer has none, and drops what comes too early.
    queue: usize,
    loss: f64,
    /// Frames arrive at multiples of this time, unless it is none.
    turn: Duration,
    /// Link ACKs wait for so long on their way back.
    way_back: Duration,
    /// The sender is stopped for so long at the end of each half second.
    stopped: Duration,
    /// The path marks all frames.
    is_marking: bool,
    stream: Stream,
    control: RateControl,
    now: Instant,
    serial: SeqNumber,
    free_at: Instant,
    /// Frames that arrive, with the times at which their link ACK leaves and comes.
    acks: VecDeque<([Instant; 2], SeqNumber, bool)>,
    sent: u64,
    arrived: u64,
    dropped: u64,
    /// The sum of the times in the queue.
    queued: Duration,
}

impl Path {
    fn new(rate_bps: u64, round_trip: Duration, queue: usize, loss: f64) -> Self {
        Self {
            rate_bps,
            round_trip,
            queue,
            loss,
            turn: Duration::ZERO,
            way_back: Duration::ZERO,
            stopped: Duration::ZERO,
            is_marking: false,
            stream: Stream::new(1, 0, 0, Purpose::Loss),
            control: RateControl::new(),
            now: Instant::ZERO,
            serial: SeqNumber(0),
            free_at: Instant::ZERO,
            acks: VecDeque::new(),
            sent: 0,
            arrived: 0,
            dropped: 0,
            queued: Duration::ZERO,
        }
    }

    fn airtime(&self) -> Duration {
        Duration::from_nanos(u64::from(FRAME) * 8 * 1_000_000_000 / self.rate_bps)
    }

    fn run(&mut self, lasts: Duration) {
        let end = self.now + lasts;
        (self.sent, self.arrived, self.dropped, self.queued) = (0, 0, 0, Duration::ZERO);
        while self.now < end {
            let next_ack = self.acks.front().map(|ack| ack.0[1]);
            let is_admitted = self.control.admits(self.now, true);
            let next_frame = Some(self.control.departure().max(self.now)).filter(|_| is_admitted);
            match (next_ack, next_frame) {
                (Some(ack), frame) if frame.is_none_or(|frame| ack <= frame) => {
                    self.now = self.runs_at(self.now.max(ack));
                    self.acknowledge();
                }
                (_, Some(frame)) => self.send(self.runs_at(frame)),
                (_, None) => panic!("nothing is in flight and there is no room"),
            }
            if !is_admitted {
                self.control.depart_from(self.now);
            }
        }
    }

    /// When the sender runs that would run at `at`.
    fn runs_at(&self, at: Instant) -> Instant {
        let period = Duration::from_millis(500).as_nanos() as u64;
        let since = at.as_nanos() % period;
        let is_stopped = since + self.stopped.as_nanos() as u64 > period;
        if is_stopped { Instant::from_nanos(at.as_nanos() - since + period) } else { at }
    }

    /// Hosts that send so many frames at once, and wait for two round trips each time.
    fn run_bursts(&mut self, bursts: &[u32]) {
        for &frames in bursts {
            let next = self.now + 2 * self.round_trip;
            self.control.limit_by_hosts(self.now);
            (0..frames).for_each(|_| self.send(self.now));
            while self.acks.front().is_some_and(|ack| ack.0[1] < next) {
                self.acknowledge();
            }
            self.now = next;
        }
    }

    /// Hosts in slow start from which the link hides all losses: in each round trip they send twice
    /// as much, as far as they are let, and a repair frame goes with each of their frames. A round
    /// trip has time for what waits in a short queue.
    fn run_slow_start(&mut self, rounds: u32) {
        for round in 0..rounds {
            let next = self.now + self.round_trip + self.round_trip / 16;
            self.control.limit_by_hosts(self.now);
            self.sent = 0;
            while self.sent < 20 << round && self.control.admits(self.now, true) {
                self.send(self.now);
                self.send_frame(self.now, false);
            }
            while self.acks.front().is_some_and(|ack| ack.0[1] <= next) {
                self.acknowledge();
            }
            self.now = next;
        }
    }

    fn send(&mut self, at: Instant) {
        self.send_frame(at, true);
    }

    fn send_frame(&mut self, at: Instant, is_reliable: bool) {
        self.now = at;
        self.serial += 1;
        self.sent += 1;
        self.control.sent(at, self.serial, (FRAME, is_reliable));
        let waits = self.free_at.since(at);
        let is_dropped = waits.as_nanos() >= self.airtime().as_nanos() * (self.queue as u128 + 1);
        self.dropped += u64::from(is_dropped);
        let begin = self.free_at.max(at);
        let lost = self.stream.happens(self.loss);
        let mut done = at + self.round_trip;
        if !is_dropped {
            self.queued += waits;
            self.free_at = begin + self.airtime();
            done = self.free_at + self.round_trip;
        }
        if !self.turn.is_zero() {
            let turns = done.as_nanos().div_ceil(self.turn.as_nanos() as u64);
            done = Instant::from_nanos(turns * self.turn.as_nanos() as u64);
        }
        let times = [done, done + self.way_back];
        self.acks.push_back((times, self.serial, !is_dropped && !lost));
    }

    fn acknowledge(&mut self) {
        let Some(([left, at], serial, has_arrived)) = self.acks.pop_front() else { return };
        self.now = self.now.max(at);
        if has_arrived {
            self.arrived += 1;
            self.control.note_clock(self.now, clock_field(left));
            let arrived = |other| other == serial;
            let told = (Duration::ZERO, self.is_marking);
            self.control.acknowledge(self.now, (serial, serial), told, &arrived);
        }
    }

    /// The share of the rate that arrived in the last run of this time.
    fn share(&self, lasts: Duration) -> f64 {
        self.arrived as f64 * self.airtime().as_secs_f64() / lasts.as_secs_f64()
    }

    fn mean_queue(&self) -> Duration {
        self.queued / self.sent as u32
    }
}

const LONG: Duration = Duration::from_secs(30);
const ROUND_TRIP: Duration = Duration::from_millis(40);

#[test]
fn the_path_is_full_and_its_queue_short() {
    for queue in [33, 67, 134, 268] {
        let mut path = Path::new(20_000_000, ROUND_TRIP, queue, 0.0);
        path.run(LONG);
        assert!(path.dropped * 200 < path.sent, "startup: {} dropped", path.dropped);
        path.run(LONG);
        let (share, wait) = (path.share(LONG), path.mean_queue());
        assert!(share > 0.97, "{queue} frames: {share:.3} of the rate");
        assert!(wait < ROUND_TRIP / 32, "{queue} frames: {wait:?} in the queue");
        assert!(path.dropped * 1_000 < path.sent, "{} of {} dropped", path.dropped, path.sent);
    }
}

/// The mean of eight runs: what the path loses is known to a tenth of itself, and no queue is left
/// that would hide what is sent too little meanwhile.
#[test]
fn losses_of_the_path_cost_no_more_than_themselves() {
    for (loss, least) in [(0.01, 0.99), (0.05, 0.98), (0.1, 0.96)] {
        let shares = (1..=8).map(|seed| {
            let mut path = Path::new(20_000_000, ROUND_TRIP, 67, loss);
            path.stream = Stream::new(seed, 0, 0, Purpose::Loss);
            path.run(LONG);
            path.share(LONG) / (1.0 - loss)
        });
        let share = shares.sum::<f64>() / 8.0;
        assert!(share > least, "{share:.3} of what arrives at loss {loss}");
    }
}

#[test]
fn the_wait_for_a_turn_is_no_queue_at_which_losses_are_congestion() {
    let mut path = Path::new(20_000_000, ROUND_TRIP, 67, 0.02);
    path.turn = ROUND_TRIP * 3 / 4;
    path.run(LONG);
    assert!(!path.control.fair.is_bound());
    let share = path.share(LONG) / (1.0 - path.loss);
    assert!(share > 0.9, "{share:.3} of what arrives");
}

#[test]
fn what_bursts_lose_at_a_full_queue_is_not_the_paths_own() {
    // The queue takes half of each long burst. What it dropped is known by the short one, which
    // finds it empty.
    let mut path = Path::new(20_000_000, ROUND_TRIP, 33, 0.0);
    path.run_bursts(&[66, 5].repeat(20));
    assert!(path.dropped > 500 && path.control.is_starting(), "{} dropped", path.dropped);
    assert_eq!(path.control.losses.share(), 0);
    assert!(path.control.rate.get() < 2_600_000, "{} bytes/s", path.control.rate.get());
    // Beside it, losses of the path itself.
    let mut path = Path::new(20_000_000, ROUND_TRIP, 33, 0.1);
    path.run_bursts(&[6; 80]);
    let share = path.control.losses.share();
    assert!((51..205).contains(&share), "{share} of 1024");
    let told = path.control.loss().unwrap_or(0.0);
    assert!((0.05..0.2).contains(&told), "{told}");
}

#[test]
fn a_path_that_has_become_longer_while_idle_is_not_full() {
    let mut path = Path::new(20_000_000, ROUND_TRIP, 67, 0.0);
    path.run_bursts(&[1; 20]);
    path.round_trip = ROUND_TRIP * 3 / 2;
    path.now += min_round_trip::WINDOW + ROUND_TRIP;
    // Slow start: two frames for each that has arrived.
    path.send(path.now);
    while path.sent < 150 {
        path.acknowledge();
        path.send(path.now);
        path.send(path.now);
        path.control.limit_by_hosts(path.now);
    }
    assert!(path.control.is_starting());
}

#[test]
fn a_mark_reduces_what_was_in_flight_when_the_frame_left() {
    let mut path = Path::new(20_000_000, ROUND_TRIP, 1_000, 0.0);
    path.run_bursts(&[10]);
    (0..100).for_each(|_| path.send(path.now));
    // Of a burst the last frame is marked, behind which nothing is in flight.
    while path.acks.len() > 1 {
        path.acknowledge();
    }
    path.is_marking = true;
    path.acknowledge();
    let window = path.control.fair.bytes(path.now, ROUND_TRIP).expect("a bound");
    assert_eq!(window / u64::from(FRAME), 70);
}

#[test]
fn what_a_shallow_queue_drops_of_bursts_is_not_answered_by_more() {
    // It holds no more than an eighth of the round trip and a millisecond, and so counts as short.
    for queue in [0, 4, 12, 30] {
        let round_trip = Duration::from_millis(140);
        let mut path = Path::new(20_000_000, round_trip, queue, 0.0);
        path.run_slow_start(20);
        let rate = path.control.rate.get();
        assert!(path.dropped > 0 && rate < 2_500_000, "{queue} frames: {rate} bytes/s");
    }
}

#[test]
fn losses_of_a_policer_are_not_answered_by_more() {
    // Whatever comes faster than the rate is dropped, without a queue.
    let mut path = Path::new(20_000_000, ROUND_TRIP, 0, 0.0);
    path.run(LONG);
    path.run(LONG);
    let sent = path.sent as f64 * path.airtime().as_secs_f64() / LONG.as_secs_f64();
    assert!(sent < 1.3, "{sent:.3} of the rate is sent");
}

#[test]
fn the_model_follows_a_step_of_the_rate() {
    let mut path = Path::new(20_000_000, ROUND_TRIP, 67, 0.01);
    path.run(LONG);
    path.rate_bps = 5_000_000;
    path.run(Duration::from_secs(3));
    path.run(LONG);
    assert!(path.share(LONG) > 0.93, "{:.3} of the low rate", path.share(LONG));
    assert!(path.mean_queue() < 2 * ROUND_TRIP, "{:?}", path.mean_queue());
    path.rate_bps = 20_000_000;
    path.run(Duration::from_secs(5));
    path.run(LONG);
    assert!(path.share(LONG) > 0.93, "{:.3} of the high rate", path.share(LONG));
}

#[test]
fn a_step_of_the_delay_every_fifteen_seconds_does_not_break_it() {
    // Low-orbit satellites: the delay steps with a burst of losses, and a little is always lost.
    let mut path = Path::new(50_000_000, ROUND_TRIP, 167, 0.01);
    let (mut arrived, mut lasts) = (0.0, Duration::ZERO);
    for step in 0..8u64 {
        path.round_trip = Duration::from_millis([40, 55, 35, 60, 45, 30, 50, 40][step as usize]);
        path.loss = 0.5;
        path.run(Duration::from_millis(100));
        path.loss = 0.01;
        let whole = Duration::from_secs(15);
        path.run(whole);
        arrived += path.share(whole) * whole.as_secs_f64();
        lasts += whole;
    }
    let share = arrived / lasts.as_secs_f64();
    assert!(share > 0.88, "{share:.3} of the rate");
}

#[test]
fn a_sender_that_is_stopped_sends_what_it_missed() {
    let round_trip = Duration::from_millis(174);
    let mut path = Path::new(20_000_000, round_trip, 290, 0.0);
    path.stopped = Duration::from_millis(100);
    path.run(LONG);
    path.run(LONG);
    assert!(path.share(LONG) > 0.95, "{:.3} of the rate", path.share(LONG));
    assert!(path.dropped * 100 < path.sent, "{} of {} dropped", path.dropped, path.sent);
}

#[test]
fn a_queue_of_the_way_back_does_not_slow_down_the_way_there() {
    let mut path = Path::new(20_000_000, ROUND_TRIP, 67, 0.01);
    path.run(LONG);
    for millis in [20, 60, 120, 240, 80, 400] {
        path.way_back = Duration::from_millis(millis);
        let lasts = Duration::from_secs(10);
        path.run(lasts);
        assert!(path.share(lasts) > 0.93, "{millis} ms: {:.3} of the rate", path.share(lasts));
        assert!(path.mean_queue() < ROUND_TRIP, "{millis} ms: {:?}", path.mean_queue());
    }
}

#[test]
fn congestion_reduces_the_window_and_random_losses_do_not() {
    let mut path = Path::new(20_000_000, ROUND_TRIP, 67, 0.05);
    path.run(LONG);
    let before = path.control.fair.bytes(path.now, ROUND_TRIP);
    // Others fill the queue: all round trips are longer by 40 ms, and one in three frames is lost.
    path.round_trip = 2 * ROUND_TRIP;
    path.loss = 0.33;
    path.run(Duration::from_millis(500));
    let after = path.control.fair.bytes(path.now, ROUND_TRIP).expect("a bound");
    assert!(before.is_none_or(|before| after < before), "{before:?} and then {after}");
    assert!(path.control.window(path.now) <= after.max(LEAST_WINDOW));
}

#[test]
fn a_reduction_for_frames_that_were_overtaken_is_undone() {
    let mut path = Path::new(20_000_000, ROUND_TRIP, 67, 0.05);
    path.run(LONG);
    path.round_trip = 2 * ROUND_TRIP;
    path.loss = 0.33;
    let before = path.control.fair;
    while path.control.fair == before {
        path.run(Duration::from_millis(10));
    }
    let answered = path.control.answered;
    assert!(answered > 1, "{answered}");
    let bytes = |path: &Path| path.control.fair.bytes(path.now, ROUND_TRIP);
    let reduced = bytes(&path);
    path.control.arrived_late(answered - 1);
    assert_eq!(bytes(&path), reduced);
    path.control.arrived_late(1);
    assert_eq!(bytes(&path), before.bytes(path.now, ROUND_TRIP));
}
