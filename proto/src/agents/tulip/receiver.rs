//! The receiving half: the receive window, the order in which packets are released, and the link
//! ACKs that report its complete state.

use super::due::Due;
use super::frame::{Ack, MAX_WINDOW};
use super::link_event::LinkEvent;
use super::settings::Settings;
use crate::packet::Packet;
use crate::time::Instant;
use crate::wire::seq::SeqNumber;
use alloc::collections::VecDeque;
use alloc::vec;

/// The most unreliable packets that wait for reliable packets of their flow.
const MAX_HELD: usize = 1_024;

/// The receive window of one end.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Receiver {
    /// The lowest sequence number that has not arrived.
    next: SeqNumber,
    /// The window from `next` on; the packet of the last slot has arrived.
    slots: VecDeque<ReceiveSlot>,
    /// For each slot its packet while the packet waits; `None` if it was given up.
    packets: VecDeque<Option<Packet>>,
    /// Unreliable packets, each with the sequence number after whose release it is released.
    held: VecDeque<(SeqNumber, Packet)>,
    /// Packets for the network layer, in order.
    released: VecDeque<Packet>,
    /// Bytes of packets in `packets`, `held` and `released`, and their limit. A reliable packet
    /// beyond the limit is not accepted, and the sender retransmits it.
    bytes: usize,
    max_bytes: usize,
    /// The length of `released` from which on unreliable packets are dropped.
    max_released: usize,
    /// The highest serial number received, and its arrival time.
    highest_serial: SeqNumber,
    highest_serial_at: Instant,
    /// Numbered frames since the last link ACK.
    unacknowledged: u32,
    ack_due: Due,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct ReceiveSlot {
    state: SlotState,
    /// The distance to the packet that is released after this one; 0 for none.
    successor: u16,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum SlotState {
    #[default]
    Missing,
    /// Arrived, and waits for a packet that it must not overtake.
    Waiting,
    Released,
}

impl Receiver {
    /// An empty window. At most `max_bytes` bytes are held; unreliable packets are dropped while
    /// `max_released` packets wait for the network layer.
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
            highest_serial: SeqNumber(0),
            highest_serial_at: Instant::ZERO,
            unacknowledged: 0,
            ack_due: Due::Never,
        }
    }

    /// Begins a new stream with a new run of the other end. All packets that had arrived are
    /// released, since nobody will retransmit them.
    pub(super) fn restart(&mut self) {
        self.released.extend(self.packets.drain(..).flatten());
        self.released.extend(self.held.drain(..).map(|(_, packet)| packet));
        let released = core::mem::take(&mut self.released);
        let empty = Self::new(self.max_bytes, self.max_released);
        *self = Self { released, bytes: self.bytes, ..empty };
    }

    /// The next packet for the network layer.
    pub(super) fn pop(&mut self) -> Option<Packet> {
        let packet = self.released.pop_front()?;
        self.bytes -= packet.bytes().len();
        Some(packet)
    }

    /// Bytes of all packets that wait.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Notes a frame's serial number. A gap shows a loss, of a retransmission too, and causes a
    /// link ACK at once.
    pub(super) fn note_serial(&mut self, now: Instant, serial: SeqNumber, is_control: bool) {
        if serial <= self.highest_serial {
            return;
        }
        let expected = self.highest_serial + u32::from(!is_control);
        self.highest_serial = serial;
        self.highest_serial_at = now;
        if serial != expected {
            self.want_ack();
        }
    }

    /// Takes a reliable packet; `None` if its sender has given it up.
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
        if self.slots.get(index).is_some_and(|slot| slot.state != SlotState::Missing) {
            self.want_ack();
            return Err(LinkEvent::Duplicate(seq));
        }
        let len = packet.as_ref().map_or(0, |packet| packet.bytes().len());
        let fits = self.bytes + len <= self.max_bytes || (index == 0 && self.released.is_empty());
        if index >= MAX_WINDOW as usize || !fits {
            self.want_ack();
            return Err(LinkEvent::BeyondWindow(seq));
        }
        // The packet leaves a gap, or fills one: the sender must learn of it at once.
        if index != self.slots.len() {
            self.want_ack();
        }
        if index >= self.slots.len() {
            self.slots.resize(index + 1, ReceiveSlot::default());
            self.packets.resize(index + 1, None);
        }
        self.slots[index].state = SlotState::Waiting;
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

    /// Takes an unreliable packet, which is released after sequence number `seq - after`.
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

    /// Makes a link ACK due at once.
    pub(super) fn want_ack(&mut self) {
        self.ack_due = Due::Now;
    }

    /// When a link ACK is due, even without a packet to travel with.
    pub(super) fn ack_due(&self) -> Due {
        self.ack_due
    }

    /// Makes a link ACK whose timer has expired due at once.
    pub(super) fn expire(&mut self, now: Instant) {
        self.ack_due.expire(now);
    }

    /// The link ACK to be sent now: the complete state [tulip99 §III S2-03].
    pub(super) fn ack(&mut self, now: Instant) -> Ack {
        self.unacknowledged = 0;
        self.ack_due = Due::Never;
        let mut vector = vec![0u8; self.slots.len().saturating_sub(1).div_ceil(8)];
        for (index, slot) in self.slots.iter().skip(1).enumerate() {
            if slot.state != SlotState::Missing {
                vector[index / 8] |= 1 << (index % 8);
            }
        }
        let (next, highest_serial) = (self.next, self.highest_serial);
        Ack { next, highest_serial, delay: now - self.highest_serial_at, vector: vector.into() }
    }

    /// The length of the bit vector of the next link ACK, in bytes.
    pub(super) fn vector_len(&self) -> usize {
        self.slots.len().saturating_sub(1).div_ceil(8)
    }

    fn count(&mut self, now: Instant, settings: &Settings) {
        self.unacknowledged += 1;
        let is_enough = self.unacknowledged >= settings.ack_every && !settings.half_duplex;
        if is_enough {
            self.want_ack();
        } else {
            self.ack_due.no_later_than(now + settings.ack_delay);
        }
    }

    fn is_released(&self, seq: SeqNumber) -> bool {
        match usize::try_from(seq.offset_from(self.next)) {
            Err(_) => true,
            Ok(index) => {
                self.slots.get(index).is_some_and(|slot| slot.state == SlotState::Released)
            }
        }
    }

    /// Releases the packet of this slot, and all packets that waited only for it.
    fn release(&mut self, mut index: usize) {
        loop {
            let slot = &mut self.slots[index];
            if slot.state != SlotState::Waiting {
                return;
            }
            slot.state = SlotState::Released;
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

    /// Moves the window to the lowest missing sequence number. All packets below it are released,
    /// since each waits only for a lower one.
    fn advance(&mut self) {
        while self.slots.front().is_some_and(|slot| slot.state != SlotState::Missing) {
            // Two packets that name the same predecessor break the chain. No correct sender does
            // so.
            if self.slots[0].state == SlotState::Waiting {
                self.release(0);
            }
            self.slots.pop_front();
            self.packets.pop_front();
            self.next += 1;
        }
    }
}
