//! The rate control of a link whose bottleneck may be anywhere between its ends: BBR's model of the
//! path (Cardwell et al. 2016, draft-cardwell-iccrg-bbr-congestion-control-00) with four changes.
//!
//! A link that retransmits hides its losses from the hosts, so it must answer for them itself.
//! BBR's model is chosen since its rate follows what arrives and not what is lost: losses of a
//! radio do not slow it down, and no loss makes it send more than a quarter above what arrives. A
//! rule that goes by delay alone (Copa, Vegas) takes a change of the path's delay for a queue, and
//! grows without bound where a policer drops without one.
//!
//! 1. What the path loses by itself is made up for ([`flight`], [`losses`]): BBR paces at the rate
//!    that arrives, which is less than the path carries. Not in startup, whose bursts a shallow
//!    queue drops without ever being long, and not where the round trip never varies: a queue that
//!    others keep full looks like a longer path that loses.
//! 2. Losses beyond that, at a standing queue, reduce a window as CUBIC does ([`fair_window`]): BBR
//!    ignores them, and pushes loss-based senders aside at short queues. Marks of ECN do so at any
//!    queue. What a shallow one holds is known by the longest time that frames have waited in it.
//! 3. Until the path has been full, the link shows nothing of itself: it sends what the hosts send,
//!    whose own slow start finds the path. Of what is sent once nothing is hidden from the hosts,
//!    so that startup limits only what is repeated. It ends when the round trip grows
//!    ([`startup`]). The minimum round trip is probed for only if it has not been seen again,
//!    and is that of means, since frames may take times of their own ([`min_round_trip`]).
//! 4. The gain cycle probes with half of BBR's quarter. While the path carries what is sent beyond
//!    the rate, a whole quarter more is sent.
//!
//! Round trips are without the queue of the way back, which is not this end's ([`way_back`]).
//!
//! Time and frames go in; whether a frame may leave, and when, comes out. Sizes are bytes, rates
//! bytes per second.

mod fair_window;
mod flight;
mod losses;
mod min_round_trip;
mod startup;
#[cfg(test)]
mod tests;
mod way_back;

use crate::extreme::{Extreme, PATH_WINDOW};
use crate::time::Instant;
use crate::windowed_max::WindowedMax;
use crate::wire::seq::SeqNumber;
use core::time::Duration;
use fair_window::FairWindow;
use flight::{Flight, Sample};
use losses::Losses;
use min_round_trip::MinRoundTrip;
use startup::Startup;
pub(crate) use startup::noticed_growth;
use way_back::WayBack;

/// A gain of 1.
const UNIT: u64 = 256;
/// The window of startup: hosts in slow start send twice what arrived, and others may begin. More
/// would overflow a queue of one bandwidth-delay product.
const STARTUP_GAIN: u64 = UNIT * 9 / 4;
/// Its least window: the third burst of hosts in slow start, of 40 packets, leaves whole with its
/// repair frames, which may be half as many, and with what is left of the second one.
const LEAST_STARTUP_WINDOW: u64 = 8 * INITIAL_WINDOW;
const DRAIN_GAIN: u64 = UNIT / 3;
/// The gain cycle of the rate, one phase for each minimum round trip. What the first one sends more
/// queues in a full path, and delays all that crosses it: half of BBR's quarter. The second ends
/// when that has drained, for which a round trip is long enough.
const CYCLE: [u64; 8] = [UNIT * 9 / 8, UNIT * 3 / 4, UNIT, UNIT, UNIT, UNIT, UNIT, UNIT];
/// The gain while the rate grows: BBR's.
const GROWTH_GAIN: u64 = UNIT * 5 / 4;
/// The gain while others fill the queue: the fair window limits what is in flight.
const SHARED_GAIN: u64 = UNIT * 65 / 64;
/// Round trips over which the largest delivery rate is taken.
const ROUNDS: u64 = 10;
/// In flight before anything is known, and at least (RFC 6928: ten packets).
const INITIAL_WINDOW: u64 = 15_000;
const LEAST_WINDOW: u64 = 6_000;
/// The time at full rate by which the window exceeds its multiple of the bandwidth-delay product:
/// link ACKs come in batches.
const ACK_SLACK: Duration = Duration::from_millis(3);

/// The model of the path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RateControl {
    flight: Flight,
    /// The largest rate that the path has carried in the last round trips.
    rate: WindowedMax<u64>,
    round: u64,
    /// The round trip ends when a frame arrives that left after so much had arrived.
    round_end: u64,
    least: MinRoundTrip,
    way_back: WayBack,
    /// The time in the queue: the last one, and the longest of this round trip; and when it was
    /// long, or it marked frames, or they waited at the end itself.
    queueing: Duration,
    longest: Duration,
    queue_seen: Instant,
    /// The least of this round trip and of the one before: what a queue that stands adds.
    standing: [Duration; 2],
    /// The longest time in the queue of the last one to two minutes.
    fullest: Extreme,
    startup: Startup,
    phase: Phase,
    losses: Losses,
    /// The largest rate when the gain cycle last sent more than that.
    probed: u64,
    fair: FairWindow,
    /// What must arrive before the fair window is reduced again: all that was in flight when it was
    /// reduced last.
    recovered: u64,
    /// The lost frames for which it was, as far as they have not arrived after all.
    answered: u32,
    /// The least round trip since then.
    floor: Duration,
    /// Whether a queue stands that this link alone would not make.
    is_shared: bool,
    next_departure: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Phase {
    /// The hosts find the path.
    Startup,
    /// The queue that they made drains.
    Drain,
    /// The gain cycle: the place in it, and since when.
    Cycle(usize, Instant),
    /// The path carries more than was known: since when more yet is sent.
    Growth(Instant),
}

impl RateControl {
    /// Nothing is known of the path.
    pub(crate) fn new() -> Self {
        Self {
            flight: Flight::new(),
            rate: WindowedMax::new(ROUNDS),
            round: 0,
            round_end: 0,
            least: MinRoundTrip::default(),
            way_back: WayBack::default(),
            queueing: Duration::ZERO,
            longest: Duration::ZERO,
            queue_seen: Instant::ZERO,
            standing: [Duration::ZERO; 2],
            fullest: Extreme::largest(PATH_WINDOW, Instant::ZERO, Duration::ZERO),
            startup: Startup::new(),
            phase: Phase::Startup,
            losses: Losses::default(),
            probed: 0,
            fair: FairWindow::default(),
            recovered: 0,
            answered: 0,
            floor: Duration::MAX,
            is_shared: false,
            next_departure: Instant::ZERO,
        }
    }

    /// The other end begins anew, and its serial numbers and its clock with it.
    pub(crate) fn restart(&mut self) {
        self.flight.restart();
        self.way_back = WayBack::default();
    }

    /// The largest rate of the last round trips at which frames arrived, in bytes per second.
    pub(crate) fn rate(&self) -> Option<u64> {
        let arriving = self.rate.get() * (1_024 - self.losses.share()) / 1_024;
        Some(arriving).filter(|rate| *rate > 0)
    }

    /// The share of frames that were lost while the queue was short, if enough are known.
    pub(crate) fn loss(&self) -> Option<f64> {
        self.losses.told()
    }

    /// Whether frames are in flight.
    pub(crate) fn is_idle(&self) -> bool {
        self.flight.in_flight() == 0
    }

    /// Whether the path has not been full yet.
    pub(crate) fn is_starting(&self) -> bool {
        !self.startup.is_over()
    }

    /// Whether startup may be about to end, since the round trip has become longer.
    pub(crate) fn is_in_doubt(&self) -> bool {
        self.startup.is_in_doubt()
    }

    /// Whether the path has had no queue since the last round trip began: what it loses then, no
    /// queue has dropped.
    pub(crate) fn is_calm(&self) -> bool {
        self.is_short(self.longest)
    }

    /// Whether less is in flight than the path holds without a queue.
    pub(crate) fn is_below_path(&self) -> bool {
        self.flight.under_way() < self.product(UNIT)
    }

    /// Whether the window admits another frame, which is repeated if it is lost or not. In startup
    /// it limits the former alone: of what is sent once the link hides no loss from the hosts.
    pub(crate) fn admits(&self, now: Instant, is_reliable: bool) -> bool {
        match self.phase {
            Phase::Startup => !is_reliable || self.flight.reliable() < self.window(now),
            _ => self.flight.under_way() < self.window(now),
        }
    }

    /// When the next frame may leave.
    pub(crate) fn departure(&self) -> Instant {
        self.next_departure
    }

    /// No frame has waited for its departure: what could have left earlier is not made up for.
    pub(crate) fn depart_from(&mut self, now: Instant) {
        self.next_departure = self.next_departure.max(now);
    }

    /// The hosts have nothing to send.
    pub(crate) fn limit_by_hosts(&mut self, now: Instant) {
        if self.flight.under_way() < self.window(now) {
            self.flight.limit_by_hosts();
        }
    }

    /// A frame leaves, of so many bytes, which is repeated if it is lost or not.
    pub(crate) fn sent(&mut self, now: Instant, serial: SeqNumber, frame: (u32, bool)) {
        self.flight.sent(now, serial, frame, self.gain() < UNIT);
        // Bursts of the hosts cross as they would without the link: HyStart takes one that is
        // stretched for a full path (RFC 9406), and ends their slow start.
        if self.phase == Phase::Startup {
            return;
        }
        let Some(rate) = self.pacing_rate() else { return };
        // A queue at the end itself: frames wait for its interface beyond their departure.
        let least = self.least.get().unwrap_or_default();
        if now.since(self.next_departure) > least / 16 + Duration::from_millis(1) {
            self.queue_seen = now;
        }
        let airtime = u64::from(frame.0).saturating_mul(1_000_000_000) / rate.max(1);
        // While a program is late or stopped the path drains, by one round trip at most. What could
        // have left meanwhile leaves at once, for the path is as full then as it was.
        let least = least.as_nanos() as u64;
        let earliest = Instant::from_nanos(now.as_nanos().saturating_sub(least));
        self.next_departure = self.next_departure.max(earliest) + Duration::from_nanos(airtime);
    }

    /// A link ACK has arrived that left at this time of the other end's clock.
    pub(crate) fn note_clock(&mut self, now: Instant, clock: u16) {
        let longer = self.way_back.sample(now, clock);
        self.least.lengthen(longer);
        self.flight.note_unheard(bytes_in(self.rate.get(), self.way_back.queueing()));
    }

    /// Takes a link ACK, which was delayed by `delay`, and may tell that the path has marked frames
    /// "congestion experienced". `arrived` says of a serial number up to `highest` whether it has
    /// arrived; what has not is lost up to `settled`.
    pub(crate) fn acknowledge(
        &mut self,
        now: Instant,
        (highest, settled): (SeqNumber, SeqNumber),
        (delay, is_marked): (Duration, bool),
        arrived: &dyn Fn(SeqNumber) -> bool,
    ) {
        // What a queue drops has not crossed it: one that stands, a shallow one that bursts of the
        // hosts meet in startup, or one that others keep full, so that it never varies.
        let may_be_dropped = self.phase == Phase::Startup
            || !self.is_short(self.queueing)
            || now.since(self.queue_seen) > min_round_trip::WINDOW;
        let usual = if may_be_dropped { 0 } else { self.losses.share() };
        let sample = self.flight.acknowledge(now, (highest, settled), usual, arrived);
        let delay = if sample.is_highest { delay } else { Duration::ZERO };
        let elsewhere = delay + self.way_back.queueing();
        let round_trip = sample.round_trip.and_then(|time| time.checked_sub(elsewhere));
        if let Some(round_trip) = round_trip {
            self.least.sample(now, round_trip);
        }
        self.count_round(now, &sample);
        if is_marked {
            self.congestion_experienced(now, &sample);
        }
        self.weigh_losses(now, &sample, round_trip.and_then(|_| self.least.mean()));
        self.follow(now, &sample, round_trip);
        let allowed = self.probing_window();
        if self.least.probe(now, self.flight.under_way(), allowed) && self.startup.is_over() {
            self.phase = Phase::Cycle(2, now);
        }
    }

    /// Frames that counted as lost have arrived: they were overtaken. When that holds for all for
    /// which the window was reduced, the reduction is undone (as in RFC 4015).
    pub(crate) fn arrived_late(&mut self, frames: u32) {
        if self.answered > 0 {
            self.answered = self.answered.saturating_sub(frames);
            if self.answered == 0 {
                self.recovered = self.flight.delivered();
                self.fair.undo();
            }
        }
    }

    /// The path has marked frames "congestion experienced". The answer is that to a loss (RFC 3168
    /// §5), at most once in a round trip; the queue that marks is known to stand, however short.
    fn congestion_experienced(&mut self, now: Instant, sample: &Sample) {
        self.startup.end();
        self.queue_seen = now;
        if self.flight.delivered() >= self.recovered {
            // The window that was in use: by now less may be in flight, as after a burst of the
            // hosts, or more, as in their slow start.
            let in_flight = sample.under_way_at_departure.max(sample.prior_under_way);
            self.reduce(now, in_flight, 0);
        }
    }

    /// Reduces the window, for so many lost frames or for a mark.
    fn reduce(&mut self, now: Instant, in_flight: u64, lost: u32) {
        self.answered = lost;
        self.recovered = self.flight.delivered() + self.flight.in_flight();
        self.floor = Duration::MAX;
        self.fair.reduce(now, in_flight.max(LEAST_WINDOW));
    }

    /// Counts round trips, and takes the delivery rate.
    fn count_round(&mut self, now: Instant, sample: &Sample) {
        let Some(rate) = sample.rate else { return };
        if rate.prior_delivered >= self.round_end {
            self.round_end = self.flight.delivered();
            self.round += 1;
            self.startup.round(self.rate.get(), rate.is_host_limited);
            let is_calm = self.phase == Phase::Startup && self.is_calm();
            self.losses.begin_round(now, is_calm);
            // What a full queue drops is known by what comes behind it, when it may be empty again.
            self.longest = self.queueing;
            self.standing = [self.queueing, self.standing[0]];
        }
        if !rate.is_host_limited || rate.bytes_per_second >= self.rate.get() {
            self.rate.update(self.round, rate.bytes_per_second);
        }
    }

    fn weigh_losses(&mut self, now: Instant, sample: &Sample, round_trip: Option<Duration>) {
        let (Some(round_trip), Some(least)) = (round_trip, self.least.get()) else { return };
        let queueing = round_trip.saturating_sub(least);
        (self.queueing, self.longest) = (queueing, self.longest.max(queueing));
        self.fullest.sample(now, queueing);
        self.standing[0] = self.standing[0].min(queueing);
        let is_short = self.is_short(queueing);
        if is_short {
            self.losses.slow(now, sample.slow_frames, sample.slow_lost);
        } else {
            self.queue_seen = now;
        }
        self.losses.settled(sample.frames, sample.lost, is_short);
        // A full queue that CUBIC has left at 0.7 of its window adds three sevenths to the round
        // trip; the gain cycle of one link alone adds a quarter. A queue that holds less stands
        // while two thirds of it do, and it is shared if its losses have been answered. Less than
        // a millisecond is no queue.
        let standing = self.standing[0].min(self.standing[1]);
        let millisecond = Duration::from_millis(1);
        let long = least * 3 / 10 + millisecond;
        let stands = standing > long.min((self.full() / 3 * 2).max(millisecond));
        self.is_shared = standing > long || (stands && self.fair.is_bound());
        // In startup it is not known yet what the path loses by itself.
        if self.phase == Phase::Startup || self.flight.delivered() < self.recovered {
            return;
        }
        self.floor = self.floor.min(round_trip);
        // A reduction shortens the queue if there is one. If the round trip has not varied since,
        // it is the path that has become longer.
        let is_growing = !self.fair.is_bound() || round_trip > self.floor + self.floor / 8;
        if sample.lost > 0 && stands && is_growing && self.losses.exceed_share() {
            // What is in flight by now may be much less: startup has drained the queue since.
            self.reduce(now, sample.under_way_at_departure, self.losses.in_round());
        }
    }

    /// Whether packets that wait for so long show no queue to speak of.
    fn is_short(&self, queueing: Duration) -> bool {
        queueing < self.least.get().unwrap_or_default() / 8 + Duration::from_millis(1)
    }

    /// The time in the queue when it is full, as far as that was seen: startup has yet to fill it.
    fn full(&self) -> Duration {
        if self.startup.is_over() { self.fullest.get() } else { Duration::MAX }
    }

    /// The phases follow from what has been found.
    fn follow(&mut self, now: Instant, sample: &Sample, round_trip: Option<Duration>) {
        let Some(least) = self.least.get() else { return };
        if let (Phase::Startup, Some(round_trip)) = (self.phase, round_trip) {
            // The queues of both ways, which fill in turn where both directions are full.
            let round_trip = round_trip + self.way_back.queueing();
            let is_host_limited = sample.rate.is_none_or(|rate| rate.is_host_limited);
            self.startup.round_trip(round_trip, least, (!self.is_calm(), is_host_limited));
        }
        let in_flight = self.flight.under_way();
        self.phase = match self.phase {
            Phase::Startup if self.startup.is_over() => {
                self.losses.end_startup();
                Phase::Drain
            }
            Phase::Drain if in_flight <= self.product(UNIT) => Phase::Cycle(2, now),
            Phase::Cycle(1.., _) if self.has_found_more() => Phase::Growth(now),
            Phase::Cycle(place, since) => {
                let is_long = now.since(since) > least;
                let is_next = match CYCLE[place] {
                    UNIT => is_long,
                    gain if gain > UNIT => is_long && self.has_probed(sample, gain),
                    _ => is_long || in_flight <= self.product(UNIT),
                };
                if is_next { Phase::Cycle((place + 1) % CYCLE.len(), now) } else { self.phase }
            }
            Phase::Growth(since)
                if now.since(since) > least && self.has_probed(sample, GROWTH_GAIN) =>
            {
                Phase::Cycle(1, now)
            }
            phase => phase,
        };
        if !matches!(self.phase, Phase::Cycle(1.., _)) {
            self.probed = self.rate.get();
        }
    }

    /// Whether as much is in flight as a gain brings, or as the path bears.
    fn has_probed(&self, sample: &Sample, gain: u64) -> bool {
        sample.prior_under_way >= self.product(gain) || sample.lost > 0
    }

    /// Whether the path carries half of what was sent more, without a queue of others: then it may
    /// carry more yet, as where startup has ended too early. In a full path the rate does not grow.
    fn has_found_more(&self) -> bool {
        !self.is_shared && self.rate.get() >= self.probed.saturating_add(self.probed / 16)
    }

    fn gain(&self) -> u64 {
        match self.phase {
            _ if self.least.is_probing() => UNIT,
            Phase::Startup => UNIT,
            Phase::Drain => DRAIN_GAIN,
            // The fair window probes.
            Phase::Cycle(..) | Phase::Growth(_) if self.is_shared && self.fair.is_bound() => {
                SHARED_GAIN
            }
            Phase::Cycle(place, _) => CYCLE[place],
            Phase::Growth(_) => GROWTH_GAIN,
        }
    }

    /// `None` before the first round trip.
    fn pacing_rate(&self) -> Option<u64> {
        let rate = match self.rate.get() {
            0 => {
                let nanos = self.least.get()?.as_nanos().max(1);
                u64::try_from(u128::from(INITIAL_WINDOW) * 1_000_000_000 / nanos).ok()?
            }
            rate => rate,
        };
        Some(rate.saturating_mul(self.gain()) / UNIT)
    }

    /// The bandwidth-delay product at a gain.
    fn product(&self, gain: u64) -> u64 {
        let bytes = u128::from(bytes_in(self.rate.get(), self.least.get().unwrap_or_default()));
        u64::try_from(bytes * u128::from(gain) / u128::from(UNIT)).unwrap_or(u64::MAX)
    }

    fn slack(&self) -> u64 {
        LEAST_WINDOW + bytes_in(self.rate.get(), ACK_SLACK)
    }

    fn probing_window(&self) -> u64 {
        (self.product(UNIT) / 2).max(LEAST_WINDOW)
    }

    /// The limit of bytes in flight.
    fn window(&self, now: Instant) -> u64 {
        let Some(least) = self.least.get() else { return INITIAL_WINDOW };
        let window = match self.phase {
            Phase::Startup if !self.startup.is_in_doubt() => {
                return self.product(STARTUP_GAIN).max(LEAST_STARTUP_WINDOW) + self.slack();
            }
            _ => self.product(2 * UNIT),
        };
        let window = window.max(INITIAL_WINDOW) + self.slack();
        let window = match self.fair.bytes(now, least) {
            Some(fair) if self.is_shared => fair.max(LEAST_WINDOW).min(4 * window),
            Some(fair) => window.min(fair.max(LEAST_WINDOW)),
            None => window,
        };
        if self.least.is_probing() { window.min(self.probing_window()) } else { window }
    }
}

/// The bytes of so much time at a rate.
fn bytes_in(rate: u64, time: Duration) -> u64 {
    let bytes = u128::from(rate) * time.as_nanos() / 1_000_000_000;
    u64::try_from(bytes).unwrap_or(u64::MAX)
}
