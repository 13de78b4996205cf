//! The last TCP ACKs of bursts, which leave once more. An ACK is sent once, since a later one says
//! the same; after the last one of a burst none follows. Its loss holds back for a round trip what
//! it lets the host send: a connection in slow start then takes a round trip more.

use crate::packet::Packet;
use crate::time::Instant;
use alloc::collections::VecDeque;

/// The most that are remembered; of more connections at a time the oldest has no copy.
const MOST: usize = 64;
/// Of so many ACKs one leaves once more at most: of many slow connections each ACK looks like the
/// last one of a burst. Small objects have one for twelve or more.
const ONE_OF: u32 = 8;
/// The most copies that are saved up.
const MOST_SAVED: u32 = 8;

/// The last ACKs of flows that nothing of the flow has followed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct LastAcks {
    /// Those that something may follow soon, with the time until which, the earliest first.
    waiting: VecDeque<(Instant, usize, Packet)>,
    /// Those that leave once more.
    due: VecDeque<(usize, Packet)>,
    /// ACKs that have left since the last copy, as far as they count.
    credit: u32,
}

impl LastAcks {
    /// A packet of a flow leaves, which says what its earlier ACKs say.
    pub(super) fn follow(&mut self, flow: usize) {
        self.waiting.retain(|(_, of, _)| *of != flow);
        self.due.retain(|(of, _)| *of != flow);
    }

    /// An ACK leaves, which is the last one if nothing of its flow leaves until then.
    pub(super) fn note(&mut self, flow: usize, packet: Packet, until: Instant) {
        if self.waiting.len() + self.due.len() >= MOST && self.due.pop_front().is_none() {
            self.waiting.pop_front();
        }
        self.waiting.push_back((until, flow, packet));
        self.credit = (self.credit + 1).min(ONE_OF * MOST_SAVED);
    }

    /// When the next burst may have ended.
    pub(super) fn timer(&self) -> Option<Instant> {
        self.waiting.front().map(|(until, ..)| *until)
    }

    /// Makes those due whose time has come, as far as the credit reaches.
    pub(super) fn expire(&mut self, now: Instant) {
        while let Some((_, flow, packet)) = self.waiting.pop_front_if(|(until, ..)| *until <= now) {
            if let Some(credit) = self.credit.checked_sub(ONE_OF) {
                self.credit = credit;
                // It may wait for long where the rate does not admit it.
                self.due.push_back((flow, packet.with_own_buffer()));
            }
        }
    }

    /// The next ACK that leaves once more, and its flow.
    pub(super) fn pop(&mut self) -> Option<(usize, Packet)> {
        self.due.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::LinkType;
    use alloc::vec;
    use alloc::vec::Vec;
    use bytes::Bytes;

    fn note(acks: &mut LastAcks, flow: usize, millis: u64) {
        let packet = Packet::truncated(LinkType::Ip, Bytes::new(), flow as u32);
        acks.follow(flow);
        acks.note(flow, packet, Instant::from_millis(millis));
    }

    /// ACKs of these flows, one in each millisecond, and credit for all.
    fn acks(flows: impl IntoIterator<Item = usize>) -> LastAcks {
        let mut acks = LastAcks { credit: ONE_OF * MOST_SAVED, ..LastAcks::default() };
        for (number, flow) in (10..).zip(flows) {
            note(&mut acks, flow, number);
        }
        acks
    }

    fn due_at(acks: &mut LastAcks, millis: u64) -> Vec<usize> {
        acks.expire(Instant::from_millis(millis));
        core::iter::from_fn(|| acks.pop()).map(|(flow, _)| flow).collect()
    }

    #[test]
    fn of_each_flow_the_last_one_leaves_once_more_when_nothing_has_followed() {
        let mut acks = acks([1, 2, 1, 3]);
        acks.follow(3);
        assert_eq!(acks.timer(), Some(Instant::from_millis(11)));
        assert!(due_at(&mut acks, 10).is_empty());
        assert_eq!((due_at(&mut acks, 12), due_at(&mut acks, 20)), (vec![2, 1], vec![]));
        assert_eq!(acks.timer(), None);
    }

    #[test]
    fn what_is_due_and_followed_leaves_no_more() {
        let mut acks = acks([1, 2]);
        acks.expire(Instant::from_millis(20));
        acks.follow(1);
        assert_eq!(due_at(&mut acks, 20), [2]);
    }

    #[test]
    fn the_oldest_makes_room() {
        let mut acks = acks(0..MOST + 2);
        assert_eq!(acks.waiting.len(), MOST);
        assert_eq!(due_at(&mut acks, 1_000), (2..2 + MOST_SAVED as usize).collect::<Vec<_>>());
    }

    #[test]
    fn of_eight_acks_one_leaves_once_more_at_most() {
        let mut acks = LastAcks::default();
        let copies = (0..800).filter(|&number| {
            note(&mut acks, number as usize % 2, number);
            !due_at(&mut acks, number).is_empty()
        });
        assert_eq!(copies.count(), 100);
    }
}
