//! When the data of a flow arrives in order: its longest stall, and the times of handoffs.

use airmend_proto::Instant;
use std::time::Duration;

/// The progress of a flow's receiver.
#[derive(Debug)]
pub(crate) struct Delivery {
    bytes: u64,
    at: Instant,
    /// The longest time in which nothing arrived in order.
    pub(crate) longest_stall: Duration,
    /// When the receiver got its present link, until the first data has come over it.
    attached_at: Option<Instant>,
    /// From each such time to the first data in order.
    pub(crate) handoffs: Vec<Duration>,
}

impl Delivery {
    pub(crate) fn new(start: Instant) -> Self {
        Self {
            bytes: 0,
            at: start,
            longest_stall: Duration::ZERO,
            attached_at: None,
            handoffs: Vec::new(),
        }
    }

    /// The receiver has another link.
    pub(crate) fn attached(&mut self, now: Instant) {
        self.attached_at.get_or_insert(now);
    }

    /// So many bytes have arrived in order.
    pub(crate) fn arrived(&mut self, now: Instant, bytes: u64) {
        if bytes <= self.bytes {
            return;
        }
        self.longest_stall = self.longest_stall.max(now.since(self.at));
        self.handoffs.extend(self.attached_at.take().map(|since| now.since(since)));
        (self.bytes, self.at) = (bytes, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_is_the_time_between_bytes_in_order() {
        let ms = Instant::from_millis;
        let mut delivery = Delivery::new(ms(10));
        delivery.arrived(ms(15), 100);
        delivery.attached(ms(20));
        delivery.arrived(ms(30), 100);
        assert!(delivery.handoffs.is_empty());
        delivery.arrived(ms(40), 200);
        delivery.arrived(ms(50), 300);
        assert_eq!(delivery.longest_stall, Duration::from_millis(25));
        assert_eq!(delivery.handoffs, [Duration::from_millis(20)]);
    }
}
