//! Sources of UDP datagrams: at a constant rate, or saturating.

use super::address;
use crate::outcome::DatagramCounters;
use airmend_proto::{Instant, Packet};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Datagrams that a host's saturating flows send at one instant at most, more than any link takes
/// without losing them; they go on after a pause.
pub(super) const MOST_AT_ONCE: usize = 1024;
pub(super) const PAUSE: Duration = Duration::from_millis(1);

/// The datagrams of one flow.
#[derive(Debug)]
pub(super) struct Datagrams {
    flow: u32,
    hosts: [u32; 2],
    /// Bytes of payload of each.
    size: u32,
    start: Instant,
    /// Bits of payload in each second; none of a saturating source.
    rate_bps: Option<u64>,
    pub(super) counters: DatagramCounters,
    delays_ms: Vec<f64>,
}

impl Datagrams {
    pub(super) fn new(
        flow: u32,
        hosts: [u32; 2],
        start: Instant,
        size: u32,
        rate_bps: Option<u64>,
    ) -> Self {
        let counters = DatagramCounters::default();
        Self { flow, hosts, size, start, rate_bps, counters, delays_ms: Vec::new() }
    }

    /// Whether a datagram waits whenever the link can take one.
    pub(super) fn is_saturating(&self) -> bool {
        self.rate_bps.is_none()
    }

    /// When the next datagram is due at a constant rate: rounding does not add up.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let bits = u128::from(self.counters.sent) * 8 * u128::from(self.size);
        let nanos = bits * 1_000_000_000 / u128::from(self.rate_bps?.max(1));
        Some(self.start + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)))
    }

    /// The next datagram that is due at a constant rate.
    pub(super) fn poll_transmit(&mut self, now: Instant) -> Option<Packet> {
        (self.deadline()? <= now).then(|| self.write(now))
    }

    /// A datagram, which leaves now.
    pub(super) fn write(&mut self, now: Instant) -> Packet {
        self.counters.sent += 1;
        address::flow_datagram(self.flow, self.hosts, now, self.size)
    }

    /// A datagram has arrived.
    pub(super) fn arrived(&mut self, now: Instant, sent_at: Instant) {
        self.counters.received += 1;
        self.delays_ms.push(now.since(sent_at).as_secs_f64() * 1e3);
    }

    /// Bytes of payload that have arrived.
    pub(super) fn delivered(&self) -> u64 {
        self.counters.received * u64::from(self.size)
    }

    /// The delays of those that have arrived.
    pub(super) fn delays_ms(&self) -> &[f64] {
        &self.delays_ms
    }
}

/// The saturating flows of each host, which take turns.
#[derive(Debug, Default)]
pub(super) struct Saturating(BTreeMap<u32, VecDeque<u32>>);

impl Saturating {
    /// A flow of a host has begun.
    pub(super) fn begin(&mut self, host: u32, flow: u32) {
        let flows = self.0.entry(host).or_default();
        if !flows.contains(&flow) {
            flows.push_back(flow);
        }
    }

    /// The next flow of a host among those that can send; it is then the last one.
    pub(super) fn next(&mut self, host: u32, can_send: impl Fn(u32) -> bool) -> Option<u32> {
        let flows = self.0.get_mut(&host)?;
        let place = flows.iter().position(|flow| can_send(*flow))?;
        let flow = flows.remove(place)?;
        flows.push_back(flow);
        Some(flow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_rate_is_met_without_rounding_up() {
        let mut datagrams = Datagrams::new(0, [0, 1], Instant::ZERO, 1000, Some(3_000_000));
        let second = Instant::from_millis(1000);
        let sent = std::iter::from_fn(|| datagrams.poll_transmit(second)).count();
        assert_eq!(sent, 376);
        assert_eq!(datagrams.deadline(), Some(Instant::from_nanos(1_002_666_666)));
    }

    #[test]
    fn flows_that_can_send_take_turns() {
        let mut saturating = Saturating::default();
        [4, 5, 6, 5].into_iter().for_each(|flow| saturating.begin(1, flow));
        let mut turns = |can: fn(u32) -> bool| saturating.next(1, can);
        assert_eq!([(); 4].map(|()| turns(|_| true)), [4, 5, 6, 4].map(Some));
        assert_eq!([(); 3].map(|()| turns(|flow| flow != 5)), [6, 4, 6].map(Some));
        assert_eq!(turns(|_| false), None);
        assert_eq!(saturating.next(2, |_| true), None);
    }
}
