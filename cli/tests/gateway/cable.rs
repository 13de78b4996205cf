//! Cables between machines, each with a rate, a delay and losses: a thread carries their frames,
//! and so it knows what crossed when, whatever happens to the machines.

use airmend_proto::link::{ErrorModel, Link, LinkParams};
use airmend_proto::wire::checksum::of_pseudo_header;
use airmend_proto::wire::tcp::Segment;
use airmend_proto::{Instant as LinkInstant, LinkType, Packet};
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::unistd::{read, write};
use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Longer than any frame here.
const FRAME_BYTES: usize = 1 << 16;
/// Frames read from one end before the other is looked at.
const BATCH: usize = 64;
/// How often an idle thread looks whether something is to be inserted, or it is to end.
const IDLE: Duration = Duration::from_millis(2);
/// So many frames are inserted at a time, at most every so often: fewer than the queue of an air
/// interface holds.
const INSERTED: usize = 20;
const INSERTION: Duration = Duration::from_millis(2);

/// One of the two ends of a cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// At the host.
    Host,
    /// At the base station.
    Station,
}

/// What a cable is like. Only TCP meets it: all else crosses at once and whole.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quality {
    pub(crate) rate_bps: u64,
    pub(crate) delay: Duration,
    /// Frames that wait for the cable at most.
    pub(crate) queue_frames: usize,
    pub(crate) loss: f64,
    /// Frames towards the base station get a VLAN tag with this number, those from there lose it.
    pub(crate) vlan: Option<u16>,
    /// With each ACK towards the base station comes another, which claims too much and whose
    /// checksum is wrong: of one in 64 it is the pseudo-header's, as if it was left to a card.
    pub(crate) is_forged: bool,
}

impl Default for Quality {
    fn default() -> Self {
        Self {
            rate_bps: 1_000_000_000,
            delay: Duration::ZERO,
            queue_frames: 2_000,
            loss: 0.0,
            vlan: None,
            is_forged: false,
        }
    }
}

/// Both ends of a cable: raw sockets on interfaces whose other halves are in the machines.
pub(crate) struct Ends {
    pub(crate) host: OwnedFd,
    pub(crate) station: OwnedFd,
}

/// The thread that carries the frames of all cables; it ends with this value.
pub(crate) struct Cables {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// What has come out of the base station's end of one cable.
#[derive(Debug, Default)]
struct Log {
    /// When each TCP segment came.
    forwarded: Vec<Instant>,
    /// TCP frames that were lost on their way from the base station.
    lost: u64,
    /// Frames that are no TCP, in both directions.
    others: u64,
}

/// Frames to be inserted: the number of the cable, the end they leave at, their bytes.
type Insertion = (usize, End, Vec<u8>);

#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    logs: Mutex<Vec<Log>>,
    insertions: Mutex<VecDeque<Insertion>>,
}

impl Cables {
    /// Begins to carry frames; losses follow from the seed.
    pub(crate) fn start(cables: Vec<(Ends, Quality)>, seed: u64) -> Self {
        let shared = Arc::new(Shared::default());
        lock(&shared.logs).resize_with(cables.len(), Log::default);
        let carriers: Vec<Carrier> =
            (0..).zip(cables).map(|(n, c)| Carrier::new(c, n, seed)).collect();
        let for_thread = Arc::clone(&shared);
        let thread = thread::spawn(move || carry(carriers, &for_thread));
        Self { shared, thread: Some(thread) }
    }

    /// The longest time between `begin` and `end` in which no TCP segment came from the base
    /// station into this cable.
    pub(crate) fn longest_gap(&self, cable: usize, begin: Instant, end: Instant) -> Duration {
        let logs = lock(&self.shared.logs);
        let inside = logs[cable].forwarded.iter().filter(|at| (begin..end).contains(at));
        let mut last = begin;
        let gaps = inside.chain([&end]).map(|at| *at - std::mem::replace(&mut last, *at));
        gaps.max().unwrap_or_default()
    }

    /// TCP frames that came from the base station into this cable, and how many were lost there.
    pub(crate) fn carried(&self, cable: usize) -> (u64, u64) {
        let logs = lock(&self.shared.logs);
        (logs[cable].forwarded.len() as u64, logs[cable].lost)
    }

    /// Frames that are no TCP, in both directions of this cable.
    pub(crate) fn others(&self, cable: usize) -> u64 {
        lock(&self.shared.logs)[cable].others
    }

    /// Puts a frame into the machine at this end, as if the cable had carried it.
    pub(crate) fn insert(&self, cable: usize, end: End, frame: Vec<u8>) {
        lock(&self.shared.insertions).push_back((cable, end, frame));
    }

    /// Frames that still wait to be inserted.
    pub(crate) fn to_insert(&self) -> usize {
        lock(&self.shared.insertions).len()
    }
}

impl Drop for Cables {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One cable at work.
struct Carrier {
    ends: Ends,
    vlan: Option<u16>,
    is_forged: bool,
    /// ACKs forged so far.
    forged: u32,
    /// From the host, and from the base station.
    links: [Link; 2],
    /// Where frames are read to, kept since it is long.
    buffer: Box<[u8]>,
}

impl Carrier {
    fn new((ends, quality): (Ends, Quality), number: u32, seed: u64) -> Self {
        let link = |direction| {
            let Quality { rate_bps, delay, queue_frames, loss, .. } = quality;
            let params = LinkParams { rate_bps, delay, queue_frames, lookahead: Duration::ZERO };
            Link::new(params, ErrorModel::Loss(loss).process(seed, number, direction))
        };
        Self {
            ends,
            vlan: quality.vlan,
            is_forged: quality.is_forged,
            forged: 0,
            links: [link(0), link(1)],
            buffer: vec![0; FRAME_BYTES].into(),
        }
    }

    fn end(&self, end: End) -> &OwnedFd {
        match end {
            End::Host => &self.ends.host,
            End::Station => &self.ends.station,
        }
    }

    /// Takes what has come into one end.
    fn take(&mut self, from: End, now: LinkInstant, log: &mut Log) {
        for _ in 0..BATCH {
            let end = match from {
                End::Host => &self.ends.host,
                End::Station => &self.ends.station,
            };
            let Ok(length) = read(end, &mut self.buffer) else { return };
            let frame = Packet::new(LinkType::Ethernet, self.buffer[..length].to_vec().into());
            let Ok(segment) = Segment::parse(&frame) else {
                log.others += 1;
                self.give(from, frame.bytes());
                continue;
            };
            if self.is_forged && from == End::Host {
                self.give(from, &forged(&frame, &segment, self.forged.is_multiple_of(64)));
                self.forged = self.forged.wrapping_add(1);
            }
            if from == End::Station {
                log.forwarded.push(Instant::now());
            }
            self.links[from as usize].send(now, frame);
            log.lost = self.links[End::Station as usize].counters().lost;
        }
    }

    /// Hands over a frame that has crossed.
    fn give(&self, from: End, frame: &[u8]) {
        // An interface that is down refuses it, as a real one would.
        match (from, self.vlan) {
            (End::Host, None) => write(&self.ends.station, frame).ok(),
            (End::Host, Some(vlan)) => write(&self.ends.station, &tagged(frame, vlan)).ok(),
            (End::Station, None) => write(&self.ends.host, frame).ok(),
            (End::Station, Some(_)) => write(&self.ends.host, &untagged(frame)).ok(),
        };
    }

    fn deliver(&mut self, now: LinkInstant) {
        for from in [End::Host, End::Station] {
            while let Some(delivery) = self.links[from as usize].poll_delivery(now) {
                self.give(from, delivery.packet.bytes());
            }
        }
    }
}

/// The frame, but it acknowledges 64 kB more, with a checksum that is wrong in every case: the sum
/// over an ACK of which the upper half goes from 0xffff to 0 would not change.
fn forged(frame: &Packet, segment: &Segment, is_pseudo_header: bool) -> Vec<u8> {
    let mut bytes = frame.bytes().to_vec();
    let tcp = usize::from(segment.transport_offset);
    if let Some(ack) = bytes.get_mut(tcp + 8..).and_then(<[u8]>::first_chunk_mut) {
        *ack = u32::from_be_bytes(*ack).wrapping_add(1 << 16).to_be_bytes();
    }
    if let Some([high, low]) = bytes.get_mut(tcp + 16..).and_then(<[u8]>::first_chunk_mut) {
        let (source, destination) = (&segment.source.address, &segment.destination.address);
        let length = u32::from(segment.payload_offset) - tcp as u32 + segment.payload_len;
        match is_pseudo_header {
            true => [*high, *low] = of_pseudo_header(source, destination, length).to_be_bytes(),
            false => *high ^= 1,
        }
    }
    bytes
}

/// The frame with an 802.1Q tag behind its addresses.
fn tagged(frame: &[u8], vlan: u16) -> Vec<u8> {
    let (addresses, rest) = frame.split_at(frame.len().min(12));
    [addresses, &[0x81, 0x00], &vlan.to_be_bytes(), rest].concat()
}

/// The frame without it.
fn untagged(frame: &[u8]) -> Vec<u8> {
    match frame.get(12..14) {
        Some([0x81, 0x00]) => [&frame[..12], frame.get(16..).unwrap_or(&[])].concat(),
        _ => frame.to_vec(),
    }
}

fn carry(mut cables: Vec<Carrier>, shared: &Shared) {
    // A late thread would be taken for a late gateway. Not everybody may ask for this.
    let me = nix::unistd::gettid().to_string();
    let mut chrt = Command::new("chrt");
    let chrt = chrt.args(["--fifo", "--pid", "2", &me]).stdout(Stdio::null()).stderr(Stdio::null());
    chrt.status().ok();
    let begin = Instant::now();
    let mut inserted = begin;
    let elapsed = || LinkInstant::from_nanos(begin.elapsed().as_nanos() as u64);
    while !shared.stop.load(Ordering::Relaxed) {
        for (cable, log) in cables.iter_mut().zip(lock(&shared.logs).iter_mut()) {
            cable.take(End::Host, elapsed(), log);
            cable.take(End::Station, elapsed(), log);
            cable.deliver(elapsed());
        }
        if inserted.elapsed() >= INSERTION {
            inserted = Instant::now();
            let mut insertions = lock(&shared.insertions);
            let count = insertions.len().min(INSERTED);
            for (cable, end, frame) in insertions.drain(..count) {
                write(cables[cable].end(end), &frame).ok();
            }
        }
        let links = cables.iter().flat_map(|cable| &cable.links);
        let next = links.filter_map(Link::next_delivery).min();
        let wait = next.map_or(IDLE, |at| at.since(elapsed()).min(IDLE));
        let ends = cables.iter().flat_map(|cable| [&cable.ends.host, &cable.ends.station]);
        let mut ends: Vec<PollFd<'_>> =
            ends.map(|end| PollFd::new(end.as_fd(), PollFlags::POLLIN)).collect();
        ppoll(&mut ends, Some(wait.into()), None).ok();
    }
}
