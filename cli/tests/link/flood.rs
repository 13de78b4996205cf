//! Strangers who send 10,000 datagrams a second to the end that listens. A new link comes up, in a
//! guest with a steady clock within two seconds, and one that is up loses nothing but what the
//! kernel drops where the machine is too slow to read it.

use crate::kit::{PATIENCE, Result, has_steady_clock};
use crate::world::{INNER, LEFT, Link, RIGHT, World};
use crate::{count, ended};
use airmend_live::lab::Namespace;
use airmend_live::tunnel::{Address, Endpoint, Keys, PrivateKey, PublicKey, Rekey, Security};
use airmend_proto::random::{Purpose, Stream};
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn};
use nix::sys::socket::{sendto, socket};
use serde_json::Value;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

pub(crate) const PORT: u16 = 4433;
/// Datagrams of the strangers in a second.
const RATE: f64 = 10_000.0;
/// Within this time a new link is up.
const LONGEST: Duration = Duration::from_secs(2);
/// Links begun under each flood.
const RUNS: usize = 5;
/// Packets that cross the link that is up, each once.
pub(crate) const PACKETS: u32 = 2_000;
/// Different initiations that who knows the public key sends.
const FORGED: usize = 2_000;
/// What the listener counts of them.
const DROPPED: [&str; 6] =
    ["truncated", "forged", "replayed", "unknown_session", "challenged", "handshakes_refused"];
/// Addresses that nobody has (RFC 2544), as the sources of forged datagrams.
const NOBODY: u32 = u32::from_be_bytes([198, 18, 0, 0]);

/// What the strangers send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Random bytes of random lengths.
    Noise,
    /// The header and the length of a handshake's first message, and of every other message.
    Header,
    /// A genuine initiation, recorded before.
    Replay,
    /// All of it, from addresses that are not the senders'.
    Forged,
    /// Initiations by who knows the listener's public key and no private one, from addresses that
    /// are not the senders'.
    Keyed,
}

pub(crate) fn noise() -> Result {
    under_flood(Kind::Noise, "tulip")
}

pub(crate) fn header() -> Result {
    under_flood(Kind::Header, "tulip")
}

pub(crate) fn replay() -> Result {
    under_flood(Kind::Replay, "tulip")
}

pub(crate) fn forged(arq: &'static str) -> Result {
    under_flood(Kind::Forged, arq)
}

pub(crate) fn keyed() -> Result {
    under_flood(Kind::Keyed, "tulip")
}

/// The outer addresses of a link that strangers attack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    /// Of the end that listens.
    pub(crate) listener: Ipv4Addr,
    /// Of an end that it may take for its peer.
    pub(crate) peer: Ipv4Addr,
}

fn under_flood(kind: Kind, arq: &'static str) -> Result {
    let target = Target { listener: RIGHT.parse()?, peer: LEFT.parse()? };
    let world = World::with(arq)?;
    // Answers to forged sources leave, and nobody takes them.
    world.right.ip(&format!("route add 198.18.0.0/15 via {LEFT}\n"))?;
    let recorded = match kind {
        Kind::Keyed => forge(PrivateKey::read(&world.key.0)?.public(), target.listener)?,
        _ => vec![record(&world)?],
    };
    let (sent, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let begin = Instant::now();
    thread::scope(|scope| -> Result {
        let strangers = scope
            .spawn(|| world.left.run(|| Ok(flood((kind, RATE), target, &recorded, &sent, &stop))));
        let stops = StopsOnDrop(&stop);
        let result = links(&world);
        drop(stops);
        strangers.join().map_err(|_| "a panic")??.map_err(|error| error.to_string())?;
        let figures = result?;
        let sent = sent.load(Ordering::Relaxed);
        let rate = sent as f64 / begin.elapsed().as_secs_f64();
        let dropped = refused(&figures);
        println!("{rate:.0} datagrams a second from strangers, {dropped} of {sent} counted");
        println!("{}", figures["counters"]);
        assert!(kind != Kind::Keyed || count(&figures, "challenged") > 0);
        assert!(sent > 0 && dropped > sent / 2, "no flood: {rate:.0} a second");
        Ok(())
    })
}

/// What an end says that it has dropped of what strangers sent.
pub(crate) fn refused(figures: &Value) -> u64 {
    DROPPED.iter().map(|name| count(figures, name)).sum()
}

/// Ends the flood, also where a panic leaves the scope, which waits for the flood's thread.
struct StopsOnDrop<'a>(&'a AtomicBool);

impl Drop for StopsOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Links begin, one after the other, and the last one carries packets; the listener's figures.
fn links(world: &World) -> Result<Value> {
    let listener = world.listen(&format!("{RIGHT}:{PORT}"))?;
    let mut times = Vec::new();
    let mut last = None;
    for _ in 0..RUNS {
        last.take().map_or(Ok(()), Link::kill)?;
        let mut dialer = world.dial(&format!("{RIGHT}:{PORT}"))?;
        times.push(until_up(&mut dialer)?);
        last = Some(dialer);
    }
    times.sort();
    println!("until a link is up, sorted: {times:.1?}");
    assert!(!has_steady_clock() || times[RUNS - 1] < LONGEST, "{times:?}");
    let dialer = last.ok_or("no link")?;
    carries_all(world.hosts(), INNER[1])?;
    carries_all([&world.right, &world.left], INNER[0])?;
    ended(dialer)?;
    let figures = ended(listener)?;
    // A dialer that ends before the listener has heard of it again has been a session to nobody.
    let sessions = count(&figures, "sessions");
    assert!(sessions <= RUNS as u64 && sessions > 0, "{sessions} sessions of {RUNS} dialers");
    assert!(!has_steady_clock() || sessions == RUNS as u64, "{sessions} of {RUNS}");
    Ok(figures)
}

/// The time until an end that has just started knows that its peer is there.
fn until_up(dialer: &mut Link) -> Result<Duration> {
    let begin = Instant::now();
    while let Some(line) = dialer.line_within(PATIENCE.saturating_sub(begin.elapsed()))? {
        if line.contains("the peer is there") {
            return Ok(begin.elapsed());
        }
        println!("after {:.1?}: {}", begin.elapsed(), line.trim());
    }
    Err(format!("no link after {:.1?}", begin.elapsed()).into())
}

/// Packets that the link sends once each: all of them arrive, but for those that the kernel drops
/// since a process is too late to read them.
pub(crate) fn carries_all([from, to]: [&Namespace; 2], address: &str) -> Result {
    let receiver = to.run(|| Ok(UdpSocket::bind((address, 5002))))??;
    // All that arrives is there long before.
    receiver.set_read_timeout(Some(Duration::from_secs(2)))?;
    let sender = from.run(|| Ok(UdpSocket::bind("0.0.0.0:0")))??;
    sender.connect((address, 5002))?;
    let before = dropped(from)? + dropped(to)?;
    thread::scope(|scope| -> Result {
        let sending = scope.spawn(move || {
            for number in 0..PACKETS {
                sender.send(&number.to_be_bytes()).ok();
                thread::sleep(Duration::from_millis(1));
            }
        });
        let (mut bytes, mut arrived) = ([0; 4], 0);
        while arrived < PACKETS {
            match receiver.recv(&mut bytes) {
                Ok(_) => arrived += 1,
                Err(_) if sending.is_finished() => break,
                Err(_) => (),
            }
        }
        let dropped = dropped(from)? + dropped(to)? - before;
        println!("{arrived} of {PACKETS} packets arrived; the kernel dropped {dropped}");
        let least = u64::from(PACKETS).saturating_sub(dropped);
        assert!(u64::from(arrived) >= least, "{arrived} of {PACKETS}, {dropped} dropped");
        assert!(arrived > 0 && (dropped == 0 || !has_steady_clock()), "{dropped} dropped");
        Ok(())
    })
}

/// What the kernel has dropped in a namespace because a process was late: at the full buffers of
/// UDP sockets, and at the full queue of the link's device.
fn dropped(namespace: &Namespace) -> Result<u64> {
    let read = |name| namespace.run(move || Ok(std::fs::read_to_string(name)));
    let snmp = read("/proc/thread-self/net/snmp")??;
    let udp: Vec<_> = snmp.lines().filter(|line| line.starts_with("Udp:")).collect();
    let full = udp.get(1).and_then(|line| line.split_whitespace().nth(5)).ok_or("no Udp:")?;
    let devices = read("/proc/thread-self/net/dev")??;
    let device = devices.lines().find(|line| line.trim_start().starts_with("mend0:"));
    // The twelfth figure: packets to be sent that were dropped.
    let queue = device.and_then(|line| line.split_whitespace().nth(12)).ok_or("no mend0")?;
    Ok(full.parse::<u64>()? + queue.parse::<u64>()?)
}

/// The first datagram of an end that dials, to which nobody has listened.
fn record(world: &World) -> Result<Vec<u8>> {
    let socket = world.right.run(|| Ok(UdpSocket::bind((RIGHT, PORT))))??;
    socket.set_read_timeout(Some(PATIENCE))?;
    let dialer = world.dial(&format!("{RIGHT}:{PORT}"))?;
    let mut bytes = vec![0; 2_000];
    let length = socket.recv(&mut bytes)?;
    dialer.kill()?;
    bytes.truncate(length);
    Ok(bytes)
}

/// Initiations for the listener with this public key that have all but the right private key.
pub(crate) fn forge(peer: PublicKey, listener: Ipv4Addr) -> Result<Vec<Vec<u8>>> {
    let keys = Keys { private: PrivateKey::generate()?, peer, psk: None };
    Ok((0..FORGED).filter_map(|_| initiation(&keys, listener)).collect())
}

/// What an end with these keys begins with.
pub(crate) fn initiation(keys: &Keys, listener: Ipv4Addr) -> Option<Vec<u8>> {
    let security = Security::Noise(keys.clone(), Rekey::default());
    let listener = Address::Udp((listener, PORT).into());
    let mut end = Endpoint::new(&security, Some(listener), Duration::from_secs(1));
    end.handle_timeout(airmend_proto::Instant::ZERO);
    end.poll_transmit().map(|(_, initiation)| initiation)
}

/// Sends datagrams of a kind, so many a second, until told to stop, in the calling thread's
/// namespace.
pub(crate) fn flood(
    (kind, rate): (Kind, f64),
    target: Target,
    recorded: &[Vec<u8>],
    sent: &AtomicU64,
    stop: &AtomicBool,
) -> std::io::Result<()> {
    // The kernel writes the checksum and the length of the IP header.
    let raw = socket(AddressFamily::Inet, SockType::Raw, SockFlag::empty(), SockProtocol::Raw)?;
    let to = SockaddrIn::from(SocketAddrV4::new(target.listener, 0));
    let mut random = Stream::new(7, 0, 0, Purpose::Loss);
    let begin = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        let due = (begin.elapsed().as_secs_f64() * rate) as u64;
        for _ in sent.load(Ordering::Relaxed)..due {
            let packet = packet(kind, target, recorded, &mut random);
            sendto(raw.as_raw_fd(), &packet, &to, MsgFlags::empty()).ok();
        }
        sent.store(due, Ordering::Relaxed);
        thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// An IPv4 packet with one datagram for the listener.
fn packet(kind: Kind, target: Target, recorded: &[Vec<u8>], random: &mut Stream) -> Vec<u8> {
    let mut below = |limit: u32| (random.uniform() * f64::from(limit)) as u32;
    let source = match kind {
        // The peer's own address among them.
        Kind::Forged | Kind::Keyed if below(10) > 0 => NOBODY + below(1 << 17),
        _ => u32::from(target.peer),
    };
    let content = match kind {
        Kind::Forged => [Kind::Noise, Kind::Header, Kind::Replay][below(3) as usize],
        kind => kind,
    };
    let initiation = &recorded[below(recorded.len() as u32) as usize];
    let payload: Vec<u8> = match content {
        Kind::Replay | Kind::Keyed => initiation.clone(),
        Kind::Header => {
            let mut bytes: Vec<u8> = (0..initiation.len()).map(|_| below(256) as u8).collect();
            bytes[..4].copy_from_slice(&initiation[..4]);
            // One in four has the header of another message.
            if below(4) == 0 {
                bytes[0] = below(8) as u8;
            }
            bytes
        }
        _ => (0..1 + below(200)).map(|_| below(256) as u8).collect(),
    };
    let from_port = (1024 + below(60_000)) as u16;
    let udp_length = (8 + payload.len()) as u16;
    let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0];
    packet.extend_from_slice(&source.to_be_bytes());
    packet.extend_from_slice(&target.listener.octets());
    for field in [from_port, PORT, udp_length, 0] {
        packet.extend_from_slice(&field.to_be_bytes());
    }
    packet.extend_from_slice(&payload);
    packet
}
