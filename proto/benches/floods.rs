//! Floods, packet by packet: `cargo bench -p airmend-proto --bench floods`.
//!
//! A gateway must not stall while 100,000 flows appear at once or 10 million SYNs pass. Every call
//! is timed by itself; a pause of the machine counts like one of ours, so the largest value is an
//! upper bound.

use airmend_proto::agents::{AgentConfig, Limits};
use airmend_proto::wire::build::SegmentBuilder;
use airmend_proto::wire::tcp::Flags;
use airmend_proto::{Forwarder, Instant, LinkType, Packet, Port};
use std::time::Duration;

const FLOWS: u32 = 100_000;
const SYNS: u32 = 10_000_000;

fn main() {
    let limits = Limits { flows: FLOWS as usize, ..Limits::default() };
    let config = AgentConfig::by_name("snoop95").expect("a name of the list");
    let mut agent = Forwarder::new(config.build(limits, 1), limits.egress);
    let mut now = Instant::ZERO;
    println!("\nsnoop95 under floods; limits: {limits}");
    println!("{:<34}{:>10}{:>12}{:>12}", "packets", "ns/packet", "over 1 ms", "longest");
    let data = template(Flags::ACK, 1_000);
    flood("first data of 100,000 flows", &mut agent, &mut now, &data, FLOWS);
    flood("data of as many flows too many", &mut agent, &mut now, &data, 2 * FLOWS);
    flood("10 million SYNs", &mut agent, &mut now, &template(Flags::SYN, 0), SYNS);
}

fn template(flags: Flags, payload_len: u32) -> Packet {
    SegmentBuilder::new(([10, 0, 0, 1], 40_000), ([192, 168, 0, 1], 80))
        .flags(flags)
        .payload_len(payload_len)
        .build(LinkType::Ip)
}

/// Passes `count` packets like `template`, each from another address, and prints what they cost.
fn flood(name: &str, agent: &mut Forwarder, now: &mut Instant, template: &Packet, count: u32) {
    let mut total = Duration::ZERO;
    let mut longest = Duration::ZERO;
    let mut long_calls = 0;
    // The second flood begins where the first ended: its flows are new.
    let first = now.as_nanos() as u32;
    for number in 0..count {
        *now += Duration::from_nanos(100);
        let mut bytes = template.bytes().to_vec();
        bytes[12..16].copy_from_slice(&first.wrapping_add(number).to_be_bytes());
        let packet = Packet::truncated(LinkType::Ip, bytes.into(), template.wire_len());
        let start = std::time::Instant::now();
        agent.handle_packet(*now, Port::Wired, packet);
        if agent.poll_timeout().is_some_and(|deadline| deadline.at <= *now) {
            agent.handle_timeout(*now);
        }
        let sent = agent.poll_transmit(*now, Port::Air);
        while agent.poll_event().is_some() {}
        let took = start.elapsed();
        assert!(sent.is_some(), "a flood passes: that is all it may do");
        total += took;
        longest = longest.max(took);
        long_calls += u32::from(took > Duration::from_millis(1));
    }
    println!(
        "{name:<34}{:>10.0}{long_calls:>12}{:>9.2} ms",
        total.as_nanos() as f64 / f64::from(count),
        longest.as_secs_f64() * 1e3
    );
}
