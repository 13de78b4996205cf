//! A bulk transfer over a lossy link: what is left of the link's rate.

use crate::kit::Settings;
use crate::pair::{Fate, GATEWAY, MOBILE, Pair};
use airmend_proto::random::{Purpose, Stream};
use airmend_proto::wire::build::SegmentBuilder;
use airmend_proto::wire::seq::SeqNumber;
use airmend_proto::wire::tcp::Segment;
use airmend_proto::{Instant, LinkType, Packet};
use std::time::Duration;

const SEED: u64 = 1;
const PACKETS: u32 = 4_000;
const PAYLOAD: u32 = 1_448;
const PACKET_BITS: f64 = (PAYLOAD as f64 + 40.0) * 8.0;

fn data(index: u32) -> Packet {
    let segment = SegmentBuilder::new(([10, 0, 0, 1], 80), ([10, 9, 0, 1], 5000));
    let segment = segment.seq(SeqNumber(index * PAYLOAD)).ack(SeqNumber(1));
    segment.payload_len(PAYLOAD).build(LinkType::Ip)
}

/// The share of what a link of this rate and loss can carry that is delivered.
pub(crate) fn share(settings: &Settings, rate_bps: u64, delay: Duration, loss: f64) -> f64 {
    let mut pair = Pair::new(settings, rate_bps, delay);
    let mut stream = Stream::new(SEED, 0, 0, Purpose::Loss);
    let mut fate = |_: usize, _: &_| if stream.happens(loss) { Fate::Lost } else { Fate::Arrives };
    let mut next = 0;
    while pair.ends[MOBILE].delivered.len() < PACKETS as usize {
        while next < PACKETS && pair.ends[GATEWAY].agent.backlog().0 < 100 {
            pair.send(GATEWAY, &data(next));
            next += 1;
        }
        let until = pair.now + Duration::from_micros(500);
        pair.run(until, &mut fate);
        assert!(pair.now < Instant::from_millis(1_000_000), "{:?}", pair.ends[GATEWAY].counters);
    }
    let index = |packet: &Packet| Segment::parse(packet).unwrap().seq.0 / PAYLOAD;
    let indices = pair.ends[MOBILE].delivered.iter().map(|(_, packet)| index(packet));
    // [tulip99 §III S2-02]
    assert!(indices.eq(0..PACKETS), "in order, each once");
    let share = f64::from(PACKETS) * PACKET_BITS / pair.now.as_secs_f64() / rate_bps as f64;
    println!("{rate_bps} bit/s, loss {loss}: {share:.3} of the rate");
    for (end, wire_bytes) in pair.ends.iter().zip(pair.wire_bytes) {
        println!("    {wire_bytes} bytes, {:?}", end.counters);
    }
    share / (1.0 - loss)
}
