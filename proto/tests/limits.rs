//! Floods: whatever arrives, an agent stays within its limits, counts, and goes on mending.

mod common;

use airmend_proto::agents::flow_table::FlowTable;
use airmend_proto::agents::{self, AgentConfig, Limits};
use airmend_proto::wire::build::SegmentBuilder;
use airmend_proto::wire::seq::SeqNumber;
use airmend_proto::wire::tcp::Flags;
use airmend_proto::{EgressLimits, Forwarder, Instant, LinkType, Packet, Port};
use common::agents::forwarder;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

const LIMITS: Limits =
    Limits { flows: 100_000, cache_bytes: 64 << 20, egress: EgressLimits { air: 100, wired: 100 } };

/// An agent with its counters.
struct Bench {
    agent: Forwarder,
    now: Instant,
    counters: BTreeMap<&'static str, u64>,
}

impl Bench {
    fn new(agent: Forwarder) -> Self {
        Self { agent, now: Instant::ZERO, counters: BTreeMap::new() }
    }

    /// Hands a packet in, a microsecond after the last one, and takes out what leaves.
    fn pass(&mut self, from: Port, packet: Packet) -> usize {
        self.now += Duration::from_micros(1);
        self.agent.handle_packet(self.now, from, packet);
        if self.agent.poll_timeout().is_some_and(|deadline| deadline.at <= self.now) {
            self.agent.handle_timeout(self.now);
        }
        let mut sent = 0;
        for side in Port::BOTH {
            while self.agent.poll_transmit(self.now, side).is_some() {
                sent += 1;
            }
        }
        while let Some(event) = self.agent.poll_event() {
            *self.counters.entry(event.counter()).or_default() += 1;
        }
        assert!(self.agent.load().flows <= LIMITS.flows);
        assert!(self.agent.load().cache_bytes <= LIMITS.cache_bytes);
        sent
    }

    fn counted(&self, counter: &str) -> u64 {
        self.counters.get(counter).copied().unwrap_or(0)
    }
}

fn towards_mobile(flow: u32, seq: u32, flags: Flags, payload_len: u32) -> Packet {
    let host = Ipv4Addr::from(0x0a00_0000 + flow / 50_000);
    let port = 10_000 + (flow % 50_000) as u16;
    SegmentBuilder::new((host, port), (Ipv4Addr::new(192, 168, 0, 1), 80))
        .seq(SeqNumber(seq))
        .flags(flags)
        .payload_len(payload_len)
        .build(LinkType::Ip)
}

/// One test, so that nothing else grows the process meanwhile.
#[test]
fn floods_stay_within_the_limits() {
    for name in agents::names() {
        let config = AgentConfig::by_name(name).expect("a name of the registry");
        if !keeps_flows(forwarder(&config, LIMITS)) {
            continue;
        }
        println!("{name}");
        a_flood_of_flows_stays_within_memory_and_keeps_answered_flows(forwarder(&config, LIMITS));
        a_flood_of_ten_million_syns_leaves_no_state(forwarder(&config, LIMITS));
    }
}

fn keeps_flows(agent: Forwarder) -> bool {
    let mut bench = Bench::new(agent);
    bench.pass(Port::Wired, towards_mobile(0, 1, Flags::ACK, 1_000));
    bench.agent.load().flows > 0
}

/// Bytes that this process holds in memory.
fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages: usize = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).expect("pages");
    pages * 4_096
}

fn a_flood_of_ten_million_syns_leaves_no_state(agent: Forwarder) {
    let mut bench = Bench::new(agent);
    for flow in 0..1_000 {
        bench.pass(Port::Wired, towards_mobile(flow, 1, Flags::ACK, 1_000));
    }
    let before = resident_bytes();
    // One template: the flood must cost the agent, not the test.
    let template = towards_mobile(2_000_000, 0, Flags::SYN, 0);
    for syn in 0..10_000_000u32 {
        let mut bytes = template.bytes().to_vec();
        bytes[12..16].copy_from_slice(&syn.to_be_bytes());
        let syn = Packet::new(LinkType::Ip, bytes.into());
        assert!(bench.pass(Port::Wired, syn) >= 1, "a SYN must pass");
    }
    assert_eq!(bench.counted("syns_and_rsts"), 10_000_000);
    assert_eq!(bench.agent.load().flows, 1_000, "real flows stay, and no SYN made one");
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < 16 << 20, "the flood grew the process by {} MiB", grown >> 20);
}

fn a_flood_of_flows_stays_within_memory_and_keeps_answered_flows(agent: Forwarder) {
    let before = resident_bytes();
    let mut bench = Bench::new(agent);
    for flow in 0..100_000 {
        assert!(bench.pass(Port::Wired, towards_mobile(flow, 1, Flags::ACK, 1_000)) >= 1);
    }
    assert_eq!(bench.agent.load().flows, 100_000);
    // The mobile answers one of them; nobody answers the others.
    let ack = SegmentBuilder::new(
        (Ipv4Addr::new(192, 168, 0, 1), 80),
        (Ipv4Addr::new(10, 0, 0, 0), 10_000),
    );
    let ack = ack.ack(SeqNumber(1)).flags(Flags::ACK).build(LinkType::Ip);
    bench.pass(Port::Air, ack);
    for flow in 100_000..1_000_000 {
        let packet = towards_mobile(flow, 1, Flags::ACK, 1_000);
        assert!(bench.pass(Port::Wired, packet) >= 1, "it passes, mended or not");
    }
    assert_eq!(bench.agent.load().flows, 100_000);
    let turned_away = bench.counted("flow_table_full") + bench.counted("flows_evicted");
    assert_eq!(turned_away, 900_000);
    bench.counters.clear();
    bench.pass(Port::Wired, towards_mobile(0, 1_001, Flags::ACK, 1_000));
    assert_eq!(bench.counted("flows_opened"), 0, "the answered flow was kept");
    let table = FlowTable::<[u8; 320]>::BYTES_PER_FLOW * LIMITS.flows;
    let grown = resident_bytes().saturating_sub(before);
    let allowed = table + 2 * LIMITS.cache_bytes;
    assert!(grown < allowed, "{} MiB, allowed {} MiB", grown >> 20, allowed >> 20);
}
