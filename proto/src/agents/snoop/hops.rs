//! The hops to all mobile hosts, of which the agent remembers those in use.

use super::hop::Hop;
use crate::extreme::PATH_WINDOW;
use crate::time::Instant;
use alloc::boxed::Box;
use core::mem;
use foldhash::fast::FixedState;
use hashbrown::HashMap;

/// The address of a mobile host.
pub(super) type Mobile = [u8; 16];
type ByMobile = HashMap<Mobile, Box<Hop>, FixedState>;

/// One [`Hop`] for each mobile host: those that were used since a time, and those that were
/// used before it.
#[derive(Debug)]
pub(super) struct Hops {
    recent: ByMobile,
    older: ByMobile,
    since: Instant,
    /// The most hops in each of both.
    limit: usize,
}

impl Hops {
    /// No hops, and at most `limit` at a time; `hash_seed` should be secret where hosts are not
    /// trusted.
    pub(super) fn new(limit: usize, hash_seed: u64) -> Self {
        let hops = || HashMap::with_hasher(FixedState::with_seed(hash_seed));
        let limit = limit.div_ceil(2);
        Self { recent: hops(), older: hops(), since: Instant::ZERO, limit }
    }

    /// The hop to this mobile host.
    pub(super) fn get(&mut self, now: Instant, mobile: Mobile) -> &mut Hop {
        if now.since(self.since) >= PATH_WINDOW || self.recent.len() > self.limit {
            self.older = mem::take(&mut self.recent);
            self.since = now;
        }
        let older = &mut self.older;
        let entry = self.recent.entry(mobile);
        entry.or_insert_with(|| older.remove(&mobile).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;

    fn is_known(hops: &mut Hops, now: Instant, mobile: u8) -> bool {
        hops.get(now, [mobile; 16]).is_known()
    }

    fn fill(hops: &mut Hops, now: Instant, mobile: u8) {
        hops.get(now, [mobile; 16]).sample(now, Duration::from_millis(4), true, Duration::ZERO);
    }

    #[test]
    fn a_hop_in_use_is_kept_and_an_idle_one_forgotten() {
        let mut hops = Hops::new(100, 1);
        let at = |seconds: u64| Instant::from_millis(seconds * 1_000);
        (0..2).for_each(|mobile| fill(&mut hops, at(0), mobile));
        (0..200).for_each(|second| assert!(is_known(&mut hops, at(second), 0)));
        assert!(!is_known(&mut hops, at(200), 1));
    }

    #[test]
    fn the_number_is_bounded_and_the_busy_host_stays() {
        let mut hops = Hops::new(10, 1);
        let now = Instant::from_millis(1);
        fill(&mut hops, now, 0);
        for stranger in 1..=255 {
            fill(&mut hops, now, stranger);
            assert!(is_known(&mut hops, now, 0));
            assert!(hops.recent.len() + hops.older.len() <= 12);
        }
    }
}
