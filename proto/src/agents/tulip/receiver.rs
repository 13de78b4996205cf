//! The receiving half: what has arrived of the window, in which order it is released, and the
//! link ACKs that tell the sender all of it.

use super::due::Due;
use super::frame::{Ack, MAX_WINDOW};
use super::link_event::LinkEvent;
use super::settings::Settings;
use crate::packet::Packet;
use crate::time::Instant;
use crate::wire::seq::SeqNumber;
use alloc::collections::VecDeque;
use alloc::vec;

/// Unreliable packets that wait for reliable ones of their flow.
const MAX_HELD: usize = 1_024;

/// What has arrived from the other end.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Receiver {
    /// The lowest number that has not arrived.
    next: SeqNumber,
    /// From `next` on; the last one has arrived, unless there is none.
    slots: VecDeque<Slot>,
    /// Beside each slot, its packet while that waits; none if it was given up.
    packets: VecDeque<Option<Packet>>,
    /// Unreliable packets that wait for the release of the number beside them.
    held: VecDeque<(SeqNumber, Packet)>,
    /// Packets to hand on, in their order.
    released: VecDeque<Packet>,
    /// Bytes in `slots`, `held` and `released`, and how many there may be. A reliable packet
    /// beyond them is not accepted, and comes again.
    bytes: usize,
    max_bytes: usize,
    /// Packets in `released` beyond which unreliable ones are dropped.
    max_released: usize,
    /// The highest serial number heard of, and when.
    heard: SeqNumber,
    heard_at: Instant,
    /// Numbered frames since the last link ACK.
    unacknowledged: u32,
    ack_due: Due,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Slot {
    state: State,
    /// How much higher the number is that waits for this one; 0 for none.
    successor: u16,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum State {
    #[default]
    Missing,
    /// Arrived before one that it must not overtake.
    Waiting,
    Released,
}

impl Receiver {
    /// Nothing has arrived; the limits are of bytes and of packets that wait to be handed on.
    pub(super) fn new(max_bytes: usize, max_released: usize) -> Self {
        Self {
            next: SeqNumber(0),
            slots: VecDeque::new(),
            packets: VecDeque::new(),
            held: VecDeque::new(),
            released: VecDeque::new(),
            bytes: 0,
            max_bytes,
            max_released,
            heard: SeqNumber(0),
            heard_at: Instant::ZERO,
            unacknowledged: 0,
            ack_due: Due::Never,
        }
    }

    /// Begins anew with a new run of the other end. What had arrived is released: nobody will send
    /// it again.
    pub(super) fn restart(&mut self) {
        self.released.extend(self.packets.drain(..).flatten());
        self.released.extend(self.held.drain(..).map(|(_, packet)| packet));
        let released = core::mem::take(&mut self.released);
        let anew = Self::new(self.max_bytes, self.max_released);
        *self = Self { released, bytes: self.bytes, ..anew };
    }

    /// The next packet for the network layer.
    pub(super) fn pop(&mut self) -> Option<Packet> {
        let packet = self.released.pop_front()?;
        self.bytes -= packet.bytes().len();
        Some(packet)
    }

    /// Bytes that wait for what is missing, or to be handed on.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes note of a frame's serial number. A gap shows a loss, also that of a retransmission,
    /// and is told at once.
    pub(super) fn hear(&mut self, now: Instant, serial: SeqNumber, is_control: bool) {
        if serial <= self.heard {
            return;
        }
        let expected = self.heard + u32::from(!is_control);
        self.heard = serial;
        self.heard_at = now;
        if serial != expected {
            self.want_ack();
        }
    }

    /// A numbered packet arrived; none if its sender has given it up.
    pub(super) fn reliable(
        &mut self,
        now: Instant,
        seq: SeqNumber,
        after: u16,
        packet: Option<Packet>,
        settings: &Settings,
    ) -> Result<(), LinkEvent> {
        let offset = seq.offset_from(self.next);
        let Ok(index) = usize::try_from(offset) else {
            self.want_ack();
            return Err(LinkEvent::Duplicate(seq));
        };
        if self.slots.get(index).is_some_and(|slot| slot.state != State::Missing) {
            self.want_ack();
            return Err(LinkEvent::Duplicate(seq));
        }
        let len = packet.as_ref().map_or(0, |packet| packet.bytes().len());
        let fits = self.bytes + len <= self.max_bytes || (index == 0 && self.released.is_empty());
        if index >= MAX_WINDOW as usize || !fits {
            self.want_ack();
            return Err(LinkEvent::BeyondWindow(seq));
        }
        // A gap before it, or one that it fills, is news.
        if index != self.slots.len() {
            self.want_ack();
        }
        if index >= self.slots.len() {
            self.slots.resize(index + 1, Slot::default());
            self.packets.resize(index + 1, None);
        }
        self.slots[index].state = State::Waiting;
        self.packets[index] = packet;
        self.bytes += len;
        if self.is_released(seq - u32::from(after)) || after == 0 {
            self.release(index);
        } else {
            self.slots[index - usize::from(after)].successor = after;
        }
        self.advance();
        self.count(now, settings);
        Ok(())
    }

    /// An unreliable packet arrived, which may not overtake number `seq - after`.
    pub(super) fn unreliable(
        &mut self,
        seq: SeqNumber,
        after: u16,
        packet: Packet,
    ) -> Result<(), LinkEvent> {
        let before = seq - u32::from(after);
        let ahead = before.offset_from(self.next);
        let is_free = after == 0 || self.is_released(before) || ahead >= MAX_WINDOW as i32;
        let has_place = match is_free {
            true => self.released.len() < self.max_released,
            false => self.held.len() < MAX_HELD,
        };
        let len = packet.bytes().len();
        if !has_place || self.bytes + len > self.max_bytes {
            return Err(LinkEvent::HoldFull);
        }
        self.bytes += len;
        if is_free {
            self.released.push_back(packet);
        } else {
            self.held.push_back((before, packet));
        }
        Ok(())
    }

    /// A link ACK shall leave at once.
    pub(super) fn want_ack(&mut self) {
        self.ack_due = Due::Now;
    }

    /// When a link ACK shall leave, even without a packet to travel with.
    pub(super) fn ack_due(&self) -> Due {
        self.ack_due
    }

    /// A link ACK whose time has come leaves at the next opportunity.
    pub(super) fn ripen(&mut self, now: Instant) {
        self.ack_due.ripen(now);
    }

    /// The complete state [tulip99 §III S2-03], which is about to leave.
    pub(super) fn ack(&mut self, now: Instant) -> Ack {
        self.unacknowledged = 0;
        self.ack_due = Due::Never;
        let mut vector = vec![0u8; self.slots.len().saturating_sub(1).div_ceil(8)];
        for (index, slot) in self.slots.iter().skip(1).enumerate() {
            if slot.state != State::Missing {
                vector[index / 8] |= 1 << (index % 8);
            }
        }
        let (next, heard) = (self.next, self.heard);
        Ack { next, heard, delay: now - self.heard_at, vector: vector.into() }
    }

    /// Length of the bit vector of the next link ACK, in bytes.
    pub(super) fn vector_len(&self) -> usize {
        self.slots.len().saturating_sub(1).div_ceil(8)
    }

    fn count(&mut self, now: Instant, settings: &Settings) {
        self.unacknowledged += 1;
        let is_enough = self.unacknowledged >= settings.ack_every && !settings.half_duplex;
        if is_enough {
            self.want_ack();
        } else {
            self.ack_due.at_latest(now + settings.ack_delay);
        }
    }

    fn is_released(&self, seq: SeqNumber) -> bool {
        match usize::try_from(seq.offset_from(self.next)) {
            Err(_) => true,
            Ok(index) => self.slots.get(index).is_some_and(|slot| slot.state == State::Released),
        }
    }

    /// Releases the packet of this slot, and all that waited for it alone.
    fn release(&mut self, mut index: usize) {
        loop {
            let slot = &mut self.slots[index];
            if slot.state != State::Waiting {
                return;
            }
            slot.state = State::Released;
            let successor = usize::from(slot.successor);
            self.released.extend(self.packets[index].take());
            self.release_held(self.next + index as u32);
            if successor == 0 {
                return;
            }
            index += successor;
        }
    }

    fn release_held(&mut self, before: SeqNumber) {
        let mut index = 0;
        while let Some((waits_for, _)) = self.held.get(index) {
            if *waits_for != before {
                index += 1;
            } else if let Some((_, packet)) = self.held.remove(index) {
                self.released.push_back(packet);
            }
        }
    }

    /// Moves on to the lowest missing number. All before it have been released: whatever they
    /// waited for came before them.
    fn advance(&mut self) {
        while self.slots.front().is_some_and(|slot| slot.state != State::Missing) {
            // Two that claim to follow the same one break the chain; no sender of ours does that.
            if self.slots[0].state == State::Waiting {
                self.release(0);
            }
            self.slots.pop_front();
            self.packets.pop_front();
            self.next += 1;
        }
    }
}
