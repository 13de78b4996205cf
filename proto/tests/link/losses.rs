//! Small state is enumerated: all 2^12 ways in which the first twelve frames of an exchange can be
//! lost, of both directions together and of each alone.

use crate::kit::Settings;
use crate::pair::{Fate, GATEWAY, MOBILE, Pair};
use airmend_proto::wire::build::SegmentBuilder;
use airmend_proto::wire::seq::SeqNumber;
use airmend_proto::wire::tcp::Segment;
use airmend_proto::{Instant, LinkType, Packet};
use std::time::Duration;

pub(crate) const LOSSY_FRAMES: u32 = 12;
const PACKETS: [u32; 2] = [7, 3];
const PAYLOAD: u32 = 1_000;
pub(crate) const RATE_BPS: u64 = 10_000_000;
pub(crate) const DELAY: Duration = Duration::from_millis(2);
const AFTER_ALL: Instant = Instant::from_millis(60_000);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lossy {
    Both,
    From(usize),
}

fn packet(from: usize, index: u32) -> Packet {
    let ends = [([10, 0, 0, 1], 80), ([10, 9, 0, 1], 5000)];
    let segment = SegmentBuilder::new(ends[from], ends[1 - from]).seq(SeqNumber(index));
    segment.ack(SeqNumber(1)).payload_len(PAYLOAD).build(LinkType::Ip)
}

/// When the last packet had arrived; an error if it did not, or in another order.
pub(crate) fn exchange(
    settings: &Settings,
    pattern: u32,
    lossy: Lossy,
) -> Result<Duration, String> {
    let mut pair = Pair::new(settings, RATE_BPS, DELAY);
    for (from, count) in PACKETS.into_iter().enumerate() {
        (0..count).for_each(|index| pair.send(from, &packet(from, index)));
    }
    let mut counted = 0;
    let mut frames = 0;
    pair.run(AFTER_ALL, &mut |from, _| {
        frames += 1;
        let is_counted = lossy == Lossy::Both || lossy == Lossy::From(from);
        let is_lost = is_counted && counted < LOSSY_FRAMES && pattern >> counted & 1 == 1;
        counted += u32::from(is_counted);
        if is_lost { Fate::Lost } else { Fate::Arrives }
    });
    let mut last = Instant::ZERO;
    for end in [GATEWAY, MOBILE] {
        let delivered = &pair.ends[end].delivered;
        let numbers = delivered.iter().map(|(_, packet)| Segment::parse(packet).unwrap().seq.0);
        if !numbers.clone().eq(0..PACKETS[1 - end]) {
            return Err(format!("end {end} was given {:?}", numbers.collect::<Vec<_>>()));
        }
        last = last.max(delivered.last().map_or(last, |(at, _)| *at));
        let backlog = pair.ends[end].agent.backlog();
        if backlog != (0, 0) || pair.next_instant().is_some() {
            return Err(format!("no rest: {backlog:?}, next {:?}", pair.next_instant()));
        }
    }
    // Ten packets, twelve losses, and for each of them perhaps a probe and an ACK.
    if frames > 60 {
        return Err(format!("{frames} frames"));
    }
    Ok(last - Instant::ZERO)
}

pub(crate) fn enumerate(settings: &Settings, longest: Duration) {
    for lossy in [Lossy::Both, Lossy::From(GATEWAY), Lossy::From(MOBILE)] {
        let mut worst = (Duration::ZERO, 0);
        for pattern in 0..1 << LOSSY_FRAMES {
            match exchange(settings, pattern, lossy) {
                Ok(time) => worst = worst.max((time, pattern)),
                Err(error) => panic!("pattern {pattern:#014b} of {lossy:?}: {error}"),
            }
        }
        println!("{lossy:?}: at most {:?}, pattern {:#014b}", worst.0, worst.1);
        assert!(worst.0 <= longest, "{worst:?} of {lossy:?}");
    }
}
