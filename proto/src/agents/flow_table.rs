//! The bounded table of flows that an agent keeps soft state for.

use super::flow_index::FlowIndex;
use crate::wire::flow::FlowKey;
use alloc::vec::Vec;
use core::cell::Cell;
use core::hash::BuildHasher;
use foldhash::fast::FixedState;

/// A reference to a flow; the reference to a removed flow finds nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowRef {
    slot: u32,
    generation: u32,
}

impl FlowRef {
    /// The slot of the flow in the table, below [`FlowTable::slots`].
    pub fn slot(self) -> u32 {
        self.slot
    }
}

/// At most `limit` flows, found by key in constant time and by reference without hashing.
///
/// Neither the index nor the slots are ever reallocated, so that no packet waits for growth.
#[derive(Clone, Debug)]
pub struct FlowTable<F> {
    index: FlowIndex,
    len: usize,
    slots: Vec<Slot<F>>,
    free: Vec<u32>,
    limit: usize,
    hasher: FixedState,
    /// The slot that was found last. Each packet is looked up when it arrives and when it departs,
    /// and packets come in trains: the next look-up often finds the same.
    latest: Cell<u32>,
    next_swept: usize,
}

/// In this order, so that the key and the first fields of the flow share a cache line.
#[derive(Clone, Debug)]
#[repr(C)]
struct Slot<F> {
    key: FlowKey,
    generation: u32,
    flow: Option<F>,
}

impl<F> FlowTable<F> {
    /// Bytes of the table for each flow.
    pub const BYTES_PER_FLOW: usize =
        size_of::<Slot<F>>() + 2 * size_of::<u64>() + size_of::<u32>();

    /// An empty table for `limit` flows; a secret `seed` keeps hash collisions unpredictable.
    pub fn new(limit: usize, seed: u64) -> Self {
        Self {
            index: FlowIndex::new(limit),
            len: 0,
            // This reserves address space; pages are allocated with their first flow.
            slots: Vec::with_capacity(limit),
            free: Vec::new(),
            limit,
            hasher: FixedState::with_seed(seed),
            latest: Cell::new(0),
            next_swept: 0,
        }
    }

    /// The number of flows.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the table holds no flow.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether there is room for another flow.
    pub fn has_room(&self) -> bool {
        self.len() < self.limit
    }

    /// The flow with this key.
    #[inline]
    pub fn find(&self, key: &FlowKey) -> Option<FlowRef> {
        let latest = self.latest.get();
        if self.key_of(latest) == Some(key)
            && let Some(flow) = self.reference(latest)
        {
            return Some(flow);
        }
        self.search(key)
    }

    fn search(&self, key: &FlowKey) -> Option<FlowRef> {
        if self.is_empty() {
            return None;
        }
        let hash = self.hasher.hash_one(key);
        let slot = self.index.find(hash, |slot| self.key_of(slot) == Some(key))?;
        self.latest.set(slot);
        self.reference(slot)
    }

    /// The flow of a reference.
    pub fn get(&self, flow: FlowRef) -> Option<&F> {
        let slot = self.slots.get(flow.slot as usize)?;
        slot.flow.as_ref().filter(|_| slot.generation == flow.generation)
    }

    /// The flow of a reference.
    pub fn get_mut(&mut self, flow: FlowRef) -> Option<&mut F> {
        let slot = self.slots.get_mut(flow.slot as usize)?;
        let generation = slot.generation;
        slot.flow.as_mut().filter(|_| generation == flow.generation)
    }

    /// The key of a flow.
    pub fn key(&self, flow: FlowRef) -> Option<&FlowKey> {
        self.get(flow).and_then(|_| self.key_of(flow.slot))
    }

    /// The reference to the flow in a slot.
    pub fn reference(&self, slot: u32) -> Option<FlowRef> {
        let occupied = self.slots.get(slot as usize).filter(|slot| slot.flow.is_some())?;
        Some(FlowRef { slot, generation: occupied.generation })
    }

    /// Adds a flow whose key is not in the table; `None` if there is no room.
    pub fn insert(&mut self, key: FlowKey, flow: F) -> Option<FlowRef> {
        if !self.has_room() {
            return None;
        }
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                self.slots.push(Slot { generation: 0, key, flow: None });
                u32::try_from(self.slots.len() - 1).ok()?
            }
        };
        let place = self.slots.get_mut(slot as usize)?;
        place.key = key;
        place.flow = Some(flow);
        let generation = place.generation;
        self.index.insert(self.hasher.hash_one(key), slot);
        self.len += 1;
        Some(FlowRef { slot, generation })
    }

    /// Removes a flow.
    pub fn remove(&mut self, flow: FlowRef) -> Option<F> {
        let slot = self.slots.get_mut(flow.slot as usize)?;
        if slot.generation != flow.generation {
            return None;
        }
        let value = slot.flow.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        let hash = self.hasher.hash_one(slot.key);
        self.index.remove(hash, flow.slot);
        self.len -= 1;
        self.free.push(flow.slot);
        Some(value)
    }

    /// The next slots of a cyclic sweep over the table: at most `count`, each at most once. The
    /// idle sweep needs no list that every packet would have to update.
    pub fn sweep(&mut self, count: usize) -> impl Iterator<Item = u32> + use<F> {
        let slots = self.slots.len();
        let first = self.next_swept;
        let count = count.min(slots);
        self.next_swept = if slots == 0 { 0 } else { (first + count) % slots };
        (first..first + count).filter_map(move |slot| u32::try_from(slot % slots).ok())
    }

    /// The number of slots, used and free, that one sweep visits.
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    fn key_of(&self, slot: u32) -> Option<&FlowKey> {
        self.slots.get(slot as usize).map(|slot| &slot.key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::flow::Endpoint;

    fn key(port: u16) -> FlowKey {
        let end = |port| Endpoint { address: [0; 16], port };
        FlowKey { wired: end(port), air: end(80) }
    }

    #[test]
    fn stale_references_find_nothing() {
        let mut table = FlowTable::new(2, 1);
        let first = table.insert(key(1), "first").unwrap();
        assert_eq!(table.remove(first), Some("first"));
        let second = table.insert(key(2), "second").unwrap();
        assert_eq!(first.slot(), second.slot(), "the slot is reused");
        assert_eq!((table.get(first), table.get(second)), (None, Some(&"second")));
        assert_eq!(table.remove(first), None);
        assert_eq!((table.find(&key(1)), table.find(&key(2))), (None, Some(second)));
    }

    #[test]
    fn is_bounded_and_stays_consistent() {
        let mut table = FlowTable::new(100, 1);
        for round in 0..50u16 {
            let kept: u16 = (0..200)
                .map(|port| u16::from(table.insert(key(round * 200 + port), port).is_some()))
                .sum();
            assert_eq!((kept, table.len(), table.has_room()), (100, 100, false));
            for port in 0..200 {
                let found = table.find(&key(round * 200 + port));
                assert_eq!(found.is_some(), port < 100);
                if let Some(flow) = found {
                    assert_eq!(table.remove(flow), Some(port));
                }
            }
            assert!(table.is_empty());
        }
    }

    #[test]
    fn a_sweep_visits_every_slot_once() {
        let mut table = FlowTable::new(10, 1);
        assert_eq!(table.sweep(5).count(), 0);
        for port in 0..7 {
            table.insert(key(port), port).unwrap();
        }
        let mut seen: Vec<u32> = table.sweep(4).chain(table.sweep(3)).collect();
        seen.sort_unstable();
        assert_eq!(seen, (0..7).collect::<Vec<_>>());
        assert_eq!(table.sweep(100).count(), 7);
    }
}
