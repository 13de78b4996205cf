//! The applications at both ends of a flow, and their measurements.

use crate::plan::Traffic;
use airmend_proto::Instant;
use airmend_proto::random::{Purpose, Stream};
use airmend_proto::tcp::Endpoint;
use std::collections::VecDeque;
use std::time::Duration;

/// The applications of one flow.
#[derive(Clone, Debug)]
pub(crate) struct Application {
    traffic: Traffic,
    random: Stream,
    /// When the next packet or question is written.
    next: Option<Instant>,
    /// The number of packets or requests left; `None` for no limit.
    left: Option<u64>,
    /// Bytes of each end that the send buffer had no room for.
    backlog: [u64; 2],
    /// Bytes that each end writes in all.
    given: [u64; 2],
    /// Packets or requests in flight: the count of received bytes that completes each, and its
    /// start.
    under_way: VecDeque<(u64, Instant)>,
    delays_ms: Vec<f64>,
}

/// The number of bytes of an application without limit.
const ENDLESS: u64 = u64::MAX / 4;

impl Application {
    /// The applications of flow number `flow`, which begin at `start`.
    pub(crate) fn new(traffic: Traffic, start: Instant, seed: u64, flow: u32) -> Self {
        let left = match traffic {
            Traffic::Bulk(_) => Some(1),
            Traffic::Messages { size, bytes } => Some(bytes.div_ceil(size.max(1))),
            Traffic::Poisson { count, .. } | Traffic::Exchange { count, .. } => count,
            Traffic::Datagrams { .. } => None,
        };
        Self {
            traffic,
            random: Stream::new(seed, flow, 0, Purpose::Traffic),
            next: Some(start),
            left,
            backlog: [0; 2],
            given: [0; 2],
            under_way: VecDeque::new(),
            delays_ms: Vec::new(),
        }
    }

    /// The time at which the applications act next.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.next
    }

    /// Whether all data was sent and has arrived.
    pub(crate) fn is_done(&self, ends: &[Endpoint; 2]) -> bool {
        self.left == Some(0)
            && self.under_way.is_empty()
            && (0..2).all(|end| ends[1 - end].delivered() == self.given[end])
    }

    /// Whether the amount of data is limited.
    pub(crate) fn is_finite(&self) -> bool {
        self.left.is_some() && self.traffic != Traffic::Bulk(None)
    }

    /// Delays measured so far.
    pub(crate) fn delays_ms(&self) -> &[f64] {
        &self.delays_ms
    }

    /// Whether all that was written has been acknowledged.
    pub(crate) fn all_acknowledged(&self, ends: &[Endpoint; 2]) -> bool {
        ends[0].acked() == self.given[0]
    }

    /// Whether more is to be written.
    pub(crate) fn has_more(&self) -> bool {
        self.left != Some(0)
    }

    /// Writes data that is due, messages only if they may be written, and reads data that has
    /// arrived. Returns whether the sending end has written.
    pub(crate) fn serve(
        &mut self,
        now: Instant,
        ends: &mut [Endpoint; 2],
        may_write: bool,
    ) -> bool {
        let given = self.given[0];
        if !self.under_way.is_empty() {
            self.read(now, ends);
        }
        if matches!(self.traffic, Traffic::Messages { .. }) {
            let is_due = may_write && self.has_more() && self.all_acknowledged(ends);
            self.next = is_due.then_some(now);
        }
        while self.next.is_some_and(|at| at <= now) {
            self.write(now);
        }
        for (endpoint, backlog) in ends.iter_mut().zip(&mut self.backlog) {
            if *backlog > 0 {
                *backlog -= endpoint.write(*backlog);
            }
        }
        let [sender, receiver] = ends;
        if self.left == Some(0) && self.under_way.is_empty() && self.backlog[0] == 0 {
            sender.close();
        }
        if receiver.is_finished() {
            receiver.close();
        }
        self.given[0] > given
    }

    /// The next packet or question, or a bulk transfer.
    fn write(&mut self, now: Instant) {
        self.left = self.left.map(|left| left - 1);
        let more = self.left != Some(0);
        self.next = None;
        match self.traffic {
            Traffic::Bulk(bytes) => self.give(0, bytes.unwrap_or(ENDLESS)),
            Traffic::Messages { size, bytes } => self.give(0, size.min(bytes - self.given[0])),
            Traffic::Poisson { size, interval, .. } => {
                self.give(0, size);
                self.under_way.push_back((self.given[0], now));
                let gap = self.random.exponential(interval.as_secs_f64());
                self.next = Some(now + Duration::from_secs_f64(gap)).filter(|_| more);
            }
            Traffic::Exchange { request, response, .. } => {
                self.give(0, request);
                self.under_way.push_back((self.given[1] + response, now));
            }
            // They have no connection to be written to.
            Traffic::Datagrams { .. } => {}
        }
    }

    fn read(&mut self, now: Instant, ends: &[Endpoint; 2]) {
        let [sender, receiver] = ends;
        let mut reader = receiver;
        if let Traffic::Exchange { response, .. } = self.traffic {
            reader = sender;
            let expected = self.under_way.front().map_or(0, |(end, _)| *end);
            if receiver.delivered() == self.given[0] && self.given[1] < expected {
                self.give(1, response);
            }
        }
        while let Some((end, began)) = self.under_way.front().copied() {
            if reader.delivered() < end {
                break;
            }
            self.under_way.pop_front();
            self.delays_ms.push(now.since(began).as_secs_f64() * 1e3);
            if let (Traffic::Exchange { think, .. }, true) = (self.traffic, self.left != Some(0)) {
                self.next = Some(now + think);
            }
        }
    }

    fn give(&mut self, end: usize, bytes: u64) {
        self.backlog[end] += bytes;
        self.given[end] += bytes;
    }
}
