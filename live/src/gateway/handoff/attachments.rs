//! How many hosts attach: whoever invents hosts on the air must neither flood the other stations
//! with claims for them, nor keep a host that has come from its place here.
//!
//! All hosts have a number in each second, and of that each link-layer address at most as many as
//! it leaves to others (the dynamic threshold of A. K. Choudhury and E. L. Hahne, "Dynamic queue
//! length thresholds for shared-memory packet switches", 1998): one may have a half, two a third
//! each. Where the link-layer addresses are invented too, this number is used up, and a host that
//! is new has the chance of each other packet. Hosts that were here before have a number of their
//! own.

use super::air_host::Mac;
use airmend_proto::Instant;
use std::collections::HashMap;
use std::time::Duration;

/// Hosts that may attach within a second: as many new ones as known ones.
const LIMIT: u32 = 200;
const SECOND: Duration = Duration::from_secs(1);

/// The attachments of the present second.
#[derive(Debug, Default)]
pub(super) struct Attachments {
    begin: Instant,
    new: Shares,
    known: Shares,
}

#[derive(Debug, Default)]
struct Shares {
    total: u32,
    /// No more entries than attachments.
    of_sender: HashMap<Mac, u32>,
}

impl Attachments {
    /// Whether a host with this link-layer address, if it has one, may attach. It is counted then.
    pub(super) fn admit(&mut self, now: Instant, sender: Option<Mac>, is_known: bool) -> bool {
        if now.since(self.begin) >= SECOND {
            *self = Self { begin: now, ..Self::default() };
        }
        let shares = if is_known { &mut self.known } else { &mut self.new };
        shares.admit(sender)
    }
}

impl Shares {
    fn admit(&mut self, sender: Option<Mac>) -> bool {
        let left = LIMIT - self.total;
        let own = sender.and_then(|sender| self.of_sender.get(&sender)).copied().unwrap_or(0);
        if own >= left {
            return false;
        }
        self.total += 1;
        if let Some(sender) = sender {
            self.of_sender.insert(sender, own + 1);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mac(number: u32) -> Option<Mac> {
        let [a, b, c, d] = number.to_be_bytes();
        Some([2, 0, a, b, c, d])
    }

    /// How many of so many packets attach a host.
    fn attached(
        attachments: &mut Attachments,
        packets: u32,
        sender: impl Fn(u32) -> Option<Mac>,
    ) -> u32 {
        let now = Instant::from_millis(5_000);
        let admitted = (0..packets).filter(|n| attachments.admit(now, sender(*n), false));
        admitted.count() as u32
    }

    #[test]
    fn a_sender_leaves_as_much_as_it_takes() {
        let mut attachments = Attachments::default();
        assert_eq!(attached(&mut attachments, 20_000, |_| mac(1)), LIMIT / 2);
        assert_eq!(attached(&mut attachments, 1, |_| mac(2)), 1, "an honest host");
        assert!(attached(&mut attachments, 20_000, |_| mac(3)) >= LIMIT / 4 - 1);
        assert_eq!(attached(&mut attachments, 1, |_| mac(4)), 1, "an honest host");
        let next = Instant::from_millis(6_000);
        assert!(attachments.admit(next, mac(1), false), "the next second");
    }

    #[test]
    fn of_some_senders_each_has_the_same() {
        let mut attachments = Attachments::default();
        assert_eq!(attached(&mut attachments, 90_000, |n| mac(n % 9)), 9 * (LIMIT / 10));
        assert_eq!(attached(&mut attachments, 1, |_| mac(9)), 1, "an honest host");
    }

    #[test]
    fn a_known_host_attaches_though_all_senders_are_invented() {
        let mut attachments = Attachments::default();
        assert_eq!(attached(&mut attachments, 20_000, mac), LIMIT);
        let now = Instant::from_millis(5_000);
        assert!(!attachments.admit(now, mac(30_000), false));
        assert!(attachments.admit(now, mac(30_000), true));
    }

    #[test]
    fn without_link_layer_addresses_the_number_counts() {
        let mut attachments = Attachments::default();
        assert_eq!(attached(&mut attachments, 20_000, |_| None), LIMIT);
    }
}
