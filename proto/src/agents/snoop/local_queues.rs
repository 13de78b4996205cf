//! The queues to all mobile hosts, of which the agent remembers those in use.

use super::local_queue::LocalQueue;
use crate::time::Instant;
use alloc::boxed::Box;
use core::mem;
use core::time::Duration;
use foldhash::fast::FixedState;
use hashbrown::HashMap;

/// The idle time after which a queue may be forgotten.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// The address of a mobile host.
type Mobile = [u8; 16];
type Queues = HashMap<Mobile, Box<LocalQueue>, FixedState>;

/// One [`LocalQueue`] for each mobile host: those that were used since a time, and those that were
/// used before it.
#[derive(Debug)]
pub(super) struct LocalQueues {
    recent: Queues,
    older: Queues,
    since: Instant,
    /// The most queues in each of both.
    limit: usize,
}

impl LocalQueues {
    /// No queues, and at most `limit` at a time; `hash_seed` should be secret where hosts are not
    /// trusted.
    pub(super) fn new(limit: usize, hash_seed: u64) -> Self {
        let queues = || HashMap::with_hasher(FixedState::with_seed(hash_seed));
        let limit = limit.div_ceil(2);
        Self { recent: queues(), older: queues(), since: Instant::ZERO, limit }
    }

    /// The queue to this mobile host.
    pub(super) fn get(&mut self, now: Instant, mobile: Mobile) -> &mut LocalQueue {
        if now.since(self.since) >= IDLE_TIMEOUT || self.recent.len() > self.limit {
            self.older = mem::take(&mut self.recent);
            self.since = now;
        }
        let older = &mut self.older;
        let queue = self.recent.entry(mobile);
        queue.or_insert_with(|| older.remove(&mobile).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_known(queues: &mut LocalQueues, now: Instant, mobile: u8) -> bool {
        queues.get(now, [mobile; 16]).is_known()
    }

    fn fill(queues: &mut LocalQueues, now: Instant, mobile: u8) {
        queues.get(now, [mobile; 16]).sample(now, Duration::from_millis(4), true);
    }

    #[test]
    fn a_queue_in_use_is_kept_and_an_idle_one_forgotten() {
        let mut queues = LocalQueues::new(100, 1);
        let at = |seconds: u64| Instant::from_millis(seconds * 1_000);
        (0..2).for_each(|mobile| fill(&mut queues, at(0), mobile));
        (0..200).for_each(|second| assert!(is_known(&mut queues, at(second), 0)));
        assert!(!is_known(&mut queues, at(200), 1));
    }

    #[test]
    fn the_number_is_bounded_and_the_busy_host_stays() {
        let mut queues = LocalQueues::new(10, 1);
        let now = Instant::from_millis(1);
        fill(&mut queues, now, 0);
        for stranger in 1..=255 {
            fill(&mut queues, now, stranger);
            assert!(is_known(&mut queues, now, 0));
            assert!(queues.recent.len() + queues.older.len() <= 12);
        }
    }
}
