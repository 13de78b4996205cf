//! A station: its queue, its backoff, and the frames of its exchange.

use super::params::DcfParams;
use crate::packet::Packet;
use crate::random::Stream;
use crate::time::Instant;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

/// A packet that waits, or is being sent.
pub(super) struct Frame {
    /// The path to its receiver.
    pub(super) path: usize,
    pub(super) packet: Packet,
    /// The number among the frames of its path, from its first transmission on.
    pub(super) number: Option<u64>,
    /// How often it was sent.
    pub(super) attempts: u32,
    /// Whether the receiver has it, although the sender may not know.
    pub(super) received: bool,
}

/// A frame of an exchange.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    /// The place in the queue, which does not change while the exchange lasts.
    pub(super) place: usize,
    /// Whether it has arrived.
    pub(super) intact: bool,
}

pub(super) struct Station {
    pub(super) queue: VecDeque<Frame>,
    /// Bits of the queued packets.
    bits: u64,
    random: Stream,
    /// Slots that are still to count down; none once they have.
    backoff: Option<u32>,
    /// The present contention window.
    window: u32,
    /// When the first packet came, if it found the queue empty.
    since: Instant,
}

impl Station {
    pub(super) fn new(random: Stream, params: &DcfParams) -> Self {
        let window = params.phy.cw_min;
        let queue = VecDeque::new();
        Self { queue, bits: 0, random, backoff: None, window, since: Instant::ZERO }
    }

    /// Whether a packet has room.
    pub(super) fn has_room(&self, params: &DcfParams, packet: &Packet) -> bool {
        let bits = self.bits.saturating_add(packet.wire_bits());
        self.queue.len() < params.queue_frames.max(1) && bits <= params.queue_bits
    }

    /// Takes a packet. The station contends with a backoff if the channel is busy.
    pub(super) fn push(&mut self, now: Instant, path: usize, packet: Packet, busy: bool) {
        if self.queue.is_empty() {
            self.since = now;
            if busy && self.backoff.is_none() {
                self.draw_backoff();
            }
        }
        self.bits += packet.wire_bits();
        self.queue.push_back(Frame { path, packet, number: None, attempts: 0, received: false });
    }

    /// When it sends, if the channel is idle until then; slots count down from `from` on.
    pub(super) fn sends_at(&self, from: Instant, slot: Duration) -> Option<Instant> {
        let slots = self.backoff.unwrap_or(0);
        (!self.queue.is_empty()).then(|| (from + slot * slots).max(self.since))
    }

    /// The channel, idle since `from`, is busy from `now` on: the slots before that are over.
    pub(super) fn freeze(&mut self, from: Instant, now: Instant, slot: Duration) {
        let Some(slots) = self.backoff else { return };
        let over = now.since(from).as_nanos() / slot.as_nanos().max(1);
        let left = slots.saturating_sub(u32::try_from(over).unwrap_or(u32::MAX));
        self.backoff = (left > 0 || !self.queue.is_empty()).then_some(left);
    }

    /// The frames of the next exchange: the first one, and of an aggregate those for the same
    /// receiver within the window of the block ACK. They get the next numbers of their path.
    pub(super) fn next_frames(
        &mut self,
        params: &DcfParams,
        numbers: &mut [u64],
    ) -> (Vec<usize>, u64) {
        let (mut places, mut bits) = (Vec::new(), 0);
        let Some(path) = self.queue.front().map(|frame| frame.path) else { return (places, 0) };
        let mut first = None;
        for (place, frame) in self.queue.iter_mut().enumerate().filter(|(_, f)| f.path == path) {
            let longer = bits + params.frame_bits(frame.packet.wire_len());
            let number = frame.number.unwrap_or(numbers[path]);
            let first = *first.get_or_insert(number);
            let fits = places.len() < params.aggregate
                && number - first < DcfParams::MAX_AGGREGATE as u64
                && params.data_time(longer) <= params.longest_aggregate;
            if !places.is_empty() && !fits {
                break;
            }
            if frame.number.is_none() {
                frame.number = Some(number);
                numbers[path] += 1;
            }
            bits = longer;
            places.push(place);
        }
        (places, bits)
    }

    /// The exchange is over. Takes out the frames that arrived, if the station knows, and those
    /// that it gives up; returns these.
    pub(super) fn settle(
        &mut self,
        params: &DcfParams,
        sent: &[Sent],
        acknowledged: bool,
    ) -> Vec<Frame> {
        let mut given_up = Vec::new();
        let first = sent.first().map_or(0, |sent| sent.place);
        let mut first_left = false;
        // From the last place to the first, so that places stay true.
        for &Sent { place, intact } in sent.iter().rev() {
            let Some(frame) = self.queue.get_mut(place) else { continue };
            frame.attempts += 1;
            let arrived = acknowledged && intact;
            if !arrived && frame.attempts <= params.retries {
                continue;
            }
            first_left |= place == first;
            let Some(frame) = self.queue.remove(place) else { continue };
            self.bits -= frame.packet.wire_bits();
            if !arrived {
                given_up.push(frame);
            }
        }
        let doubled = (2 * self.window + 1).min(params.phy.cw_max);
        self.window = if acknowledged || first_left { params.phy.cw_min } else { doubled };
        self.draw_backoff();
        given_up.reverse();
        given_up
    }

    fn draw_backoff(&mut self) {
        let slots = (1.0 - self.random.uniform()) * f64::from(self.window + 1);
        self.backoff = Some(slots as u32);
    }
}
