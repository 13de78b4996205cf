//! A sender and a receiver of a few lines each.

use super::common::packet::Tcp;
use super::{Flights, ISN, Place, RETRANSMISSION_TIMEOUT, SEGMENT, STREAM, WIRED_DELAY};
use airmend_proto::{Instant, Port};
use std::collections::BTreeSet;

/// Go-back-N with a fixed window and timeout.
#[derive(Default)]
pub(crate) struct Sender {
    pub(crate) window: u32,
    pub(crate) acknowledged: u32,
    pub(crate) due: Option<Instant>,
    pub(crate) timeouts: u32,
    pub(crate) next: u32,
    /// The mobile's latest TSval, if timestamps are used.
    pub(crate) echo: Option<u32>,
}

/// Acknowledges every segment, and keeps what arrives out of order.
#[derive(Default)]
pub(crate) struct Receiver {
    pub(crate) contiguous: u32,
    pub(crate) highest_ack: u32,
    /// Whether it sends SACK blocks and timestamps, and refuses old ones (RFC 7323 §5.3).
    pub(crate) modern: bool,
    pub(crate) segments: BTreeSet<u32>,
    /// TS.Recent.
    pub(crate) recent: u32,
}

impl Sender {
    pub(crate) fn fill_window(&mut self, now: Instant, flights: &mut Flights) {
        while self.next < STREAM.min(self.acknowledged + self.window * SEGMENT) {
            let seq = ISN.wrapping_add(self.next);
            let mut data = Tcp::new(0, Port::Wired, seq, SEGMENT as u16, 1);
            data.options = self.echo.map_or_else(Vec::new, |echo| timestamps(millis(now), echo));
            let packet = data.packet(self.next as u16);
            flights.packets.push((now + WIRED_DELAY, Place::BaseStation(Port::Wired), packet));
            self.next += SEGMENT;
        }
        self.due.get_or_insert(now + RETRANSMISSION_TIMEOUT);
    }

    pub(crate) fn acknowledge(&mut self, now: Instant, ack: u32, flights: &mut Flights) {
        if ack > self.acknowledged {
            self.acknowledged = ack;
            self.next = self.next.max(ack);
            self.due = None;
            self.fill_window(now, flights);
        }
    }

    pub(crate) fn time_out(&mut self, now: Instant, flights: &mut Flights) {
        self.timeouts += 1;
        self.next = self.acknowledged;
        self.due = None;
        self.fill_window(now, flights);
    }
}

impl Receiver {
    /// Takes a segment and returns the ACK for it.
    pub(crate) fn receive(&mut self, now: Instant, data: &Tcp) -> Tcp {
        let seq = data.seq.wrapping_sub(ISN);
        let value = data
            .options
            .get(4..8)
            .map_or(0, |value| u32::from_be_bytes([value[0], value[1], value[2], value[3]]));
        let is_refused = self.modern && value < self.recent;
        let is_duplicate = !is_refused && !self.segments.insert(seq);
        if !is_refused && seq <= self.contiguous {
            self.recent = value;
        }
        while self.segments.contains(&self.contiguous) {
            self.contiguous += SEGMENT;
        }
        self.highest_ack = self.contiguous;
        let mut ack = Tcp::new(0, Port::Air, 1, 0, ISN.wrapping_add(self.contiguous));
        if self.modern {
            ack.options = timestamps(millis(now), self.recent);
            ack.options.extend(self.sack(seq, is_duplicate));
        }
        ack
    }

    /// A DSACK block for a duplicate, the block that holds `latest`, and then the others.
    fn sack(&self, latest: u32, is_duplicate: bool) -> Vec<u8> {
        let mut blocks: Vec<(u32, u32)> = Vec::new();
        for &seq in self.segments.iter().filter(|seq| **seq > self.contiguous) {
            match blocks.last_mut() {
                Some(last) if last.1 == seq => last.1 += SEGMENT,
                _ => blocks.push((seq, seq + SEGMENT)),
            }
        }
        blocks.sort_by_key(|(left, right)| !(*left..*right).contains(&latest));
        if is_duplicate {
            blocks.insert(0, (latest, latest + SEGMENT));
        }
        blocks.truncate(3);
        if blocks.is_empty() {
            return Vec::new();
        }
        let mut option = vec![1, 1, 5, 2 + 8 * blocks.len() as u8];
        for edge in blocks.into_iter().flat_map(|(left, right)| [left, right]) {
            option.extend(ISN.wrapping_add(edge).to_be_bytes());
        }
        option
    }
}

fn millis(now: Instant) -> u32 {
    1 + (now.as_nanos() / 1_000_000) as u32
}

fn timestamps(value: u32, echo: u32) -> Vec<u8> {
    let mut option = vec![1, 1, 8, 10];
    option.extend(value.to_be_bytes());
    option.extend(echo.to_be_bytes());
    option
}
