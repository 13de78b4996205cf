//! A link of AIRMAIL by itself.

use super::*;
use crate::plan::Handoff;
use airmend_proto::LinkType;
use airmend_proto::link::{DelayVariation, DropRates, QueueDiscipline};
use airmend_proto::wire::build::SegmentBuilder;
use airmend_proto::wire::seq::SeqNumber;
use airmend_proto::wire::tcp::Segment;

const SPEC: AirmailSpec = AirmailSpec { status: Duration::from_millis(20), window: 32, fec: true };

fn direction(ber: f64, handoff: Option<Handoff>) -> Direction {
    Direction {
        rate_bps: 2_000_000,
        delay: Duration::from_millis(2),
        variation: DelayVariation::default(),
        trace: None,
        queue_frames: 1_000,
        discipline: (QueueDiscipline::Fifo, airmend_proto::link::CoDelParams::default()),
        errors: ErrorModel::Ber(ber),
        arq: None,
        airmail: Some(SPEC),
        handoff,
        access: None,
        generator: DropRates::default(),
        air: true,
        channel: 0,
        to: 0,
    }
}

/// 500 packets of 1000 bytes from a side; says when the last one came, and the counters of the
/// way, and of the way back. All arrive once and in order.
fn transfer(
    spec: AirmailSpec,
    side: usize,
    ber: f64,
    handoff: Option<Handoff>,
) -> (Duration, LinkCounters, LinkCounters) {
    let mut medium = Airmail::new(spec, [direction(ber, handoff); 2], [0, 1], 7, 0);
    let (a, b) = (([10, 0, 0, 1], 1), ([10, 0, 0, 2], 2));
    for number in 0..500 {
        let packet = SegmentBuilder::new(a, b).seq(SeqNumber(number)).payload_len(960);
        assert!(medium.send(Instant::ZERO, side, 1 - side, packet.build(LinkType::Ip)));
    }
    let (mut numbers, mut last) = (Vec::new(), Instant::ZERO);
    while let Some(now) = medium.poll_timeout() {
        assert!(now >= last, "a deadline in the past");
        last = now;
        medium.handle_timeout(now);
        while let Some(output) = medium.poll_output() {
            if let Output::Delivery { from, packet, .. } = output {
                assert_eq!(from, side);
                numbers.push(Segment::parse(&packet).unwrap().seq.0);
            }
        }
    }
    assert_eq!(numbers, (0..500).collect::<Vec<_>>());
    let ways = [medium.counters(side, 1 - side), medium.counters(1 - side, side)];
    (last.since(Instant::ZERO), ways[0], ways[1])
}

#[test]
fn all_frames_arrive_once_and_in_order_whatever_is_lost() {
    for (side, ber) in [(0, 1e-4), (1, 1e-4), (0, 1e-3), (1, 0.0)] {
        for fec in [false, true] {
            if !fec && ber > 1e-4 {
                continue;
            }
            transfer(AirmailSpec { fec, ..SPEC }, side, ber, None);
        }
    }
    let millis = Duration::from_millis;
    transfer(SPEC, 0, 0.0, Some(Handoff { every: millis(500), lasts: millis(200), acks: 0 }));
}

/// Without errors the time is that of the frames and of one interval of reports at most, and no
/// frame bears a code.
#[test]
fn without_errors_nothing_is_sent_twice() {
    let (time, down, up) = transfer(SPEC, 0, 0.0, None);
    assert_eq!((down.frames, down.bytes), (500, 500 * 1_008));
    let airtime = down.busy;
    assert!(time > airtime && time < airtime + Duration::from_millis(30), "{time:?} {airtime:?}");
    // A report each 20 ms, each with its airtime.
    let reports = time.as_millis() as u64 / 20;
    assert!((reports - 1..=reports + 1).contains(&up.frames), "{} {reports}", up.frames);
    assert_eq!(up.bytes, up.frames * u64::from(Code::STATUS.coded(STATUS)));
}

/// The base station acknowledges at once, the mobile many frames at a time.
#[test]
fn reports_of_the_mobile_are_combined() {
    let (_, _, by_the_mobile) = transfer(SPEC, 0, 0.0, None);
    let (_, _, by_the_base) = transfer(SPEC, 1, 0.0, None);
    assert!(by_the_base.frames > 3 * by_the_mobile.frames);
}

/// Where a frame of 1008 bytes is damaged with a probability of 55 %, redundancy pays.
#[test]
fn a_code_saves_retransmissions() {
    let (bare_time, bare, _) = transfer(AirmailSpec { fec: false, ..SPEC }, 0, 1e-4, None);
    let (coded_time, coded, _) = transfer(SPEC, 0, 1e-4, None);
    assert!(bare.damaged > 300, "{bare:?}");
    assert!(coded.damaged < 30, "{coded:?}");
    assert!(coded.bytes < bare.bytes * 2 / 3 && coded_time < bare_time);
    // Redundancy is not free.
    assert!(coded.bytes > coded.frames * 1_008);
}
