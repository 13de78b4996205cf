//! The index of the flow table: from a hash to the slot of a flow.

use alloc::vec;
use alloc::vec::Vec;

/// Open addressing with linear probing, at most half full, of a fixed size.
///
/// An entry holds half of the hash beside the slot, so that a lookup among 100,000 flows costs one
/// cache miss. The index never grows; its pages are allocated as flows are added.
#[derive(Clone, Debug)]
pub(super) struct FlowIndex {
    entries: Vec<Entry>,
    mask: usize,
}

/// The upper half of a hash, and a slot plus one; a slot of zero is an empty entry.
type Entry = u64;
const EMPTY: Entry = 0;

fn entry(hash: u64, slot: u32) -> Entry {
    (hash & !0xffff_ffff) | (u64::from(slot) + 1)
}

impl FlowIndex {
    /// An empty index for `limit` flows, less than 2^31.
    pub(super) fn new(limit: usize) -> Self {
        let size = (2 * limit.max(1)).next_power_of_two();
        Self { entries: vec![EMPTY; size], mask: size - 1 }
    }

    /// The slot with this hash for which `is_it` is true.
    pub(super) fn find(&self, hash: u64, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        self.position(hash, is_it).map(|(_, slot)| slot)
    }

    /// Adds a slot. The caller keeps the index within its limit.
    pub(super) fn insert(&mut self, hash: u64, slot: u32) {
        let mut at = self.home(hash);
        while self.entries[at] != EMPTY {
            at = self.after(at);
        }
        self.entries[at] = entry(hash, slot);
    }

    /// Removes a slot and closes the gap, so that no probe sequence is cut short.
    pub(super) fn remove(&mut self, hash: u64, slot: u32) {
        let Some((mut gap, _)) = self.position(hash, |other| other == slot) else { return };
        let mut at = gap;
        loop {
            at = self.after(at);
            let candidate = self.entries[at];
            if candidate == EMPTY {
                break;
            }
            // The entry may move into the gap unless its home lies behind the gap.
            let home = self.home(candidate);
            if at.wrapping_sub(home) & self.mask >= at.wrapping_sub(gap) & self.mask {
                self.entries[gap] = candidate;
                gap = at;
            }
        }
        self.entries[gap] = EMPTY;
    }

    fn position(&self, hash: u64, is_it: impl Fn(u32) -> bool) -> Option<(usize, u32)> {
        let mut at = self.home(hash);
        loop {
            let found = self.entries[at];
            if found == EMPTY {
                return None;
            }
            let slot = (found as u32).wrapping_sub(1);
            if (found ^ hash) >> 32 == 0 && is_it(slot) {
                return Some((at, slot));
            }
            at = self.after(at);
        }
    }

    /// The first position of the probe sequence for a hash, or for an entry.
    fn home(&self, hash: u64) -> usize {
        (hash >> 32) as usize & self.mask
    }

    fn after(&self, at: usize) -> usize {
        (at + 1) & self.mask
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Few hashes, so that probes run into each other and around the end.
        #[test]
        fn finds_what_is_in_it_and_nothing_else(
            steps in prop::collection::vec((0u32..12, 0u64..6, any::<bool>()), 0..200),
        ) {
            let mut index = FlowIndex::new(12);
            let mut model: [Option<u64>; 12] = [None; 12];
            for (slot, hash, insert) in steps {
                let hash = hash.wrapping_mul(5) << 32;
                match model[slot as usize] {
                    None if insert => {
                        index.insert(hash, slot);
                        model[slot as usize] = Some(hash);
                    }
                    Some(hash) if !insert => {
                        index.remove(hash, slot);
                        model[slot as usize] = None;
                    }
                    _ => {}
                }
                for (slot, hash) in (0u32..).zip(model) {
                    let hash_or_any = hash.unwrap_or(0);
                    let found = index.find(hash_or_any, |other| other == slot);
                    prop_assert_eq!(found, hash.map(|_| slot));
                }
            }
        }
    }
}
