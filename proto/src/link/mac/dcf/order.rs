//! The receiver of a path: frames leave it in the order of their numbers.

use crate::packet::Packet;
use crate::time::Instant;
use alloc::collections::BTreeMap;
use core::time::Duration;

/// The reorder buffer of a block ACK agreement (IEEE 802.11-2020 §10.25.6). It never has more
/// frames than the window of the block ACK.
#[derive(Default)]
pub(super) struct Order {
    /// The number of the next frame that leaves.
    next: u64,
    /// Frames above a missing one, with the times at which they came; without a packet where the
    /// sender has given up.
    held: BTreeMap<u64, (Instant, Option<Packet>)>,
}

impl Order {
    /// A frame has arrived, or its sender has given it up: the frames that are next now leave.
    pub(super) fn take(
        &mut self,
        now: Instant,
        number: u64,
        packet: Option<Packet>,
        leave: impl FnMut(Packet),
    ) {
        if number >= self.next {
            self.held.entry(number).or_insert((now, packet));
        }
        self.release(leave);
    }

    /// When the frames above a missing one no longer wait for it.
    pub(super) fn expires_at(&self, lifetime: Duration) -> Option<Instant> {
        self.held.values().next().map(|(came, _)| *came + lifetime)
    }

    /// Those frames leave.
    pub(super) fn expire(&mut self, now: Instant, lifetime: Duration, leave: impl FnMut(Packet)) {
        if self.expires_at(lifetime).is_some_and(|at| at <= now)
            && let Some((first, _)) = self.held.first_key_value()
        {
            self.next = *first;
        }
        self.release(leave);
    }

    fn release(&mut self, mut leave: impl FnMut(Packet)) {
        while let Some((_, packet)) = self.held.remove(&self.next) {
            self.next += 1;
            packet.into_iter().for_each(&mut leave);
        }
    }
}
