//! The time that the agent may work before others' packets are looked at.
//!
//! A turn takes all that has come in the order in which it crossed. Where the agent's work on it
//! takes longer than a turn may, the packets of those mobile hosts that have used more than their
//! share of the turn wait for the next one, and everybody else's are handled before them. What
//! waits has a queue for each mobile host: one that once has used more than its share is not kept
//! behind the packets of those that always do. If too many wait, the oldest of the host with the
//! most do without the agent.

use super::arrival::{Arrival, Kind};
use airmend_proto::wire::flow::FlowKey;
use airmend_proto::wire::tcp::Segment;
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

/// The time on a CPU that a turn may take, of which each mobile host has an equal share. With what
/// is read and put aside, nobody else's ACK waits longer than 5 ms.
const TURN: Duration = Duration::from_millis(3);
/// A turn that is shorter than this needs no account.
const SHORT: Duration = Duration::from_micros(500);
/// Packets that wait at most, and the bytes that they keep in memory.
const POSTPONED: usize = 2048;
const POSTPONED_BYTES: usize = 16 << 20;

/// The address of a mobile host, IPv6 or IPv4-mapped.
pub(super) type Mobile = [u8; 16];

/// The account of a turn, and the packets that wait for the next one.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// When the turn began, of `CLOCK_MONOTONIC`.
    begun: Duration,
    /// The thread's time on a CPU that has been accounted for; `None` while the turn is short.
    accounted: Option<Duration>,
    /// Of this turn, of everybody.
    used: Duration,
    mobiles: HashMap<Mobile, Duration>,
    /// What waits, by mobile host; no queue is empty.
    postponed: HashMap<Mobile, VecDeque<Arrival>>,
    /// The mobile hosts for which something waits: the first one is next.
    order: VecDeque<Mobile>,
    postponed_packets: usize,
    postponed_bytes: usize,
}

impl Pace {
    /// A turn begins; `now` is of `CLOCK_MONOTONIC`.
    pub(super) fn begin(&mut self, now: Duration) {
        self.begun = now;
        self.accounted = None;
        self.used = Duration::ZERO;
        self.mobiles.clear();
    }

    /// Whether the turn is so long that it must be accounted for. `cpu` is the thread's time on a
    /// CPU.
    pub(super) fn is_long(&mut self, now: Duration, cpu: impl FnOnce() -> Duration) -> bool {
        let is_long = self.has_postponed() || now.saturating_sub(self.begun) >= SHORT;
        if is_long && self.accounted.is_none() {
            self.accounted = Some(cpu());
        }
        is_long
    }

    /// Whether a packet of this mobile host is handled now. In one host's order, what waits comes
    /// first.
    pub(super) fn admits(&self, mobile: &Mobile) -> bool {
        !self.postponed.contains_key(mobile) && (!self.is_over() || self.has_share(mobile))
    }

    /// Whether a mobile host has used no more than its share of the turn.
    fn has_share(&self, mobile: &Mobile) -> bool {
        let used = self.mobiles.get(mobile).copied().unwrap_or_default();
        used * self.mobiles.len().max(self.order.len()) as u32 <= TURN
    }

    /// Charges the time since the last call to a mobile host.
    pub(super) fn charge(&mut self, mobile: Mobile, cpu: Duration) {
        let since = cpu.saturating_sub(self.accounted.replace(cpu).unwrap_or(cpu));
        self.used += since;
        *self.mobiles.entry(mobile).or_default() += since;
    }

    /// Keeps a packet for the next turn. Returns one that has waited if there are too many: the
    /// oldest of the mobile host for which the most wait.
    pub(super) fn postpone(&mut self, mobile: Mobile, arrival: Arrival) -> Option<Arrival> {
        self.postponed_packets += 1;
        self.postponed_bytes += arrival.packet.bytes().len();
        let queue = self.postponed.entry(mobile).or_default();
        if queue.is_empty() {
            self.order.push_back(mobile);
        }
        queue.push_back(arrival);
        if self.postponed_packets <= POSTPONED && self.postponed_bytes <= POSTPONED_BYTES {
            return None;
        }
        let most = self.postponed.iter().max_by_key(|(_, queue)| queue.len());
        let most = most.map(|(mobile, _)| *mobile)?;
        let oldest = self.take_oldest(&most);
        if !self.postponed.contains_key(&most) {
            self.order.retain(|mobile| *mobile != most);
        }
        oldest
    }

    /// The next packet that waited; none when the turn is over. Whoever has a share left comes
    /// first, one after the other.
    pub(super) fn next_postponed(&mut self) -> Option<(Mobile, Arrival)> {
        if self.is_over() {
            return None;
        }
        for _ in 0..self.order.len() {
            if self.order.front().is_some_and(|next| self.has_share(next)) {
                break;
            }
            self.order.rotate_left(1);
        }
        self.take_next()
    }

    /// The next packet that waits.
    pub(super) fn take_next(&mut self) -> Option<(Mobile, Arrival)> {
        let mobile = *self.order.front()?;
        let arrival = self.take_oldest(&mobile)?;
        if !self.postponed.contains_key(&mobile) {
            self.order.pop_front();
        }
        Some((mobile, arrival))
    }

    /// Its place in `order` is left to the caller.
    fn take_oldest(&mut self, mobile: &Mobile) -> Option<Arrival> {
        let queue = self.postponed.get_mut(mobile)?;
        let arrival = queue.pop_front()?;
        if queue.is_empty() {
            self.postponed.remove(mobile);
        }
        self.postponed_packets -= 1;
        self.postponed_bytes -= arrival.packet.bytes().len();
        Some(arrival)
    }

    /// Whether packets wait for the next turn.
    pub(super) fn has_postponed(&self) -> bool {
        !self.order.is_empty()
    }

    /// Whether the time of the turn is used up.
    pub(super) fn is_over(&self) -> bool {
        self.used >= TURN
    }
}

/// The mobile host to which the work on a packet is charged. A repair's departure is little work,
/// and belongs before all that follows it.
pub(super) fn mobile(arrival: &Arrival) -> Option<Mobile> {
    if arrival.kind == Kind::Repair {
        return None;
    }
    let segment = Segment::parse(&arrival.packet).ok()?;
    Some(FlowKey::of(&segment, arrival.kind.from()).air.address)
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmend_proto::wire::build::SegmentBuilder;
    use airmend_proto::{Instant, LinkType};

    fn ack(number: u8, millis: u64) -> Arrival {
        let packet = SegmentBuilder::new(([10, 0, 1, number], 5000), ([10, 0, 0, 1], 80))
            .build(LinkType::Ethernet);
        let at = Instant::from_millis(millis);
        Arrival { at, kind: Kind::Diverted, packet, damaged: false, has_gap: false }
    }

    fn address(number: u8) -> Mobile {
        mobile(&ack(number, 0)).unwrap()
    }

    /// A turn in which each of these mobile hosts has used so many milliseconds.
    fn turn(used: &[(u8, u64)]) -> Pace {
        let mut pace = Pace::default();
        pace.begin(Duration::ZERO);
        let mut cpu = Duration::from_secs(7);
        assert!(!pace.is_long(SHORT / 2, || cpu), "no account");
        assert!(pace.is_long(SHORT, || cpu));
        for (number, millis) in used {
            cpu += Duration::from_millis(*millis);
            pace.charge(address(*number), cpu);
        }
        pace
    }

    #[test]
    fn whoever_has_used_more_than_a_share_waits_and_nobody_else() {
        let pace = turn(&[(1, 2), (2, 0)]);
        assert!(pace.admits(&address(1)), "there is time");
        let pace = turn(&[(1, 3), (2, 0)]);
        assert!(!pace.admits(&address(1)));
        assert!(pace.admits(&address(2)) && pace.admits(&address(3)));
        let hogs: Vec<_> = (1..=10).map(|number| (number, 1)).collect();
        let pace = turn(&hogs);
        assert!(hogs.iter().all(|(number, _)| !pace.admits(&address(*number))));
        assert!(pace.admits(&address(11)));
    }

    #[test]
    fn one_host_keeps_its_order() {
        let mut pace = turn(&[(1, 9)]);
        for millis in 0..3 {
            assert!(pace.postpone(address(1), ack(1, millis)).is_none());
        }
        assert!(pace.next_postponed().is_none(), "the turn is over");
        pace.begin(Duration::ZERO);
        assert!(pace.is_long(Duration::ZERO, || Duration::ZERO), "somebody waits");
        assert!(!pace.admits(&address(1)), "behind what waits");
        assert!(pace.admits(&address(2)));
        for millis in 0..3 {
            let (whose, arrival) = pace.next_postponed().unwrap();
            assert_eq!((whose, arrival.at), (address(1), Instant::from_millis(millis)));
        }
        assert!(pace.admits(&address(1)) && !pace.has_postponed());
    }

    /// One that has used too much once is not kept behind one that always does.
    #[test]
    fn nobody_waits_behind_a_hog() {
        let mut pace = turn(&[(1, 9), (2, 3)]);
        for millis in 0..100 {
            assert!(pace.postpone(address(1), ack(1, millis)).is_none());
        }
        assert!(!pace.admits(&address(2)), "more than its share");
        for millis in 0..5 {
            assert!(pace.postpone(address(2), ack(2, millis)).is_none());
        }
        pace.begin(Duration::ZERO);
        let mut cpu = Duration::ZERO;
        assert!(pace.is_long(Duration::ZERO, || cpu));
        let mut handled = Vec::new();
        while let Some((whose, _)) = pace.next_postponed() {
            cpu += Duration::from_micros(if whose == address(1) { 500 } else { 10 });
            pace.charge(whose, cpu);
            handled.push(whose);
        }
        assert_eq!(handled.iter().filter(|whose| **whose == address(2)).count(), 5);
        assert!(pace.admits(&address(2)) && !pace.admits(&address(1)));
    }

    #[test]
    fn not_too_many_wait() {
        let mut pace = turn(&[(1, 9), (2, 9)]);
        assert!(pace.postpone(address(2), ack(2, 0)).is_none());
        let oldest: Vec<_> = (1..POSTPONED as u64 + 2)
            .filter_map(|n| pace.postpone(address(1), ack(1, n)))
            .collect();
        let times: Vec<_> = oldest.iter().map(|arrival| arrival.at).collect();
        assert_eq!(times, [1, 2].map(Instant::from_millis), "of the host with the most");
        while pace.take_next().is_some() {}
        assert_eq!((pace.postponed_bytes, pace.postponed_packets), (0, 0));
        assert!(pace.postponed.is_empty() && !pace.has_postponed());
    }
}
