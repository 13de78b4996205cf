//! The counters of the cache, as events [snoop-opnet §3.5; S3-04].

use crate::event::{Event, OwnEvent};

/// The counters of these events.
pub(crate) const COUNTERS: &[&str] = &["num_cached", "max_cached", "num_removed"];

/// What has entered the cache of all flows, and how much of it is reported.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CacheCounters {
    /// Packets that have been cached, a new copy of a cached packet not counted.
    cached: u64,
    /// The most packets that were cached at one time.
    most: u64,
    reported: Reported,
}

/// How often each event has been given.
#[derive(Clone, Copy, Debug, Default)]
struct Reported {
    cached: u64,
    removed: u64,
    most: u64,
}

impl CacheCounters {
    /// Notes that a packet was cached, and that there are now `packets` of them.
    pub(super) fn note_cached(&mut self, packets: usize) {
        self.cached += 1;
        self.most = self.most.max(packets as u64);
    }

    /// The next event while `packets` are cached: `num_cached` and `num_removed` for each packet,
    /// and `max_cached` for each packet by which the maximum has grown. The number of times that
    /// each has been given is the counter of that name in the paper; `curr_cached` is
    /// [`crate::Load::cache_packets`].
    pub(super) fn next_event(&mut self, packets: usize) -> Option<Event> {
        let packets = packets as u64;
        let Self { cached, most, reported } = self;
        let removed = cached.saturating_sub(packets);
        let (counter, text, value) = if reported.cached < *cached {
            reported.cached += 1;
            ("num_cached", "packet cached, {} in the cache", packets)
        } else if reported.most < *most {
            reported.most += 1;
            ("max_cached", "{} packets in the cache for the first time", reported.most)
        } else if reported.removed < removed {
            reported.removed += 1;
            ("num_removed", "packet removed, {} in the cache", packets)
        } else {
            return None;
        };
        Some(Event::Own(OwnEvent { counter, text, values: [value, 0], is_retransmission: false }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::{String, ToString};
    use alloc::vec::Vec;

    fn events(counters: &mut CacheCounters, packets: usize) -> Vec<String> {
        core::iter::from_fn(|| counters.next_event(packets))
            .map(|event| event.counter().to_string())
            .collect()
    }

    #[test]
    fn each_is_given_as_often_as_it_happened() {
        let mut counters = CacheCounters::default();
        counters.note_cached(1);
        assert_eq!(events(&mut counters, 1), ["num_cached", "max_cached"]);
        counters.note_cached(2);
        counters.note_cached(3);
        assert_eq!(
            events(&mut counters, 3),
            ["num_cached", "num_cached", "max_cached", "max_cached"]
        );
        assert_eq!(events(&mut counters, 1), ["num_removed", "num_removed"]);
        counters.note_cached(2);
        assert_eq!(events(&mut counters, 2), ["num_cached"]);
        assert_eq!(events(&mut counters, 0), ["num_removed", "num_removed"]);
        assert_eq!(events(&mut counters, 0), [""; 0]);
    }
}
