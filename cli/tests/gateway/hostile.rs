//! Floods, and more flows than usual.

use crate::cable::End;
use crate::daemon::Daemon;
use crate::kit::{Result, until};
use crate::transfer::{Plan, transfer};
use crate::world::{AIR, Shape, World};
use airmend_live::lab::Namespace;
use airmend_proto::LinkType;
use airmend_proto::wire::build::SegmentBuilder;
use airmend_proto::wire::seq::SeqNumber;
use airmend_proto::wire::tcp::Flags;
use nix::ifaddrs::getifaddrs;
use std::time::Instant;

const FIXED: [u8; 4] = [10, 77, 1, 2];
const MOBILE: [u8; 4] = [10, 77, 2, 2];
/// Addresses that nobody has, on both networks: nobody answers for them with an RST.
const SILENT: [[u8; 4]; 2] = [[10, 77, 1, 77], [10, 77, 2, 77]];

/// Their addresses, at the wire and at the air; the base station sends to them without asking who
/// has them.
pub(crate) fn silent(world: &World) -> Result<[[u8; 4]; 2]> {
    for (address, interface) in SILENT.into_iter().zip(["wired0", "air0"]) {
        let address = address.map(|byte| byte.to_string()).join(".");
        let neighbour = format!("{address} dev {interface} lladdr 02:00:00:00:00:02");
        world.base.ip(&format!("neighbour add {neighbour}\n"))?;
    }
    Ok(SILENT)
}

/// xorshift64*
pub(crate) struct Random(u64);

impl Random {
    /// The numbers that follow from this seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.max(1))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }
}

/// The link address of an interface.
pub(crate) fn mac(namespace: &Namespace, interface: &str) -> Result<[u8; 6]> {
    let found = namespace.run(|| {
        let mut all = getifaddrs().into_iter().flatten();
        Ok(all.find_map(|found| {
            let address = found.address.filter(|_| found.interface_name == interface)?;
            address.as_link_addr()?.addr()
        }))
    })?;
    Ok(found.ok_or("no link address")?)
}

/// A segment with bits of the given kinds, for the machine with this link address.
pub(crate) fn frame(to: [u8; 6], segment: SegmentBuilder<'_>) -> Vec<u8> {
    let mut bytes = segment.build(LinkType::Ethernet).bytes().to_vec();
    bytes[..6].copy_from_slice(&to);
    bytes[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
    bytes
}

/// Makes a whole packet into its own first fragment, of eight bytes.
fn tiny_fragment(frame: &mut Vec<u8>) {
    let ip = &mut frame[14..34];
    ip[2..4].copy_from_slice(&28u16.to_be_bytes());
    ip[6..8].copy_from_slice(&0x2000u16.to_be_bytes());
    ip[10..12].fill(0);
    let sum: u32 = ip.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    ip[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    frame.truncate(42);
}

/// One frame of the flood, from either side.
fn hostile(random: &mut Random, to: [u8; 6], ends: [[u8; 4]; 2]) -> Vec<u8> {
    let [a, b] = ends;
    let ports = [random.next() as u16 | 1, random.next() as u16 | 1];
    let segment = SegmentBuilder::new((a, ports[0]), (b, ports[1]))
        .seq(SeqNumber(random.next() as u32))
        .ack(SeqNumber(random.next() as u32));
    match random.next() % 5 {
        0 | 1 => frame(to, segment.flags(Flags::SYN)),
        2 => {
            let mut bytes = frame(to, segment.flags(Flags::ACK).payload(b"sixteen bytes ..."));
            tiny_fragment(&mut bytes);
            bytes
        }
        3 => {
            let mut bytes = frame(to, segment.flags(Flags::ACK).payload(b"some"));
            bytes[51] ^= 0x55;
            bytes
        }
        _ => {
            let mut bytes = frame(to, segment.flags(Flags::ACK).payload(&[0; 60]));
            let noise = random.bytes(bytes.len() - 34);
            bytes[34..].copy_from_slice(&noise);
            bytes
        }
    }
}

/// Frames of all kinds from both sides, and with each ACK one that claims too much: memory and
/// flows keep their bounds, and the transfers that run are mended.
pub(crate) fn flooded() -> Result {
    const FRAMES: usize = 20_000;
    const FLOWS: u64 = 500;
    let shape = Shape { is_forged: true, ..Shape::default() };
    let world = World::new(shape)?;
    let (wired, air) = (mac(&world.base, "wired0")?, mac(&world.base, "air0")?);
    let limits = ["--limit-flows", "500", "--limit-memory", "8MiB"];
    let daemon = Daemon::start(&world.base, "air0", &limits)?;
    transfer(&world, &Plan::mixed(), |progress| {
        progress.reach(1_000_000)?;
        let memory = daemon.memory()?;
        let mut random = Random(shape.seed);
        for _ in 0..FRAMES / 2 {
            let source = [172, 16, random.next() as u8, random.next() as u8];
            let bytes = hostile(&mut random, wired, [source, MOBILE]);
            world.cables.insert(world.wired(), End::Station, bytes);
            let bytes = hostile(&mut random, air, [MOBILE, FIXED]);
            world.cables.insert(AIR, End::Station, bytes);
        }
        until("the flood's end", || (world.cables.to_insert() == 0).then_some(()))?;
        let (status, grown) = (daemon.status()?, daemon.memory()?.saturating_sub(memory));
        println!("flood: {} flows, memory grew by {} kB", status["flows"], grown >> 10);
        assert!(status["flows"].as_u64() <= Some(FLOWS));
        assert!(grown < 64 << 20, "memory grew by {grown} bytes");
        daemon.mends_most(|| world.cables.carried(AIR).1)
    })?;
    daemon.end().map(drop)
}

/// Ten thousand flows at once, each answered soon.
pub(crate) fn many_flows() -> Result {
    const FLOWS: u64 = 10_000;
    const ROUNDS: u32 = 2;
    let world = World::new(Shape { loss: 0.0, ..Shape::default() })?;
    let (wired, air) = (mac(&world.base, "wired0")?, mac(&world.base, "air0")?);
    let [fixed, mobile] = silent(&world)?;
    let daemon = Daemon::start(&world.base, "air0", &[])?;
    let (begin, memory) = (Instant::now(), daemon.memory()?);
    let ports = || 10_000..10_000 + FLOWS as u16;
    for round in 0..ROUNDS {
        let data = |port| {
            let segment = SegmentBuilder::new((fixed, 80), (mobile, port));
            let segment = segment.seq(SeqNumber(1 + 100 * round)).ack(SeqNumber(1));
            frame(wired, segment.flags(Flags::ACK).payload(&[7; 100]))
        };
        let ack = |port| {
            let segment = SegmentBuilder::new((mobile, port), (fixed, 80)).seq(SeqNumber(1));
            frame(air, segment.ack(SeqNumber(1 + 100 * (round + 1))).flags(Flags::ACK))
        };
        // The answer comes some 20 ms later.
        let answered = std::iter::repeat_n(None, 200).chain(ports().map(Some));
        let asked = ports().map(Some).chain(std::iter::repeat(None));
        for (asked, answered) in asked.zip(answered) {
            if let Some(port) = asked {
                world.cables.insert(world.wired(), End::Station, data(port));
            }
            if let Some(port) = answered {
                world.cables.insert(AIR, End::Station, ack(port));
            }
        }
        until("all flows", || (world.cables.to_insert() == 0).then_some(()))?;
    }
    let (status, took) = (daemon.status()?, begin.elapsed().as_secs_f64());
    let cpu = status["cpu_seconds"].as_f64().ok_or("no cpu_seconds")?;
    println!(
        "{} flows, {} bytes cached, memory grew by {} kB; {:.0} % of a core over {took:.1} s; {}",
        status["flows"],
        status["cache_bytes"],
        (daemon.memory()? - memory) >> 10,
        100.0 * cpu / took,
        status["packets"],
    );
    // MemoryMax of the service counts on it (cli/tests/packaging.rs); a debug build checks, too.
    let cached = status["cache_bytes"].as_u64().ok_or("no cache_bytes")?;
    let grown = daemon.memory()? - memory;
    assert!(grown.saturating_sub(cached) < 3072 * FLOWS, "{grown} bytes, {cached} cached");
    // What the interface's queue drops is not seen.
    assert!(status["flows"].as_u64() >= Some(FLOWS - FLOWS / 20));
    assert_eq!(status["counters"]["agent_panics"], 0);
    assert_eq!(status["counters"]["broken_rules"], 0);
    transfer(&world, &Plan::equal(2, 200_000), |_| Ok(()))?;
    daemon.end()?;
    Ok(())
}
