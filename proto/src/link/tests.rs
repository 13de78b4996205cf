//! The link by itself: exact times, the queue's bound, and conservation of frames.

use super::*;
use crate::packet::LinkType;
use alloc::vec::Vec;
use bytes::Bytes;
use proptest::prelude::*;

const FREE: LinkParams = LinkParams {
    rate_bps: 20_000_000,
    delay: Duration::from_millis(2),
    queue_frames: 100,
    lookahead: Duration::ZERO,
};

fn link(params: LinkParams) -> Link {
    Link::new(params, ErrorModel::None.process(1, 0, 0))
}

/// A frame of `bytes` bytes on the wire, of which none is at hand.
fn frame(bytes: u32) -> Packet {
    Packet::truncated(LinkType::Ip, Bytes::new(), bytes)
}

#[test]
fn the_one_way_delay_is_airtime_and_propagation() {
    let mut link = link(FREE);
    assert!(link.send(Instant::from_millis(5), frame(1500)));
    let arrival = Instant::from_micros(5_000 + 600 + 2_000);
    assert_eq!(link.next_delivery(), Some(arrival));
    assert!(link.poll_delivery(Instant::from_nanos(arrival.as_nanos() - 1)).is_none());
    let delivery = link.poll_delivery(arrival).unwrap();
    assert_eq!((delivery.at, delivery.packet.wire_len()), (arrival, 1500));
    assert!(link.poll_delivery(arrival).is_none());
}

#[test]
fn the_rate_is_exact_in_the_long_run() {
    for rate_bps in [3_000_000, 1_600_000, 7_777_777, 999_983, 1_000_000_007, 1] {
        let mut link = link(LinkParams { rate_bps, ..FREE });
        let mut bits = 0;
        for number in 0..100_000u32 {
            let now = link.free_at();
            let packet = frame([40, 1500, 577][number as usize % 3]);
            bits += packet.wire_bits();
            assert!(link.send(now, packet));
            while link.poll_delivery(now).is_some() {}
        }
        let exact = u128::from(bits) * 1_000_000_000 / u128::from(rate_bps);
        assert_eq!(u128::from(link.free_at().as_nanos()), exact, "{rate_bps} bit/s");
        assert_eq!(link.counters().busy.as_nanos(), exact);
    }
}

#[test]
fn fractions_of_a_nanosecond_do_not_outlive_a_busy_period() {
    // 8 bits take 2666.67 ns at 3 Mb/s: the third of three in a row takes the fractions.
    let ends = |starts: [Option<u64>; 3]| {
        let mut link = link(LinkParams { rate_bps: 3_000_000, ..FREE });
        starts.map(|start| {
            let start = start.map_or(link.free_at(), Instant::from_nanos);
            assert!(link.send(start, frame(1)));
            link.free_at().as_nanos()
        })
    };
    assert_eq!(ends([None; 3]), [2_666, 5_333, 8_000]);
    assert_eq!(ends([Some(0), Some(10_000), Some(20_000)]), [2_666, 12_666, 22_666]);
}

#[test]
fn a_full_queue_drops_and_counts() {
    let mut link = link(LinkParams { queue_frames: 3, ..FREE });
    let accepted = [0; 6].map(|_| link.send(Instant::ZERO, frame(1500)));
    // One is being serialised, three wait.
    assert_eq!(accepted, [true, true, true, true, false, false]);
    assert_eq!((link.counters().frames, link.counters().dropped), (4, 2));
    // As soon as the second frame leaves the queue, there is room for one.
    let second_starts = Instant::from_micros(600);
    assert!(!link.send(Instant::from_nanos(second_starts.as_nanos() - 1), frame(1500)));
    assert!(link.send(second_starts, frame(1500)));
    assert!(!link.send(second_starts, frame(1500)));
}

#[test]
fn without_a_queue_only_an_idle_serialiser_takes_a_frame() {
    let mut link = link(LinkParams { queue_frames: 0, ..FREE });
    assert!(link.send(Instant::ZERO, frame(1500)));
    assert!(!link.send(Instant::from_micros(599), frame(1500)));
    assert_eq!(link.free_at(), Instant::from_micros(600));
    assert!(link.send(Instant::from_micros(600), frame(1500)));
}

#[test]
fn the_lookahead_admits_a_backlog_but_no_more_than_the_queue_holds() {
    let burst = |queue_frames, lookahead| {
        let mut link = link(LinkParams { queue_frames, lookahead, ..FREE });
        let mut sent = 0;
        while link.can_send(Instant::ZERO) {
            assert!(link.send(Instant::ZERO, frame(1500)));
            sent += 1;
        }
        sent
    };
    assert_eq!(burst(100, Duration::ZERO), 1);
    assert_eq!(burst(100, Duration::from_micros(600)), 2);
    assert_eq!(burst(100, Duration::from_millis(6)), 11);
    assert_eq!(burst(3, Duration::from_millis(6)), 4);
}

#[test]
fn a_lost_frame_has_used_its_airtime() {
    for model in [ErrorModel::Loss(1.0), ErrorModel::Ber(1.0)] {
        let mut link = Link::new(FREE, model.process(1, 0, 0));
        assert!(link.send(Instant::ZERO, frame(1500)));
        assert_eq!(link.next_delivery(), None);
        assert_eq!(link.free_at(), Instant::from_micros(600));
        let counters = link.counters();
        assert_eq!(counters.busy, Duration::from_micros(600));
        assert_eq!((counters.frames, counters.bytes), (1, 1500));
        let hits = (counters.lost, counters.damaged);
        assert_eq!(hits, if model == ErrorModel::Loss(1.0) { (1, 0) } else { (0, 1) });
    }
}

#[test]
fn absurd_parameters_neither_panic_nor_fill_the_memory() {
    let absurd = LinkParams {
        rate_bps: 0,
        delay: Duration::MAX,
        queue_frames: usize::MAX,
        lookahead: Duration::MAX,
    };
    let mut slow = link(absurd);
    for _ in 0..10 {
        assert!(slow.send(Instant::ZERO, frame(u32::MAX)));
    }
    assert_eq!(slow.next_delivery(), Some(Instant::from_nanos(u64::MAX)));

    let mut fast = link(LinkParams { rate_bps: u64::MAX, ..absurd });
    for _ in 0..FRAME_LIMIT {
        assert!(fast.send(Instant::ZERO, frame(0)));
    }
    assert!(!fast.send(Instant::ZERO, frame(0)));
    assert_eq!(fast.counters().dropped, 1);
}

/// A base station, number 0, and three mobiles that lose nothing, everything, and nothing.
fn cell(queue_frames: usize) -> FullDuplex {
    let losses = [ErrorModel::None, ErrorModel::Loss(1.0), ErrorModel::None];
    let pairs = losses.into_iter().zip(1..).map(|(errors, mobile)| {
        let delay = Duration::from_millis(10 - 3 * mobile as u64);
        Pair::new([0, mobile], [delay; 2], [errors; 2], 1, mobile as u32)
    });
    FullDuplex::new([LinkParams { queue_frames, ..FREE }; 2], pairs.collect())
}

fn deliveries(medium: &mut dyn Medium) -> Vec<(Instant, usize, usize)> {
    let mut log = Vec::new();
    while let Some(now) = medium.poll_timeout() {
        match medium.poll(now) {
            Some(Output::Delivery { from, to, .. }) => log.push((now, from, to)),
            other => panic!("{other:?}"),
        }
    }
    log
}

#[test]
fn stations_of_one_side_share_its_link_and_have_paths_of_their_own() {
    let mut cell = cell(10);
    for mobile in 1..4 {
        assert!(cell.send(Instant::ZERO, 0, mobile, frame(1500)));
    }
    // 600 µs each; the third frame has the shortest way and is there first.
    let at = Instant::from_micros;
    let [first, third] = [at(600 + 7_000), at(1_800 + 1_000)];
    assert_eq!(deliveries(&mut cell), [(third, 0, 3), (first, 0, 1)]);
    assert_eq!([1, 2, 3].map(|mobile| cell.counters(0, mobile).lost), [0, 1, 0]);
    assert!(!cell.send(at(5_000), 1, 3, frame(1500)), "mobiles do not reach each other");
}

#[test]
fn stations_of_one_side_have_queues_of_their_own() {
    let mut cell = cell(2);
    let accepted = [1; 4].map(|mobile| cell.send(Instant::ZERO, mobile, 0, frame(1500)));
    // One is being serialised, two wait.
    assert_eq!(accepted, [true, true, true, false]);
    assert!(cell.send(Instant::ZERO, 3, 0, frame(1500)), "another queue");
    assert!(!cell.can_send(Instant::ZERO, 3) && cell.can_send(Instant::ZERO, 0));
    assert_eq!(cell.free_at(2), Some(Instant::from_micros(2_400)));
    assert_eq!((cell.counters(1, 0).dropped, cell.counters(3, 0).dropped), (1, 0));
    assert_eq!(deliveries(&mut cell).len(), 4);
}

#[derive(Clone, Debug)]
struct Step {
    wait: Duration,
    bytes: u32,
    /// Send only when the link says that it can.
    polite: bool,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let wait = prop_oneof![Just(0), 0..3_000_000u64].prop_map(Duration::from_nanos);
    let step = (wait, 0..2_000u32, any::<bool>());
    let step = step.prop_map(|(wait, bytes, polite)| Step { wait, bytes, polite });
    proptest::collection::vec(step, 1..300)
}

fn model() -> impl Strategy<Value = ErrorModel> {
    let ms = |range: core::ops::Range<u64>| range.prop_map(Duration::from_millis);
    prop_oneof![
        Just(ErrorModel::None),
        (0.0..=1.0).prop_map(ErrorModel::Loss),
        (0.0..1e-3).prop_map(ErrorModel::Ber),
        (1..9u32, 1..99_999u64)
            .prop_map(|(frames, every_bytes)| ErrorModel::Burst { frames, every_bytes }),
        (ms(1..99), ms(1..99), 0.0..=1.0, 0.0..1e-4).prop_map(|(good, bad, bad_loss, good_ber)| {
            ErrorModel::Fading { good, bad, bad_loss, good_ber }
        }),
    ]
}

proptest! {
    #[test]
    fn frames_arrive_in_order_in_time_and_none_vanishes(
        steps in steps(),
        model in model(),
        seed: u64,
        rate_bps in 100_000..1_000_000_000u64,
        delay_us in 0..50_000u64,
        queue_frames in 0..20usize,
        lookahead_us in 0..2_000u64,
    ) {
        let delay = Duration::from_micros(delay_us);
        let lookahead = Duration::from_micros(lookahead_us);
        let params = LinkParams { rate_bps, delay, queue_frames, lookahead };
        let mut link = Link::new(params, model.process(seed, 0, 0));
        let (mut now, mut sent_at, mut dropped) = (Instant::ZERO, Vec::new(), 0);
        let mut delivered = Vec::new();
        for step in &steps {
            now += step.wait;
            let can = link.can_send(now);
            prop_assert_eq!(can, link.free_at() <= now);
            if can || !step.polite {
                // The first bytes carry the frame's number.
                let number = Bytes::copy_from_slice(&(sent_at.len() as u32).to_be_bytes());
                let accepted = link.send(now, Packet::truncated(LinkType::Ip, number, step.bytes));
                prop_assert!(accepted || !can, "refused although it could send");
                if accepted { sent_at.push(now) } else { dropped += 1 }
            }
            while let Some(delivery) = link.poll_delivery(now) {
                prop_assert!(delivery.at <= now);
                delivered.push(delivery);
            }
        }
        while let Some(at) = link.next_delivery() {
            delivered.push(link.poll_delivery(at).unwrap());
        }
        let mut previous = None;
        for Delivery { at, packet } in &delivered {
            let number = u32::from_be_bytes(packet.bytes().try_into().unwrap()) as usize;
            prop_assert!(previous < Some((number, *at)), "out of order");
            prop_assert!(previous.is_none_or(|(_, earlier)| earlier <= *at));
            previous = Some((number, *at));
            let airtime = packet.wire_bits() * 1_000_000_000 / rate_bps;
            prop_assert!(*at >= sent_at[number] + Duration::from_nanos(airtime) + delay);
        }
        let counters = link.counters();
        prop_assert_eq!(counters.frames as usize, sent_at.len());
        prop_assert_eq!(counters.dropped, dropped);
        prop_assert_eq!(
            counters.frames,
            delivered.len() as u64 + counters.lost + counters.damaged
        );
    }
}

#[test]
fn what_comes_after_a_change_meets_the_new_conditions() {
    let pair = Pair::new([0, 1], [FREE.delay; 2], [ErrorModel::None; 2], 1, 0);
    let mut medium = FullDuplex::new([FREE; 2], vec![pair]);
    assert!(medium.send(Instant::ZERO, 0, 1, frame(1500)));
    let delay = Some(Duration::from_millis(7));
    let slow = Conditions { rate_bps: Some(2_000_000), delay, errors: None };
    assert!(medium.change(&slow, 1, 0));
    assert!(medium.send(Instant::ZERO, 0, 1, frame(1500)));
    let arrivals = [600 + 2_000, 600 + 6_000 + 7_000].map(Instant::from_micros);
    for at in arrivals {
        assert_eq!(medium.poll_timeout(), Some(at));
        assert!(matches!(medium.poll(at), Some(Output::Delivery { .. })));
    }
    let lossy = Conditions { errors: Some(ErrorModel::Loss(1.0)), ..Conditions::default() };
    assert!(medium.change(&lossy, 2, 0));
    assert!(medium.send(arrivals[1], 1, 0, frame(1500)));
    assert_eq!((medium.poll_timeout(), medium.counters(1, 0).lost), (None, 1));
}
