//! `--bridge`: two LANs that a lossy radio joins.
//!
//! ```text
//! host ── eth0, station, radio0 ══ air ══ radio0, station, eth0 ── host
//! ```

use crate::kit::raw::open_end;
use crate::kit::{Result, TempFile, airmend, until};
use crate::stream::stream;
use crate::world::Link;
use crate::{BYTES, count, ended, nothing};
use airmend_live::lab::Namespace;
use airmend_proto::random::{Purpose, Stream};
use nix::sys::socket::{MsgFlags, recv, send};
use std::net::{IpAddr, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Addresses of the second host.
const ADDRESS: &str = "10.7.0.2";
const ADDRESS_V6: &str = "fd07::2";
/// Of each frame on the air, in each direction.
const LOSS: f64 = 0.05;
/// The destination of bridge protocol data units (IEEE 802.1D §7.12.3), and a frame to it.
const STP: [u8; 6] = [0x01, 0x80, 0xc2, 0, 0, 0];

/// Two hosts, two stations, and the air between these.
struct Lans {
    hosts: [Namespace; 2],
    stations: [Namespace; 2],
    _air: Air,
    key: TempFile,
}

impl Lans {
    fn new() -> Result<Self> {
        let hosts = [Namespace::new()?, Namespace::new()?];
        let stations = [Namespace::new()?, Namespace::new()?];
        let middle = Namespace::new()?;
        for (number, (host, station)) in (1..).zip(hosts.iter().zip(&stations)) {
            let (at, air) = (station.path(), format!("air{number}"));
            host.ip(&format!(
                "link add eth0 type veth peer name eth0 netns {}\nlink set eth0 up\n\
                 address add 10.7.0.{number}/24 dev eth0\n\
                 address add fd07::{number}/64 dev eth0 nodad\n",
                at.display()
            ))?;
            middle.ip(&format!(
                "link add {air} type veth peer name radio0 netns {}\nlink set {air} up\n",
                at.display()
            ))?;
            station.ip("link set eth0 up\nlink set radio0 up\n")?;
        }
        let open = |air: &'static str| {
            middle.run(move || Ok(open_end(air).map_err(|error| error.to_string())))
        };
        let air = Air::start([open("air1")??, open("air2")??]);
        let key = TempFile::new("key");
        assert!(airmend().arg("keygen").arg(&key.0).output()?.status.success());
        Ok(Self { hosts, stations, _air: air, key })
    }

    /// Starts the link at one of the stations: the first one listens.
    fn link(&self, station: usize) -> Result<Link> {
        self.link_with(station, "tulip")
    }

    fn link_with(&self, station: usize, arq: &str) -> Result<Link> {
        let mut command = airmend();
        command.args(["link", "--json", "--bridge", "eth0", "--over", "ethernet"]);
        command.args(["--interface", "radio0", "--class", "any=reliable", "--arq", arq]);
        command.args([["--listen", "any"], ["--peer", "ff:ff:ff:ff:ff:ff"]][station]);
        command.arg("--key-file").arg(&self.key.0);
        Link::start(&self.stations[station], command)
    }

    fn stream(&self, to: &str, meanwhile: impl FnOnce(&dyn Fn() -> u64) -> Result) -> Result {
        let [near, far] = &self.hosts;
        stream([near, far], to.parse()?, BYTES, meanwhile)
    }
}

/// The thread that carries frames between two interfaces, but for those that it loses.
struct Air {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Air {
    fn start(ends: [OwnedFd; 2]) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let mut fate = Stream::new(1, 0, 0, Purpose::Loss);
            let mut frame = [0; 65_536];
            while !stopped.load(Ordering::Relaxed) {
                let mut is_idle = true;
                for (from, to) in [(0, 1), (1, 0)] {
                    let read = recv(ends[from].as_raw_fd(), &mut frame, MsgFlags::empty());
                    let Ok(length) = read else { continue };
                    is_idle = false;
                    if !fate.happens(LOSS) {
                        send(ends[to].as_raw_fd(), &frame[..length], MsgFlags::empty()).ok();
                    }
                }
                if is_idle {
                    thread::sleep(Duration::from_micros(50));
                }
            }
        });
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for Air {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().map(JoinHandle::join);
    }
}

/// The hosts find each other by ARP and neighbour discovery; frames of 1500 bytes cross a radio of
/// the same MTU.
pub(crate) fn bridged_lans() -> Result {
    let lans = Lans::new()?;
    let ends = [lans.link(0)?, lans.link(1)?];
    for address in [ADDRESS, ADDRESS_V6] {
        lans.stream(address, nothing)?;
    }
    let largest: IpAddr = ADDRESS.parse()?;
    datagram(&lans, largest, &[7; 1_472])?;
    let figures = ends.into_iter().map(ended).collect::<Result<Vec<_>>>()?;
    for figures in &figures {
        assert_eq!(count(figures, "device_drops"), 0, "{figures}");
    }
    assert!(count(&figures[0], "fragmented") > 0, "the largest cross in parts: {}", figures[0]);
    Ok(())
}

/// Local Acknowledgment joins two LANs too: its own use [lack §3.1].
pub(crate) fn bridged_by_lack() -> Result {
    for arq in ["lack", "lack-flow"] {
        let lans = Lans::new()?;
        let ends = [lans.link_with(0, arq)?, lans.link_with(1, arq)?];
        lans.stream(ADDRESS, nothing)?;
        lans.stream(ADDRESS_V6, nothing)?;
        for figures in ends.into_iter().map(ended).collect::<Result<Vec<_>>>()? {
            println!("{arq}: {}", figures["agent_counters"]);
            assert_eq!(count(&figures, "device_drops"), 0, "{figures}");
        }
    }
    Ok(())
}

/// Waits until a datagram from the first host arrives, whole.
fn datagram(lans: &Lans, to: IpAddr, bytes: &[u8]) -> Result {
    let [near, far] = &lans.hosts;
    let receiver = far.run(|| Ok(UdpSocket::bind(("0.0.0.0", 67))))??;
    let sender = near.run(|| Ok(UdpSocket::bind(("0.0.0.0", 68))))??;
    sender.set_broadcast(true)?;
    receiver.set_read_timeout(Some(Duration::from_millis(100)))?;
    until("the datagram", || {
        sender.send_to(bytes, (to, 67)).ok()?;
        let mut buffer = [0; 2_000];
        let length = receiver.recv(&mut buffer).ok()?;
        (buffer[..length] == *bytes).then_some(())
    })
}

/// What DHCP, discovery protocols, spanning trees and others send, byte by byte.
pub(crate) fn bridged_frames() -> Result {
    let lans = Lans::new()?;
    let ends = [lans.link(0)?, lans.link(1)?];
    let [near, far] = &lans.hosts;
    let open =
        |host: &Namespace| host.run(|| Ok(open_end("eth0").map_err(|error| error.to_string())));
    let sockets = [open(near)??, open(far)??];
    let groups: [[u8; 6]; 4] = [[0xff; 6], [1, 0, 0x5e, 0, 0, 251], STP, [2, 0, 0, 0, 0, 1]];
    for (number, (group, length)) in (0..).zip(groups.into_iter().zip([46, 300, 49, 1_500])) {
        let header = [&group[..], &[2, 0, 0, 0, 0, 9], &[0x88, 0xb6, number]].concat();
        let frame = [header, vec![number; length - 1]].concat();
        crosses(&sockets, &frame, &frame).map_err(|error| format!("to {group:02x?}: {error}"))?;
    }
    // A socket sees the inner one of two VLAN tags: the kernel takes the outer one away.
    let (addresses, inner) = ([[0xff; 6], [2, 0, 0, 0, 0, 9]].concat(), [0x81, 0, 0xe0, 7]);
    let rest = [&inner[..], &[0x88, 0xb6], &[9; 100]].concat();
    let frame = [&addresses[..], &[0x88, 0xa8, 0, 8], &rest].concat();
    crosses(&sockets, &frame, &[addresses, rest].concat())
        .map_err(|error| format!("VLAN: {error}"))?;
    // As DHCP begins: a broadcast through an interface that has no address yet.
    near.ip("address flush dev eth0 scope global\nroute add default dev eth0\n")?;
    datagram(&lans, "255.255.255.255".parse()?, b"DHCPDISCOVER")?;
    ends.into_iter().try_for_each(|end| ended(end).map(drop))
}

/// Waits until a frame from the first host arrives with these bytes.
fn crosses([from, to]: &[OwnedFd; 2], frame: &[u8], expected: &[u8]) -> Result {
    until("the frame", || {
        send(from.as_raw_fd(), frame, MsgFlags::empty()).ok()?;
        thread::sleep(Duration::from_millis(20));
        let mut read = [0; 2_000];
        let next =
            || recv(to.as_raw_fd(), &mut read, MsgFlags::empty()).ok().map(|n| read[..n].to_vec());
        std::iter::from_fn(next).any(|arrived| arrived == expected).then_some(())
    })
}

/// Connections survive the loss of either station.
pub(crate) fn bridge_killed() -> Result {
    let lans = Lans::new()?;
    let mut ends = [0, 1].map(|station| lans.link(station).map(Some));
    lans.stream(ADDRESS, |received| {
        for (station, share) in [(0, 4), (1, 2)] {
            until("progress", || (received() >= BYTES / share).then_some(()))?;
            let end = ends[station].as_mut().map_err(|error| error.to_string())?;
            end.take().ok_or("not running")?.kill()?;
            assert!(received() < BYTES, "killed in the middle");
            ends[station] = lans.link(station).map(Some);
        }
        Ok(())
    })?;
    for end in ends {
        ended(end?.ok_or("not running")?)?;
    }
    Ok(())
}
