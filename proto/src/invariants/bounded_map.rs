//! A map that forgets its oldest keys.

use alloc::collections::VecDeque;
use foldhash::fast::FixedState;
use hashbrown::HashMap;

/// A map that drops its oldest keys.
#[derive(Debug)]
pub(super) struct BoundedMap<K, V> {
    map: HashMap<K, V, FixedState>,
    order: VecDeque<K>,
    limit: usize,
    /// Whether a key was dropped.
    pub(super) has_forgotten: bool,
}

impl<K: Copy + Eq + core::hash::Hash, V> BoundedMap<K, V> {
    pub(super) fn new(limit: usize) -> Self {
        let map = HashMap::with_hasher(FixedState::default());
        Self { map, order: VecDeque::new(), limit, has_forgotten: false }
    }

    pub(super) fn get(&self, key: &K) -> Option<&V> {
        self.map.get(key)
    }

    pub(super) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.map.get_mut(key)
    }

    pub(super) fn insert(&mut self, key: K, value: V) {
        if self.map.insert(key, value).is_some() {
            return;
        }
        self.order.push_back(key);
        if self.order.len() > self.limit
            && let Some(oldest) = self.order.pop_front()
        {
            self.map.remove(&oldest);
            self.has_forgotten = true;
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.map.len()
    }
}
