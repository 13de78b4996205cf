//! Any text as a trace, and as a packet-delivery trace of Mahimahi: it is refused with one
//! sentence, or a link follows it, on which frames arrive in their order.

use airmend_proto::link::trace::{Opportunities, WayTrace, parse_trace};
use airmend_proto::link::{ErrorModel, FullDuplex, LinkParams, Medium, Output, Pair};
use airmend_proto::wire::build::SegmentBuilder;
use airmend_proto::{Instant, LinkType};
use core::time::Duration;

/// Frames that are sent, one every so often.
const FRAMES: u64 = 40;
const PAUSE: Duration = Duration::from_millis(130);

pub(crate) fn fuzz(data: &[u8]) {
    let Ok(text) = core::str::from_utf8(data) else { return };
    let trace = parse_trace(text).map_err(|error| error.to_string());
    let opportunities = Opportunities::parse(text).map_err(|error| error.to_string());
    for sentence in [trace.as_ref().err(), opportunities.as_ref().err()].into_iter().flatten() {
        assert_eq!(sentence.lines().count(), 1, "{sentence}");
    }
    for way in [(trace.ok(), None), (None, opportunities.ok())] {
        let way = WayTrace::new(way.0.as_ref(), way.1).expect("one says what the rate is");
        if !way.is_empty() {
            follow(&way);
        }
    }
}

fn follow(way: &WayTrace) {
    let delay = Duration::from_millis(1);
    let params =
        LinkParams { rate_bps: 1_000_000, delay, queue_frames: 10, lookahead: Duration::ZERO };
    let mut pair = Pair::new([0, 1], [delay; 2], [ErrorModel::None; 2], 1, 0);
    way.apply(&mut pair, 0, 1, 0);
    let medium = FullDuplex::new([params; 2], vec![pair]);
    let mut medium = medium.with_rates([way.rate.as_ref(), None]);
    let mut sent = Vec::new();
    let mut now = Instant::ZERO;
    for frame in 0..FRAMES {
        let (a, b) = (([10, 0, 0, 1], 1), ([10, 0, 0, 2], 2));
        let packet = SegmentBuilder::new(a, b).payload_len(frame as u32 * 35);
        if medium.send(now, 0, 1, packet.build(LinkType::Ip)) {
            sent.push((frame, now));
        }
        now += PAUSE;
    }
    let mut last = Instant::ZERO;
    let mut left = sent.iter();
    while let Some(at) = medium.poll_timeout() {
        assert!(at >= last);
        last = at;
        medium.handle_timeout(at);
        while let Some(output) = medium.poll_output() {
            let Output::Delivery { packet, .. } = output else { panic!("{output:?}") };
            let length = u64::from(packet.wire_len());
            let (_, since) = left.find(|(frame, _)| 40 + frame * 35 == length).expect("in order");
            assert!(at >= *since);
        }
    }
    let counters = medium.counters(0, 1);
    assert_eq!(counters.frames + counters.dropped, FRAMES);
}
