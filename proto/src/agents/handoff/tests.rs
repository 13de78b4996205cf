//! Stations on a backbone that loses, delays and repeats messages.

use super::mobile::{CLAIM_AGAIN, CLAIMS};
use super::*;
use crate::agents::plain::Plain;
use crate::forwarder::EgressLimits;
use crate::packet::LinkType;
use crate::wire::build::SegmentBuilder;
use crate::wire::seq::SeqNumber;
use crate::wire::tcp::Flags;
use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec;

const KEY: Key = Key([7; 32]);
const SERVER: ([u8; 4], u16) = ([10, 0, 0, 1], 80);
const MOBILE: ([u8; 4], u16) = ([10, 0, 1, 2], 5000);
const ROUND_TRIP: Duration = Duration::from_millis(4);
/// Longer than all claims take.
const CLAIM_TIME: Duration = Duration::from_millis(150);

fn mobile() -> Mobile {
    crate::wire::flow::Endpoint::from(MOBILE).address
}

/// Segment number `number` of 100 bytes.
fn data(number: u32) -> Packet {
    SegmentBuilder::new(SERVER, MOBILE)
        .seq(SeqNumber(number * 100))
        .ack(SeqNumber(1))
        .flags(Flags::ACK)
        .payload(&[number as u8; 100])
        .build(LinkType::Ip)
}

/// The mobile has all segments below `number`.
fn ack(number: u32) -> Packet {
    SegmentBuilder::new(MOBILE, SERVER)
        .seq(SeqNumber(1))
        .ack(SeqNumber(number * 100))
        .flags(Flags::ACK)
        .build(LinkType::Ip)
}

/// Stations 1, 2, … and the messages between them, which take no time.
struct Backbone {
    now: Instant,
    stations: Vec<Handoff>,
    /// Messages so far, and the numbers of those that are lost.
    sent: usize,
    lost: BTreeSet<usize>,
    /// All messages but hellos.
    messages: Vec<Vec<u8>>,
    /// The numbers of the segments that each station has forwarded from its buffer or for another
    /// one, and whether the sender had retransmitted them.
    arrivals: Vec<Vec<(u32, bool)>>,
    left: Vec<u32>,
    round_trips: Vec<Duration>,
    counted: BTreeMap<&'static str, u64>,
}

impl Backbone {
    /// Stations that know each other.
    fn new(count: u32) -> Self {
        let mut backbone = Self::of(count);
        backbone.wait(Duration::from_secs(2));
        for station in &backbone.stations {
            assert_eq!(station.peers(), count as usize - 1);
        }
        backbone.sent = 0;
        backbone
    }

    fn of(count: u32) -> Self {
        let station = |number| Handoff::new(StationId(number), 1_000, KEY);
        Self {
            now: Instant::ZERO,
            stations: (1..=count).map(station).collect(),
            sent: 0,
            lost: BTreeSet::new(),
            messages: Vec::new(),
            arrivals: vec![Vec::new(); count as usize],
            left: vec![0; count as usize],
            round_trips: Vec::new(),
            counted: BTreeMap::new(),
        }
    }

    /// The station that serves the mobile has sent it segments 0 to 9, and it has acknowledged 3.
    fn serving(count: u32) -> Self {
        let mut backbone = Self::new(count);
        backbone.attach(0);
        backbone.wait(CLAIM_TIME);
        for number in 0..10 {
            assert_eq!(backbone.wired(0, number), Way::Onward);
        }
        backbone.air(0, 3);
        backbone.sent = 0;
        backbone.messages.clear();
        backbone
    }

    fn wait(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            self.deliver();
            let next = self.stations.iter().map(Handoff::poll_timeout).min().unwrap();
            if next > end {
                break;
            }
            self.now = self.now.max(next);
            for station in &mut self.stations {
                station.handle_timeout(self.now);
            }
        }
        self.now = end;
    }

    fn deliver(&mut self) {
        loop {
            let mut all = Vec::new();
            for (index, station) in self.stations.iter_mut().enumerate() {
                while let Some(output) = station.poll_output() {
                    match output {
                        Output::Message(to, message) => all.push((index, to, message)),
                        Output::Arrival { packet, is_resent } => {
                            let number = Segment::parse(&packet).unwrap().seq.0 / 100;
                            assert_eq!(packet, data(number));
                            self.arrivals[index].push((number, is_resent));
                        }
                        Output::Left(host) => {
                            assert_eq!(host, mobile());
                            self.left[index] += 1;
                        }
                        Output::RoundTrip(sample) => self.round_trips.push(sample),
                    }
                }
                while let Some(event) = station.poll_event() {
                    *self.counted.entry(event.counter()).or_default() += 1;
                }
            }
            if all.is_empty() {
                return;
            }
            for (from, to, message) in all {
                self.send(from, to, &message);
            }
        }
    }

    fn send(&mut self, from: usize, to: To, message: &[u8]) {
        let is_hello = matches!(message::open(&KEY, message), Ok((_, Body::Hello(_))));
        if !is_hello {
            self.messages.push(message.to_vec());
            self.sent += 1;
            if self.lost.contains(&(self.sent - 1)) {
                return;
            }
        }
        for (index, station) in self.stations.iter_mut().enumerate() {
            let number = StationId(index as u32 + 1);
            if index != from && (to == To::Group || to == To::Station(number)) {
                station.handle_message(self.now, message, &|_| Some(ROUND_TRIP));
            }
        }
    }

    fn wired(&mut self, station: usize, number: u32) -> Way {
        let way = self.stations[station].handle_packet(self.now, Port::Wired, &data(number));
        self.deliver();
        way
    }

    fn air(&mut self, station: usize, acked: u32) {
        let way = self.stations[station].handle_packet(self.now, Port::Air, &ack(acked));
        assert_eq!(way, Way::Onward);
        self.deliver();
    }

    fn approach(&mut self, station: usize) {
        self.stations[station].mobile_approaches(self.now, mobile());
        self.deliver();
    }

    fn attach(&mut self, station: usize) {
        self.stations[station].mobile_attached(self.now, mobile());
        self.deliver();
    }

    fn serves(&self) -> Vec<bool> {
        self.stations.iter().map(|station| station.serves(&mobile())).collect()
    }

    fn arrived(&self, station: usize) -> Vec<u32> {
        self.arrivals[station].iter().map(|(number, _)| *number).collect()
    }

    fn counter(&self, name: &str) -> u64 {
        self.counted.get(name).copied().unwrap_or(0)
    }
}

#[test]
fn what_waits_for_a_mobile_that_has_left_is_dropped() {
    let limits = EgressLimits { air: 10, wired: 10 };
    let mut forwarder = Forwarder::new(Box::new(Plain), limits);
    let other = SegmentBuilder::new(SERVER, ([10, 0, 1, 3], 5000)).payload(&[7; 100]);
    for packet in [data(1), other.build(LinkType::Ip), data(2)] {
        forwarder.handle_packet(Instant::ZERO, Port::Wired, packet);
    }
    assert!(Output::Left(mobile()).apply(Instant::ZERO, &mut forwarder).is_none());
    let leaves = core::iter::from_fn(|| forwarder.poll_transmit(Instant::ZERO, Port::Air));
    assert_eq!(leaves.collect::<Vec<_>>(), [other.build(LinkType::Ip)]);
}

// [S0-45] Nearby stations fill their caches without forwarding; at the handoff the state comes and
// the new station forwards at once what the mobile lacks.
#[test]
fn a_primed_station_forwards_at_once_what_the_mobile_lacks() {
    let mut backbone = Backbone::serving(2);
    backbone.approach(1);
    for number in 10..15 {
        backbone.wired(0, number);
    }
    assert!(backbone.arrivals[1].is_empty());
    backbone.air(0, 6);
    let before = backbone.now;
    backbone.attach(1);
    assert_eq!(backbone.now, before, "at once");
    assert_eq!(backbone.arrived(1), (6..15).collect::<Vec<_>>());
    assert_eq!((backbone.serves(), &backbone.left), (vec![false, true], &vec![1, 0]));
    assert_eq!(backbone.round_trips, [ROUND_TRIP]);
    // Behind the handoff the old station relays what is still on its way to it.
    assert_eq!(backbone.wired(0, 15), Way::Kept);
    assert_eq!(backbone.wired(1, 16), Way::Onward);
    assert_eq!(backbone.arrived(1).last(), Some(&15));
    assert_eq!(backbone.counter("handoff_packets_released"), 9);
    assert_eq!(backbone.counter("handoff_packets_relayed"), 1);
}

#[test]
fn a_station_that_was_not_primed_gets_the_packets_with_the_state() {
    let mut backbone = Backbone::serving(3);
    backbone.attach(2);
    assert_eq!(backbone.arrived(2), (3..10).collect::<Vec<_>>());
    assert_eq!(backbone.serves(), [false, false, true]);
    assert!(backbone.arrivals[1].is_empty());
}

#[test]
fn a_mobile_that_comes_for_the_first_time_waits_for_nobody() {
    let mut backbone = Backbone::new(2);
    backbone.attach(0);
    assert_eq!(backbone.wired(0, 0), Way::Onward);
    backbone.wait(CLAIM_TIME);
    assert_eq!(backbone.wired(0, 1), Way::Onward);
    assert_eq!(backbone.counter("handoffs_without_state"), 1);
}

#[test]
fn a_station_without_others_does_nothing() {
    let mut alone = Backbone::of(1);
    alone.wait(Duration::from_secs(2));
    alone.attach(0);
    assert_eq!(alone.wired(0, 0), Way::Onward);
    assert!(alone.messages.is_empty() && alone.counted.is_empty());
}

#[test]
fn what_the_sender_retransmitted_is_marked() {
    let mut backbone = Backbone::serving(2);
    backbone.wired(0, 5);
    backbone.approach(1);
    backbone.wired(0, 7);
    backbone.attach(1);
    let marked = backbone.arrivals[1].iter().filter(|(_, resent)| *resent);
    assert_eq!(marked.map(|(number, _)| *number).collect::<Vec<_>>(), [5, 7]);
    assert_eq!(backbone.arrived(1), (3..10).collect::<Vec<_>>(), "each once");
}

#[test]
fn packets_that_come_over_the_new_route_wait_for_the_state() {
    let mut backbone = Backbone::serving(2);
    backbone.approach(1);
    assert_eq!(backbone.wired(1, 10), Way::Kept, "the mobile is not here yet");
    backbone.lost = (backbone.sent..backbone.sent + 1).collect();
    backbone.attach(1);
    assert_eq!(backbone.wired(1, 11), Way::Kept, "the claim was lost");
    backbone.wait(CLAIM_TIME);
    assert_eq!(backbone.arrived(1), (3..12).collect::<Vec<_>>());
    assert_eq!(backbone.wired(1, 12), Way::Onward);
}

/// Where the kernel forwards, nothing can be kept back, and nothing should come twice.
#[test]
fn what_the_kernel_has_forwarded_to_the_mobile_is_not_forwarded_again() {
    let mut backbone = Backbone::serving(2);
    backbone.approach(1);
    let copy = |backbone: &mut Backbone, station: usize, number| {
        backbone.stations[station].handle_copy(backbone.now, Port::Wired, &data(number));
        backbone.deliver();
    };
    copy(&mut backbone, 1, 10); // The mobile is not here yet.
    backbone.lost = (backbone.sent..backbone.sent + 1).collect();
    backbone.attach(1);
    copy(&mut backbone, 1, 11);
    backbone.wait(CLAIM_TIME);
    assert_eq!(backbone.arrived(1), (3..11).collect::<Vec<_>>());
    copy(&mut backbone, 0, 12);
    assert_eq!(backbone.arrived(1).last(), Some(&12), "relayed");
}

#[test]
fn a_super_packet_crosses_the_backbone_in_segments() {
    let mut backbone = Backbone::serving(2);
    backbone.approach(1);
    let mut payload = vec![10; 100];
    payload.extend([11; 100]);
    let whole = SegmentBuilder::new(SERVER, MOBILE)
        .seq(SeqNumber(1_000))
        .ack(SeqNumber(1))
        .flags(Flags::ACK)
        .payload(&payload)
        .build(LinkType::Ip)
        .with_segment_size(core::num::NonZeroU16::new(100));
    backbone.stations[0].handle_copy(backbone.now, Port::Wired, &whole);
    backbone.deliver();
    assert_eq!(backbone.counter("handoff_packets_primed"), 7 + 2);
    assert_eq!(backbone.stations[1].mobiles[&mobile()].buffer.unacknowledged().count(), 7 + 2);
}

#[test]
fn a_station_that_the_mobile_does_not_come_to_forgets_it() {
    let mut backbone = Backbone::serving(2);
    backbone.approach(1);
    backbone.stations[1].mobile_recedes(mobile());
    backbone.deliver();
    let sent = backbone.sent;
    backbone.wired(0, 10);
    assert_eq!(backbone.sent, sent, "no copies any more");
    backbone.approach(1);
    backbone.lost = (0..1_000).collect();
    backbone.wait(Duration::from_secs(4));
    let sent = backbone.sent;
    backbone.wired(0, 11);
    assert_eq!(backbone.sent, sent, "it has not asked for so long");
}

#[test]
fn a_mobile_goes_and_comes_back_as_often_as_it_likes() {
    let mut backbone = Backbone::serving(3);
    let mut next = 10;
    for station in [1, 2, 0, 2, 1, 0, 1] {
        backbone.attach(station);
        backbone.wait(Duration::from_millis(1));
        let is_here = |index| index == station;
        assert_eq!(backbone.serves(), (0..3).map(is_here).collect::<Vec<_>>());
        for _ in 0..3 {
            assert_eq!(backbone.wired(station, next), Way::Onward);
            next += 1;
        }
    }
    assert_eq!(backbone.counter("handoffs_completed"), 7);
}

/// The first hellos come late, or no claim arrives: both stations serve the mobile, until one hears
/// it again.
#[test]
fn stations_that_could_not_tell_each_other_do_so_later() {
    let mut late = Backbone::of(2);
    late.attach(0);
    late.attach(1);
    late.wait(Duration::from_secs(2));
    let mut cut_off = Backbone::serving(2);
    cut_off.lost = (0..CLAIMS as usize).collect();
    cut_off.attach(1);
    cut_off.wait(CLAIM_AGAIN + CLAIM_TIME);
    assert_eq!(cut_off.counter("handoffs_without_state"), 2, "the first host had no state either");
    for mut backbone in [late, cut_off] {
        assert_eq!(backbone.serves(), [true, true]);
        for station in [1, 0, 1] {
            backbone.attach(station);
            assert_eq!(backbone.serves(), [station == 0, station == 1]);
        }
        assert_eq!(backbone.counter("handoffs_completed"), 3);
        assert_eq!(backbone.counter("handoffs_away"), 3);
    }
}

/// A host that was nowhere else is claimed now and then, and none of its packets waits for that.
#[test]
fn a_host_that_nobody_knows_is_seldom_claimed() {
    let mut backbone = Backbone::serving(2);
    for millis in 0..60_000 {
        backbone.attach(0);
        if millis % 10 == 0 {
            assert_eq!(backbone.wired(0, 10 + millis / 10), Way::Onward);
        }
        backbone.wait(Duration::from_millis(1));
    }
    assert!(backbone.messages.len() <= 2 * CLAIMS as usize, "{}", backbone.messages.len());
    assert!(backbone.arrivals[0].is_empty(), "{:?}", backbone.arrivals[0]);
}

#[test]
fn a_late_claim_does_not_take_the_mobile_away() {
    let mut backbone = Backbone::serving(2);
    backbone.lost = (0..1).collect();
    backbone.attach(1);
    let late = backbone.messages[0].clone();
    backbone.wait(CLAIM_TIME);
    backbone.attach(0);
    assert_eq!(backbone.serves(), [true, false]);
    let stale = backbone.counter("handoff_stale_claims");
    backbone.send(1, To::Group, &late);
    backbone.deliver();
    assert_eq!(backbone.serves(), [true, false]);
    assert_eq!(backbone.wired(0, 10), Way::Onward);
    assert_eq!(backbone.counter("handoff_stale_claims"), stale + 1);
}

/// Every message of a handoff is lost, in every combination: the mobile is served where it is, and
/// no packet is kept for ever.
#[test]
fn any_messages_may_be_lost() {
    const MESSAGES: usize = 11;
    for pattern in 0..1_u32 << MESSAGES {
        let mut backbone = Backbone::serving(2);
        backbone.lost = (0..MESSAGES).filter(|bit| pattern >> bit & 1 != 0).collect();
        backbone.approach(1);
        backbone.wired(0, 10);
        backbone.attach(1);
        let held = backbone.wired(1, 11);
        backbone.wait(CLAIM_TIME);
        assert!(backbone.serves()[1], "pattern {pattern:#b}");
        assert_eq!(backbone.wired(1, 12), Way::Onward, "pattern {pattern:#b}");
        let arrived = backbone.arrived(1);
        assert!(held == Way::Onward || arrived.contains(&11), "pattern {pattern:#b}");
        assert!(arrived.is_sorted_by(|a, b| a < b), "pattern {pattern:#b}: {arrived:?}");
        assert!(backbone.sent < 2 * MESSAGES + 10, "pattern {pattern:#b}: {}", backbone.sent);
        // The old station keeps nothing for ever either.
        backbone.wait(RELAY * 2);
        let first = backbone.wired(0, 13);
        assert!(first == Way::Onward, "pattern {pattern:#b}");
    }
}

/// [S0-07] Each message of a handoff comes again, at once and later, in every station: nothing
/// changes, and it is counted.
#[test]
fn a_replayed_message_changes_nothing_and_is_counted() {
    let mut backbone = Backbone::serving(3);
    backbone.approach(1);
    backbone.wired(0, 10);
    backbone.attach(1);
    backbone.wired(0, 11);
    let before = (backbone.arrivals.clone(), backbone.serves(), backbone.sent);
    let messages = backbone.messages.clone();
    assert!(messages.len() >= 10, "{}", messages.len());
    for message in &messages {
        let (header, _) = message::open(&KEY, message).unwrap();
        let replayed = backbone.counter("handoff_messages_replayed");
        let receivers = match header.to {
            To::Group => 2,
            To::Station(_) => 1,
        };
        for station in &mut backbone.stations {
            station.handle_message(backbone.now, message, &|_| None);
        }
        backbone.deliver();
        assert_eq!(backbone.counter("handoff_messages_replayed"), replayed + receivers);
    }
    assert_eq!((backbone.arrivals.clone(), backbone.serves(), backbone.sent), before);
    // A station that has restarted knows no message of before.
    backbone.stations[1] = Handoff::new(StationId(2), 1_001, KEY);
    backbone.wait(Duration::from_secs(2));
    assert_eq!(backbone.stations[1].peers(), 2);
    for message in &messages {
        backbone.stations[1].handle_message(backbone.now, message, &|_| None);
    }
    backbone.deliver();
    assert!(!backbone.serves()[1] && backbone.arrivals[1].len() == before.0[1].len());
}

#[test]
fn a_forged_message_changes_nothing_and_is_counted() {
    let mut backbone = Backbone::serving(2);
    let header =
        Header { from: StationId(2), to: To::Group, epoch: 1_000, counter: u64::from(u32::MAX) };
    let forged = message::seal(&Key([8; 32]), &header, &Body::Claim(mobile(), 99));
    let mut changed = message::seal(&KEY, &header, &Body::Claim(mobile(), 99));
    changed[30] ^= 1;
    for message in [&forged[..], &changed, &[], &[1], &[1; 43], &[1; 44], &[2; 100]] {
        backbone.stations[0].handle_message(backbone.now, message, &|_| None);
    }
    backbone.deliver();
    assert_eq!(backbone.serves(), [true, false]);
    assert_eq!(backbone.sent, 0);
    let counted = ["forged", "malformed", "version"]
        .map(|kind| backbone.counter(&alloc::format!("handoff_messages_{kind}")));
    assert_eq!(counted, [3, 3, 1]);
}

#[test]
fn mobiles_are_bounded() {
    let mut backbone = Backbone::new(2);
    for number in 0..2 * MAX_MOBILES as u128 {
        backbone.now += Duration::from_micros(1);
        backbone.stations[0].mobile_attached(backbone.now, number.to_be_bytes());
        assert!(backbone.stations[0].mobiles.len() <= MAX_MOBILES);
        assert!(backbone.stations[0].serves(&number.to_be_bytes()));
    }
}

#[test]
fn invented_hosts_do_not_take_the_place_of_one_with_packets() {
    let mut backbone = Backbone::serving(2);
    for number in 0..2 * MAX_MOBILES as u128 {
        backbone.now += Duration::from_micros(1);
        backbone.stations[0].mobile_attached(backbone.now, number.to_be_bytes());
    }
    assert!(backbone.stations[0].serves(&mobile()));
}
