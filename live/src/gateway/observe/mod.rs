//! What a gateway sees that touches nothing, and what mending would gain.
//!
//! An agent whose repairs never leave would see a world in which they are all lost, and count that.
//! So with `--observe` no agent runs: this measures what the air does to the flows as they are, and
//! [`estimate`] reckons what they would be without. Packets and times go in; it has no clock.

mod estimate;
mod gain;
mod report;
pub(super) mod shaper;

pub use gain::Gain;
pub(super) use gain::MEASURED_FLOWS;
pub use report::{CapacityFrom, Limit, Observation, ObservedFlow};

use crate::tunnel::random::hash_seed;
use airmend_proto::agent::UNANSWERED;
use airmend_proto::observer::{FlowCounts, FlowObserver, first_byte};
use airmend_proto::wire::flow::FlowKey;
use airmend_proto::wire::tcp::{Flags, Segment};
use airmend_proto::{Instant, Packet, Port};
use estimate::{Estimate, Measured, estimate};
use foldhash::fast::FixedState;
use std::collections::HashMap;
use std::time::Duration;

/// The interval of the search for flows that have become idle.
const SWEEP_INTERVAL: Duration = Duration::from_millis(250);
/// A flow that was silent for this time is removed; its measurements remain in the sums.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// Flows that an observation names at most.
const TOP: usize = 50;

/// Observes the flows of one interface.
#[derive(Debug)]
pub(super) struct Observer {
    /// The rate of the air, if it is configured or the shaper has it.
    known: Option<(u64, CapacityFrom)>,
    limit: usize,
    flows: HashMap<FlowKey, Observed, FixedState>,
    /// The rate of the fastest train: most wait for their sender in between.
    fastest: Option<f64>,
    /// Time, as far as it has been accounted for.
    now: Instant,
    swept: Instant,
    /// Flows that have something to send, and for how long there were any.
    active: usize,
    busy: f64,
    /// The air time of each active flow so far, if they shared it fairly.
    served: f64,
    seen: u64,
    /// Bytes of payload that mobiles acknowledged.
    delivered: u64,
    /// Sums of flows that are no longer in the table.
    past: Sums,
}

/// A flow, and when it had something to send.
#[derive(Debug)]
struct Observed {
    flow: FlowObserver,
    opened: Instant,
    /// Whether the mobile has sent an ACK.
    is_answered: bool,
    /// Since when it is active, and what active flows had been served until then.
    since: Option<(Instant, f64)>,
    active: f64,
    served: f64,
    periods: u32,
}

/// Sums over flows; rates times the seconds of their activity are bits.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    delivered: u64,
    frames: u64,
    losses: u64,
    ip_bytes: u64,
    payload_bytes: u64,
    lost_before: u64,
    loss_acks: u64,
    timeouts: u64,
    low: f64,
    high: f64,
    likely: f64,
    without: f64,
}

impl Observer {
    /// An observer without flows; `limit` is the largest number of flows at a time.
    pub(super) fn new(known: Option<(u64, CapacityFrom)>, limit: usize) -> Self {
        Self {
            known,
            limit,
            flows: HashMap::with_hasher(FixedState::with_seed(hash_seed())),
            fastest: None,
            now: Instant::ZERO,
            swept: Instant::ZERO,
            active: 0,
            busy: 0.0,
            served: 0.0,
            seen: 0,
            delivered: 0,
            past: Sums::default(),
        }
    }

    /// Sets the rate of the air, from the configuration or the shaper.
    pub(super) fn know(&mut self, known: Option<(u64, CapacityFrom)>) {
        self.known = known;
    }

    /// Flows that are observed now.
    pub(super) fn len(&self) -> usize {
        self.flows.len()
    }

    /// Bytes of payload that mobiles have acknowledged so far, of the flows that were observed.
    pub(super) fn delivered(&self) -> u64 {
        self.delivered
    }

    /// A packet crossed the interface, coming from this side.
    pub(super) fn packet(&mut self, now: Instant, from: Port, packet: &Packet) {
        self.advance(now);
        let Ok(segment) = Segment::parse(packet) else { return };
        let key = FlowKey::of(&segment, from);
        if segment.flags.intersects(Flags::SYN) {
            self.remove(now, &key);
        }
        let observed = match self.flows.get_mut(&key) {
            Some(observed) => observed,
            None => {
                let first = first_byte(from, &segment).filter(|_| self.flows.len() < self.limit);
                let Some(next) = first else { return };
                self.seen += 1;
                self.flows.entry(key).or_insert(Observed::new(now, FlowObserver::new(now, next)))
            }
        };
        match from {
            Port::Air => {
                observed.is_answered |= segment.flags.intersects(Flags::ACK);
                let before = observed.flow.counts.delivered;
                if let Some(rate) = observed.flow.ack(now, &segment) {
                    self.fastest = Some(self.fastest.map_or(rate, |fastest| fastest.max(rate)));
                }
                self.delivered += observed.flow.counts.delivered - before;
            }
            Port::Wired => {
                observed.flow.data(now, packet, &segment);
                if observed.since.is_none() && observed.flow.is_outstanding() {
                    observed.since = Some((now, self.served));
                    observed.periods += 1;
                    self.active += 1;
                }
            }
        }
    }

    /// Removes a flow, since another connection between the same ends begins.
    fn remove(&mut self, now: Instant, key: &FlowKey) {
        let Some(mut observed) = self.flows.remove(key) else { return };
        if observed.since.is_some() {
            observed.stop(now, observed.flow.last_seen, self.served);
            self.active -= 1;
        }
        let measured = observed.measured(now, self.served);
        let capacity = self.capacity();
        self.past.add(&observed.flow.counts, &measured, capacity);
    }

    /// Advances the time to `now`.
    fn advance(&mut self, now: Instant) {
        if self.active > 0 {
            let passed = (now - self.now).as_secs_f64();
            self.busy += passed;
            self.served += passed / self.active as f64;
        }
        self.now = self.now.max(now);
        if now - self.swept >= SWEEP_INTERVAL {
            self.swept = now;
            self.sweep_idle(now);
        }
    }

    /// Marks flows that have become idle, and removes those that have ended.
    fn sweep_idle(&mut self, now: Instant) {
        let mut last = None;
        let served = self.served;
        for observed in self.flows.values_mut().filter(|observed| observed.since.is_some()) {
            if let Some(idle) = observed.flow.idle_since(now) {
                observed.stop(now, idle, served);
                self.active -= 1;
                last = last.max(Some(idle));
            }
        }
        if let (0, Some(last)) = (self.active, last) {
            // The sweep is later than the flow became idle.
            self.busy -= (now - last).as_secs_f64();
        }
        let capacity = self.capacity();
        let past = &mut self.past;
        self.flows.retain(|_, observed| {
            let is_kept = observed.since.is_some() || now - observed.flow.last_seen < IDLE_TIMEOUT;
            if !is_kept {
                past.add(&observed.flow.counts, &observed.measured(now, served), capacity);
            }
            is_kept
        });
    }

    fn capacity(&self) -> Option<f64> {
        self.known.map(|(rate, _)| rate as f64).or(self.fastest)
    }

    /// The observation until now.
    pub(super) fn observation(&mut self, now: Instant) -> Observation {
        self.advance(now);
        let capacity = self.capacity();
        let mut sums = self.past;
        let mut flows: Vec<_> = Vec::with_capacity(self.flows.len());
        for (key, observed) in &self.flows {
            let measured = observed.measured(now, self.served);
            let estimate = sums.add(&observed.flow.counts, &measured, capacity);
            flows.push((key, observed, measured, estimate));
        }
        flows.sort_by(|(.., a, of_a), (.., b, of_b)| {
            let gain = |flow: &Measured, estimate: &Estimate| {
                (estimate.likely - flow.goodput()) * flow.active
            };
            gain(b, of_b).total_cmp(&gain(a, of_a))
        });
        let flows = flows.into_iter().take(TOP);
        let flows = flows
            .map(|(key, observed, measured, estimate)| observed.report(key, &measured, &estimate));
        let from = match (self.known, capacity) {
            (Some((_, from)), _) => from,
            (None, Some(_)) => CapacityFrom::Measured,
            (None, None) => CapacityFrom::Unknown,
        };
        let flows = flows.collect();
        let unanswered = self.flows.values().filter(|observed| observed.is_unanswered()).count();
        Observation {
            capacity_from: from,
            flows,
            flows_unanswered: unanswered as u64,
            ..self.total(now, &sums, capacity)
        }
    }

    /// The gain until now, where the packets are those of flows that are mended, repairs among
    /// them.
    pub(super) fn gain(&mut self, now: Instant) -> Gain {
        self.advance(now);
        let capacity = self.capacity();
        let mut sums = self.past;
        for observed in self.flows.values() {
            sums.add(&observed.flow.counts, &observed.measured(now, self.served), capacity);
        }
        let total = self.total(now, &sums, capacity);
        let rate =
            |bits: f64| if total.busy_seconds > 0.0 { bits / total.busy_seconds } else { 0.0 };
        let (goodput_bps, without_bps) =
            (total.goodput_bps, rate(sums.without).min(total.goodput_bps));
        Gain {
            busy_seconds: total.busy_seconds,
            goodput_bps,
            without_bps,
            gain: (without_bps > 0.0).then(|| goodput_bps / without_bps),
            flows_seen: self.seen,
        }
    }

    /// The sums as rates, of which none exceeds what the air can carry.
    fn total(&self, now: Instant, sums: &Sums, capacity: Option<f64>) -> Observation {
        // The last flows may have been done before now.
        let since = self.flows.values().filter(|o| o.since.is_some()).map(|o| o.flow.quiet_since());
        let last = since.map(|since| since.unwrap_or(now)).max().unwrap_or(now);
        let busy = self.busy - (now - last).as_secs_f64();
        let rate = |bits: f64| if busy > 0.0 { bits / busy } else { 0.0 };
        let goodput = rate(sums.delivered as f64 * 8.0);
        let share = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
        let loss = share(sums.losses, sums.frames);
        let payload = share(sums.payload_bytes, sums.ip_bytes).unwrap_or(1.0);
        let most = capacity.map(|capacity| capacity * (1.0 - loss.unwrap_or(0.0)) * payload);
        let bounded = |bits| rate(bits).min(most.unwrap_or(f64::INFINITY)).max(goodput);
        let likely = bounded(sums.likely);
        Observation {
            busy_seconds: busy,
            goodput_bps: goodput,
            estimate_bps: likely,
            estimate_low_bps: bounded(sums.low),
            estimate_high_bps: bounded(sums.high),
            gain: (goodput > 0.0).then(|| likely / goodput),
            capacity_bps: capacity,
            air_frames: sums.frames,
            air_losses: sums.losses,
            air_loss: loss.filter(|_| sums.delivered > 0),
            lost_before: sums.lost_before,
            hidden_acks: sums.loss_acks,
            timeouts: sums.timeouts,
            flows_seen: self.seen,
            ..Observation::default()
        }
    }
}

impl Observed {
    fn new(opened: Instant, flow: FlowObserver) -> Self {
        Self { flow, opened, is_answered: false, since: None, active: 0.0, served: 0.0, periods: 0 }
    }

    /// Whether its data passes here, and its acknowledgments do not.
    fn is_unanswered(&self) -> bool {
        !self.is_answered && self.flow.last_seen - self.opened >= UNANSWERED
    }

    /// Marks the flow as idle since then.
    fn stop(&mut self, now: Instant, idle: Instant, served: f64) {
        (self.active, self.served) = self.until(now, idle, served);
        self.since = None;
    }

    /// The active time and the air time of the flow until `end`.
    fn until(&self, now: Instant, end: Instant, served: f64) -> (f64, f64) {
        let Some((since, begin)) = self.since else { return (self.active, self.served) };
        let all = (now - since).as_secs_f64();
        let active = (end - since).as_secs_f64();
        let part = if all > 0.0 { active / all } else { 0.0 };
        (self.active + active, self.served + (served - begin) * part)
    }

    fn measured(&self, now: Instant, served: f64) -> Measured {
        let end = self.flow.quiet_since().unwrap_or(now);
        let (active, served) = self.until(now, end, served);
        let counts = &self.flow.counts;
        let payload_share = counts.payload_bytes as f64 / counts.ip_bytes.max(1) as f64;
        Measured {
            active,
            periods: f64::from(self.periods.max(1)),
            is_running: self.since.is_some() && !self.flow.is_closed,
            bytes: counts.delivered as f64,
            frames: counts.frames as f64,
            losses: counts.losses() as f64,
            lost_before: counts.lost_before as f64,
            mss: counts.mss as f64,
            payload_share,
            air_rtt: self.flow.air_rtt(),
            wired_rtt: self.flow.wired_rtt(),
            least_wired_rtt: self.flow.least_wired_rtt(),
            window: self.flow.limiting_window().map(|window| window as f64),
            is_application_limited: counts.is_application_limited(),
            share: if active > 0.0 { (served / active).min(1.0) } else { 1.0 },
        }
    }

    fn report(&self, key: &FlowKey, measured: &Measured, estimate: &Estimate) -> ObservedFlow {
        let counts = &self.flow.counts;
        let millis = |seconds: f64| seconds * 1e3;
        ObservedFlow {
            wired: key.wired.to_string(),
            air: key.air.to_string(),
            active_seconds: measured.active,
            bytes: counts.delivered,
            goodput_bps: measured.goodput(),
            estimate_bps: estimate.likely,
            limit: estimate.limit,
            air_loss: (counts.frames > 0 && counts.delivered > 0)
                .then(|| counts.losses() as f64 / counts.frames as f64),
            air_losses: counts.losses(),
            hidden_acks: counts.loss_acks,
            timeouts: counts.timeouts,
            air_rtt_ms: self.flow.air_rtt().map(millis),
            wired_rtt_ms: self.flow.wired_rtt().map(millis),
        }
    }
}

impl Sums {
    /// Adds a flow and returns its estimate.
    fn add(&mut self, counts: &FlowCounts, flow: &Measured, capacity: Option<f64>) -> Estimate {
        let estimate = estimate(flow, capacity);
        self.delivered += counts.delivered;
        self.frames += counts.frames;
        self.losses += counts.losses();
        self.ip_bytes += counts.ip_bytes;
        self.payload_bytes += counts.payload_bytes;
        self.lost_before += counts.lost_before;
        self.loss_acks += counts.loss_acks;
        self.timeouts += counts.timeouts;
        self.low += estimate.low * flow.active;
        self.high += estimate.high * flow.active;
        self.likely += estimate.likely * flow.active;
        self.without += gain::without(flow, capacity) * flow.active;
        estimate
    }
}

#[cfg(test)]
mod tests;
