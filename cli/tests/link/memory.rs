//! What a peer, here one without a key, can make an end keep in memory: frames in parts that never
//! come whole, short packets each of which came in a long buffer, and as much as the window takes.

use crate::kit::{Result, airmend, until};
use crate::world::{INNER, LEFT, Link, RIGHT, World};
use airmend_proto::agents::tulip::frame::{Frame, FrameKind};
use airmend_proto::wire::seq::SeqNumber;
use airmend_proto::{Ecn, LinkType, Packet};
use std::net::UdpSocket;
use std::thread;
use std::time::Duration;

const PORT: u16 = 4433;
/// The epoch of the peer.
const EPOCH: u32 = 7;
/// What packets that wait take at most (docs/security.md), and what else an end needs: its
/// buffers, its tables, and what the allocator keeps.
const WAITING: u64 = 256 << 20;
const OTHER: u64 = 32 << 20;
/// Messages: a part of a frame, and a frame or a part with zeros behind it.
const PART: u8 = 0xf3;
const PADDED: u8 = 0xf4;
/// Zeros behind what is short: all of them are in the buffer that the short part is in.
const ZEROS: usize = 20_000;

struct Peer {
    socket: UdpSocket,
    /// An empty frame for the end's present run.
    frame: Frame,
}

pub(crate) fn parts() -> Result {
    grows_by_at_most(OTHER, |peer| {
        // One that is missing of each.
        for (number, part) in (0..64u32).flat_map(|number| (0..254).map(move |part| (number, part)))
        {
            let bytes = [&[PART][..], &number.to_be_bytes(), &[part, 255], &[0]].concat();
            peer.send_padded(&bytes)?;
        }
        Ok(())
    })
    .map(drop)
}

pub(crate) fn short_packets() -> Result {
    grows_by_at_most(OTHER, |peer| {
        (1..=12_000).try_for_each(|number| peer.send_padded(peer.waiting(number, 40).bytes()))
    })
    .map(drop)
}

pub(crate) fn full_window() -> Result {
    let grown = grows_by_at_most(WAITING + OTHER, |peer| {
        (1..=6_000).try_for_each(|number| peer.send(peer.waiting(number, 60_000).bytes()))
    })?;
    assert!(grown > WAITING / 2, "the window was not filled: {grown} bytes");
    Ok(())
}

/// Lets a peer do its worst, and measures what the end's memory grows by, in bytes.
fn grows_by_at_most(most: u64, attack: impl Fn(&Peer) -> Result) -> Result<u64> {
    let world = World::new()?;
    let mut command = airmend();
    command.args(["link", "--json", "--insecure", "--listen", &format!("{RIGHT}:{PORT}")]);
    command.args(["--address", &format!("{}/24", INNER[1])]);
    let link = Link::start(&world.right, command)?;
    let peer = Peer::new(&world)?;
    let before = memory(&link, "VmRSS:")?;
    attack(&peer)?;
    // All of it has been read when a frame behind it is answered.
    peer.answered()?;
    let grown = memory(&link, "VmHWM:")?.saturating_sub(before);
    println!("{} KiB in the end, which had {} KiB", grown >> 10, before >> 10);
    assert!(grown <= most, "{grown} bytes, and not {most}");
    link.kill()?;
    Ok(grown)
}

/// A figure of an end's process, in bytes.
fn memory(link: &Link, name: &str) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", link.id()))?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)).ok_or("no figure")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? << 10)
}

impl Peer {
    /// Learns which run of the end is the present one.
    fn new(world: &World) -> Result<Self> {
        let socket = world.left.run(|| Ok(UdpSocket::bind((LEFT, 0))))??;
        socket.connect((RIGHT, PORT))?;
        socket.set_read_timeout(Some(Duration::from_millis(20)))?;
        let frame = Frame {
            kind: FrameKind::Control,
            poll: true,
            more: false,
            by_serial: false,
            reads_version_2: false,
            reads_repairs: false,
            answers_ce: false,
            outer_ecn: Ecn::NotEct,
            from: EPOCH,
            to: 0,
            serial: SeqNumber(0),
            seq: SeqNumber(0),
            after: 0,
            ack: None,
            payload: None,
        };
        let mut peer = Self { socket, frame };
        peer.frame.to = peer.answered()?;
        Ok(peer)
    }

    /// Asks until there is an answer; the end's epoch.
    fn answered(&self) -> Result<u32> {
        let mut bytes = [0; 65_536];
        while self.socket.recv(&mut bytes).is_ok() {}
        let frame = Frame { poll: true, ..self.frame.clone() };
        until("an answer", || {
            self.send(frame.emit().bytes()).ok()?;
            let length = self.socket.recv(&mut bytes).ok()?;
            let frame = bytes.get(4..length)?.to_vec();
            let answer = Frame::parse(&Packet::new(LinkType::Frame, frame.into())).ok()?;
            Some(answer.from)
        })
    }

    /// A frame whose packet waits for the one before all, which never comes.
    fn waiting(&self, number: u16, length: usize) -> Packet {
        let seq = SeqNumber(number.into());
        let packet = Packet::new(LinkType::Ip, vec![0x45; length].into());
        let (kind, payload) = (FrameKind::Reliable, Some(packet));
        let frame = Frame { kind, serial: seq, seq, after: number, payload, ..self.frame.clone() };
        Frame { poll: false, ..frame }.emit()
    }

    /// Sends a datagram without a key, at a pace at which few are dropped at the end's socket.
    fn send(&self, frame: &[u8]) -> Result {
        thread::sleep(Duration::from_micros(100));
        self.socket.send(&[&[5, 0, 0, 0], frame].concat())?;
        Ok(())
    }

    fn send_padded(&self, bytes: &[u8]) -> Result {
        let length = (bytes.len() as u16).to_be_bytes();
        self.send(&[&[PADDED], &length[..], bytes, &[0; ZEROS]].concat())
    }
}
