//! What the gateway withholds from senders when it ends, or could not look for a while.

use crate::cable::End;
use crate::daemon::Daemon;
use crate::hostile::{frame, mac, silent};
use crate::kit::raw::open_end;
use crate::kit::{Result, until};
use crate::world::{AIR, Shape, World};
use airmend_proto::wire::build::SegmentBuilder;
use airmend_proto::wire::seq::SeqNumber;
use airmend_proto::wire::tcp::{Flags, Options, Segment};
use airmend_proto::{LinkType, Packet};
use nix::sys::signal::Signal;
use nix::unistd::read;
use std::os::fd::OwnedFd;
use std::thread;
use std::time::Duration;

/// Flows are told apart by the mobile's port.
const PORTS: [u16; 2] = [5001, 5002];
/// Bytes of a segment.
const LEN: u32 = 100;
/// Nothing is released because its time is over.
const PATIENT: &[&str] = &["--set", "hold_limit=50s"];

/// Two flows between hosts that say nothing by themselves, and what leaves to the wire.
struct Talk {
    world: World,
    hosts: [[u8; 4]; 2],
    macs: [[u8; 6]; 2],
    wire: OwnedFd,
}

impl Talk {
    fn new() -> Result<Self> {
        let world = World::new(Shape { loss: 0.0, ..Shape::default() })?;
        let hosts = silent(&world)?;
        let macs = [mac(&world.base, "wired0")?, mac(&world.base, "air0")?];
        let open = || Ok(open_end("wired0").map_err(|error| error.to_string()));
        let wire = world.base.run(open)??;
        Ok(Self { world, hosts, macs, wire })
    }

    /// Sends the first six segments of a flow, and acknowledges one when the gateway has seen them
    /// leave.
    fn open(&self, daemon: &Daemon, port: u16) -> Result {
        let copied = || daemon.status().ok()?["packets"]["data_copied"].as_u64();
        let before = until("a status", copied)?;
        for number in 0..6 {
            let [fixed, mobile] = self.hosts;
            let segment = SegmentBuilder::new((fixed, 80), (mobile, port))
                .seq(SeqNumber(1 + LEN * number))
                .ack(SeqNumber(1))
                .flags(Flags::ACK)
                .payload(&[7; LEN as usize]);
            let bytes = frame(self.macs[0], segment);
            self.world.cables.insert(self.world.wired(), End::Station, bytes);
        }
        until("copies", || copied().filter(|copied| *copied >= before + 6))?;
        self.acknowledge(port, 0)
    }

    /// The mobile has the first segment, and the third up to this one.
    fn acknowledge(&self, port: u16, last: u32) -> Result {
        let [fixed, mobile] = self.hosts;
        let block = |last: u32| (SeqNumber(1 + 2 * LEN), SeqNumber(1 + LEN * last));
        let sack = (last > 2).then(|| block(last)).into_iter().collect();
        let segment = SegmentBuilder::new((mobile, port), (fixed, 80))
            .seq(SeqNumber(1))
            .ack(SeqNumber(1 + LEN))
            .flags(Flags::ACK)
            .options(Options { sack, ..Options::default() });
        self.world.cables.insert(AIR, End::Station, frame(self.macs[1], segment));
        self.sent()
    }

    fn sent(&self) -> Result {
        until("frames", || (self.world.cables.to_insert() == 0).then_some(()))
    }

    /// The ports of the ACKs with SACK blocks that have left towards the wire since the last call.
    fn left(&self) -> Vec<u16> {
        let mut ports = Vec::new();
        let mut bytes = [0; 2048];
        while let Ok(length) = read(&self.wire, &mut bytes) {
            let packet = Packet::new(LinkType::Ethernet, bytes[..length].to_vec().into());
            let Ok(segment) = Segment::parse(&packet) else { continue };
            if !segment.options.sack.as_slice().is_empty() {
                ports.push(segment.source.port);
            }
        }
        ports
    }

    /// Waits until so many ACKs are withheld; false if the machine kept the gateway from its
    /// processor: the heartbeat timed out more often than `lapses` and the kernel passed an ACK, or
    /// the agent passed one, since its repair would have come too late.
    fn withheld(&self, daemon: &Daemon, count: u64, lapses: u64) -> Result<bool> {
        until("withholding", || {
            let status = daemon.status().ok()?;
            let is_withheld = status["counters"]["suppressed_dupacks"].as_u64() == Some(count);
            let is_disturbed = status["heartbeat_timeouts"].as_u64() > Some(lapses);
            let is_passed = !is_withheld && !self.left().is_empty();
            (is_withheld || is_disturbed || is_passed).then_some(is_withheld)
        })
    }
}

/// Talks until nothing disturbs it.
fn undisturbed(talk: impl Fn() -> Result<bool>) -> Result {
    for _ in 0..20 {
        if talk()? {
            return Ok(());
        }
        println!("the gateway was kept from its processor: once more");
    }
    Err("the gateway never got its processor in time".into())
}

/// SIGTERM: the sender of each flow gets the ACK that was kept from it.
pub(crate) fn released_at_end() -> Result {
    undisturbed(|| is_released_at_end("snoop", PATIENT))?;
    undisturbed(|| is_released_at_end("snoop95", &[]))
}

fn is_released_at_end(agent: &str, patient: &[&str]) -> Result<bool> {
    let talk = Talk::new()?;
    let flags = [&["--agent", agent], patient].concat();
    let daemon = Daemon::start(&talk.world.base, "air0", &flags)?;
    for port in PORTS {
        talk.open(&daemon, port)?;
        talk.acknowledge(port, 4)?;
    }
    if !talk.withheld(&daemon, 2, 0)? {
        return Ok(false);
    }
    assert_eq!(talk.left(), [0; 0], "{agent} withholds");
    daemon.end()?;
    let mut left = talk.left();
    left.sort_unstable();
    println!("{agent}: at its end ACKs of {left:?} leave");
    assert_eq!(left, PORTS, "{agent}");
    Ok(true)
}

/// SIGSTOP: only the flow whose ACK passed meanwhile is forgotten, and its last ACK released.
pub(crate) fn released_at_lapse() -> Result {
    undisturbed(is_released_at_lapse)
}

fn is_released_at_lapse() -> Result<bool> {
    let talk = Talk::new()?;
    let daemon = Daemon::start(&talk.world.base, "air0", PATIENT)?;
    let [missed, other] = PORTS;
    for port in PORTS {
        talk.open(&daemon, port)?;
        talk.acknowledge(port, 4)?;
    }
    if !talk.withheld(&daemon, 2, 0)? {
        return Ok(false);
    }
    assert_eq!(talk.left(), [0; 0]);
    daemon.signal(Signal::SIGSTOP)?;
    // Longer than the heartbeat's timeout.
    thread::sleep(Duration::from_millis(80));
    talk.acknowledge(missed, 5)?;
    until("an ACK that nobody withholds", || (talk.left() == [missed]).then_some(()))?;
    daemon.signal(Signal::SIGCONT)?;
    // Before, the kernel passes what comes, and the gap is told only with the next ACK.
    let lapses = || daemon.status().ok()?["heartbeat_timeouts"].as_u64();
    until("the heartbeat", || lapses().filter(|lapses| *lapses > 0))?;
    assert_eq!(talk.left(), [0; 0], "nothing is known of it yet");
    talk.acknowledge(missed, 6)?;
    let mut left = Vec::new();
    until("two ACKs", || {
        left.extend(talk.left());
        (left.len() >= 2).then_some(())
    })?;
    assert_eq!(left, [missed; 2], "what was withheld, and what came now");
    // The other flow is as it was.
    talk.acknowledge(other, 6)?;
    if !talk.withheld(&daemon, 3, 1)? {
        return Ok(false);
    }
    assert_eq!(talk.left(), [0; 0]);
    daemon.end()?;
    assert_eq!(talk.left(), [other]);
    Ok(true)
}
