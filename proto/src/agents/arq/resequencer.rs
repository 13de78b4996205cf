//! The packet buffer: the receive window, and the order in which packets are released
//! [lack §3.3 S1-23, tulip99 §III S2-02].

use super::link_event::LinkEvent;
use crate::packet::Packet;
use crate::wire::seq::SeqNumber;
use alloc::collections::VecDeque;

/// The widest window, from the oldest unacknowledged packet to the newest, of an end whose link
/// ACKs have a bit for each packet.
pub const MAX_WINDOW: u32 = 4_096;
/// The widest window of any end: distances between packets have 16 bits.
pub(crate) const WIDEST_WINDOW: u32 = 65_536;
/// The most unreliable packets that wait for reliable packets of their flow.
const MAX_HELD: usize = 1_024;
/// Bytes of memory that a packet takes besides its own: its place here, and the allocator's.
const OVERHEAD: usize = 128;

/// The receive window of one end.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Resequencer {
    /// The lowest sequence number that has not arrived: the paper's `p_number` [lack §3.3].
    next: SeqNumber,
    /// The window from `next` on; the packet of the last slot has arrived.
    slots: VecDeque<ReceiveSlot>,
    /// For each slot its packet while the packet waits; `None` if it was given up.
    packets: VecDeque<Option<Packet>>,
    /// Unreliable packets, each with the sequence number after whose release it is released.
    held: VecDeque<(SeqNumber, Packet)>,
    /// Packets for the network layer, in order.
    released: VecDeque<Packet>,
    /// Bytes that packets in `packets`, `held` and `released` take, and their limit. A reliable
    /// packet beyond the limit is not accepted, and the sender retransmits it. Those that wait have
    /// buffers of their own.
    bytes: usize,
    max_bytes: usize,
    /// The length of `released` from which on unreliable packets are dropped.
    max_released: usize,
    /// The number of packets from `next` on that have a place.
    window: usize,
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

impl Resequencer {
    /// An empty window of this many packets. At most `max_bytes` bytes are held; unreliable packets
    /// are dropped while `max_released` packets wait for the network layer.
    pub(crate) fn new(max_bytes: usize, max_released: usize, window: u32) -> Self {
        Self {
            next: SeqNumber(0),
            slots: VecDeque::new(),
            packets: VecDeque::new(),
            held: VecDeque::new(),
            released: VecDeque::new(),
            bytes: 0,
            max_bytes,
            max_released,
            window: window as usize,
        }
    }

    /// From now on nothing is accepted while so many bytes are held.
    pub(crate) fn limit_cache(&mut self, bytes: usize) {
        self.max_bytes = bytes;
    }

    /// The lowest sequence number that has not arrived.
    pub(crate) fn next(&self) -> SeqNumber {
        self.next
    }

    /// Whether a packet has not arrived, and has a place.
    pub(crate) fn is_missing(&self, seq: SeqNumber) -> bool {
        let Ok(index) = usize::try_from(seq.offset_from(self.next)) else { return false };
        let slot = self.slots.get(index).copied().unwrap_or_default();
        index < self.window && slot.state == SlotState::Missing
    }

    /// For each sequence number above [`Self::next`] whether it has arrived, up to the highest one
    /// that has.
    pub(crate) fn beyond(&self) -> impl ExactSizeIterator<Item = bool> + '_ {
        self.slots.iter().skip(1).map(|slot| slot.state != SlotState::Missing)
    }

    /// Begins a new stream with a new run of the other end. All packets that had arrived are
    /// released, since nobody will retransmit them.
    pub(crate) fn restart(&mut self) {
        self.released.extend(self.packets.drain(..).flatten());
        self.released.extend(self.held.drain(..).map(|(_, packet)| packet));
        let released = core::mem::take(&mut self.released);
        let empty = Self::new(self.max_bytes, self.max_released, self.window as u32);
        *self = Self { released, bytes: self.bytes, ..empty };
    }

    /// The next packet for the network layer.
    pub(crate) fn pop(&mut self) -> Option<Packet> {
        let packet = self.released.pop_front()?;
        self.bytes -= size(&packet);
        Some(packet)
    }

    /// Bytes of memory that all packets take that wait.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes a reliable packet, which is released after sequence number `seq - after`; `None` if
    /// its sender has given it up. Returns whether it is next to the highest one that has arrived:
    /// it neither leaves a gap nor fills one.
    ///
    /// # Errors
    /// It had arrived before, lies beyond the widest window, or there is no memory for it.
    pub(crate) fn reliable(
        &mut self,
        seq: SeqNumber,
        after: u16,
        packet: Option<Packet>,
    ) -> Result<bool, LinkEvent> {
        let offset = seq.offset_from(self.next);
        let Ok(index) = usize::try_from(offset) else { return Err(LinkEvent::Duplicate(seq)) };
        if self.slots.get(index).is_some_and(|slot| slot.state != SlotState::Missing) {
            return Err(LinkEvent::Duplicate(seq));
        }
        let len = packet.as_ref().map_or(0, size);
        let fits = self.bytes + len <= self.max_bytes || (index == 0 && self.released.is_empty());
        if index >= self.window || !fits {
            return Err(LinkEvent::BeyondWindow(seq));
        }
        let is_next_to_highest = index == self.slots.len();
        if index >= self.slots.len() {
            self.slots.resize(index + 1, ReceiveSlot::default());
            self.packets.resize(index + 1, None);
        }
        self.slots[index].state = SlotState::Waiting;
        self.bytes += len;
        if after == 0 || self.is_released(seq - u32::from(after)) {
            self.packets[index] = packet;
            self.release(index);
        } else {
            self.packets[index] = packet.map(|packet| packet.with_own_buffer());
            self.slots[index - usize::from(after)].successor = after;
        }
        self.advance();
        Ok(is_next_to_highest)
    }

    /// Takes an unreliable packet, which is released after sequence number `seq - after`.
    pub(crate) fn unreliable(
        &mut self,
        seq: SeqNumber,
        after: u16,
        packet: Packet,
    ) -> Result<(), LinkEvent> {
        let before = seq - u32::from(after);
        let ahead = before.offset_from(self.next);
        let is_free = after == 0 || self.is_released(before) || ahead >= self.window as i32;
        let has_place = match is_free {
            true => self.released.len() < self.max_released,
            false => self.held.len() < MAX_HELD,
        };
        let len = size(&packet);
        if !has_place || self.bytes + len > self.max_bytes {
            return Err(LinkEvent::HoldFull);
        }
        self.bytes += len;
        if is_free {
            self.released.push_back(packet);
        } else {
            self.held.push_back((before, packet.with_own_buffer()));
        }
        Ok(())
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

/// Bytes of memory that a packet takes which has a buffer of its own.
fn size(packet: &Packet) -> usize {
    OVERHEAD + packet.bytes().len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::LinkType;
    use bytes::Bytes;

    #[test]
    fn what_waits_keeps_no_buffer_of_others_and_counts_as_much_as_it_takes() {
        let buffer = Bytes::from(alloc::vec![0x45; 65_536]);
        let packet = |at| Packet::new(LinkType::Ip, buffer.slice(at..at + 40));
        let is_shared = |packet: &Packet| buffer.as_ptr_range().contains(&packet.bytes().as_ptr());
        let mut window = Resequencer::new(2_000, 100, MAX_WINDOW);
        let take = |window: &mut Resequencer, seq: u16| {
            window.reliable(SeqNumber(seq.into()), seq, Some(packet(usize::from(seq))))
        };
        let taken = (1..100).take_while(|seq| take(&mut window, *seq).is_ok()).count();
        assert_eq!((taken, window.bytes()), (2_000 / (40 + OVERHEAD), 11 * (40 + OVERHEAD)));
        assert!(window.unreliable(SeqNumber(5), 5, packet(0)).is_err(), "there is no memory");
        assert!(window.packets.iter().flatten().all(|packet| !is_shared(packet)));
        // What fills the gap passes as it is.
        window.reliable(SeqNumber(0), 0, Some(packet(0))).expect("it is next");
        assert!(window.pop().is_some_and(|packet| is_shared(&packet)));
        while window.pop().is_some() {}
        assert_eq!(window.bytes(), 0);
    }

    #[test]
    fn another_limit_lets_nothing_in_until_there_is_room() {
        let packet = Packet::new(LinkType::Ip, alloc::vec![0x45; 1_000].into());
        let mut window = Resequencer::new(10_000, 100, MAX_WINDOW);
        let take = |window: &mut Resequencer, seq: u16| {
            window.reliable(SeqNumber(seq.into()), seq, Some(packet.clone())).is_ok()
        };
        assert!((1..=4).all(|seq| take(&mut window, seq)));
        window.limit_cache(2_500);
        assert!(!take(&mut window, 5) && window.bytes() > 4_000);
        // What all of them wait for is always taken.
        while window.pop().is_some() {}
        assert!(take(&mut window, 0));
        while window.pop().is_some() {}
        assert!(take(&mut window, 6) && take(&mut window, 7) && !take(&mut window, 8));
    }
}
