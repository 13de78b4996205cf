//! The anti-replay window (RFC 6479): which of the latest counters have been seen.

const WORDS: usize = 64;
/// The distance below the highest counter at which a datagram may arrive. A burst of 64 kB has 50
/// datagrams, and paths that reorder do so within milliseconds.
const WINDOW: u64 = (WORDS as u64 - 1) * 64;

/// Why a counter is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stale {
    /// The counter has been received before.
    Replayed,
    /// The counter is below the window, so that a replay cannot be detected.
    TooOld,
}

/// Remembers counters.
#[derive(Clone, Debug)]
pub(super) struct ReplayWindow {
    /// One above the highest counter seen.
    next: u64,
    words: [u64; WORDS],
}

impl ReplayWindow {
    /// Nothing has been seen.
    pub(super) fn new() -> Self {
        Self { next: 0, words: [0; WORDS] }
    }

    /// Whether a datagram with this counter may still be accepted.
    pub(super) fn check(&self, counter: u64) -> Result<(), Stale> {
        if counter >= self.next {
            return Ok(());
        }
        if self.next - counter > WINDOW {
            return Err(Stale::TooOld);
        }
        let (word, bit) = position(counter);
        if self.words[word] & bit == 0 { Ok(()) } else { Err(Stale::Replayed) }
    }

    /// Remembers a counter that has passed `check` and authentication. True if it is the highest
    /// so far.
    pub(super) fn mark(&mut self, counter: u64) -> bool {
        let is_newest = counter >= self.next;
        if is_newest {
            // Words between the old and the new highest hold bits of a window ago.
            let (old, new) = (self.next.div_ceil(64), counter / 64);
            for word in (old..=new).rev().take(WORDS) {
                self.words[(word % WORDS as u64) as usize] = 0;
            }
            self.next = counter.saturating_add(1);
        }
        let (word, bit) = position(counter);
        self.words[word] |= bit;
        is_newest
    }
}

fn position(counter: u64) -> (usize, u64) {
    ((counter / 64 % WORDS as u64) as usize, 1 << (counter % 64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmend_proto::random::{Purpose, Stream};
    use std::collections::BTreeSet;

    #[test]
    fn agrees_with_a_set_of_all_counters() {
        for seed in 0..50 {
            let mut random = Stream::new(seed, 0, 0, Purpose::Loss);
            let mut below = |limit: u64| (random.uniform() * limit as f64) as u64;
            let mut window = ReplayWindow::new();
            let (mut seen, mut highest) = (BTreeSet::new(), 0u64);
            for _ in 0..20_000 {
                let ahead = if below(100) == 0 { 20_000 } else { 200 };
                let behind = if below(10) == 0 { 6_000 } else { 150 };
                let counter = (highest + below(ahead)).saturating_sub(below(behind));
                let expected = if seen.is_empty() || counter > highest {
                    Ok(())
                } else if highest + 1 - counter > WINDOW {
                    Err(Stale::TooOld)
                } else if seen.contains(&counter) {
                    Err(Stale::Replayed)
                } else {
                    Ok(())
                };
                assert_eq!(window.check(counter), expected, "seed {seed}, counter {counter}");
                if expected.is_ok() {
                    let newest = seen.is_empty() || counter > highest;
                    assert_eq!(window.mark(counter), newest, "seed {seed}, counter {counter}");
                    seen.insert(counter);
                    highest = highest.max(counter);
                }
            }
        }
    }

    #[test]
    fn the_last_counter_is_no_special_case() {
        let mut window = ReplayWindow::new();
        assert!(window.mark(u64::MAX - 1));
        assert_eq!(window.check(u64::MAX - 1), Err(Stale::Replayed));
        assert_eq!(window.check(3), Err(Stale::TooOld));
    }
}
