//! What the kernel tells: copies of data that left towards the mobiles, and their ACKs, in the
//! order in which they crossed the interface.

use crate::bpf::{BpfPrograms, Report};
use crate::clock::{self, Clock};
use crate::device::offload::parse_frame;
use crate::device::reinjection::Reinjection;
use crate::sys::{Copied, PacketSocket};
use airmend_proto::wire::checksum;
use airmend_proto::wire::tcp::{Bypass, Segment};
use airmend_proto::{Instant, LinkType, Packet, Port};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// Read at most in one turn: between two turns the heartbeat must be renewed and timers run.
const REPORTS: usize = 512;
const COPIES: usize = 1024;
const COPIED_BYTES: usize = 8 << 20;
/// The offset of the checksum in a TCP header.
const TCP_CHECKSUM: usize = 16;

/// One packet that crossed the air interface.
#[derive(Debug)]
pub(super) struct Arrival {
    /// The time of the crossing.
    pub(super) at: Instant,
    /// The side that the packet came from.
    pub(super) from: Port,
    pub(super) packet: Packet,
    /// The kernel has passed it on; if not, somebody must.
    pub(super) passed: bool,
    /// Its checksum is wrong: nobody may believe it.
    pub(super) damaged: bool,
}

/// The queues that the kernel fills.
#[derive(Debug)]
pub(super) struct Intake {
    copies: PacketSocket,
    link_type: LinkType,
    data: VecDeque<Arrival>,
    acks: VecDeque<Arrival>,
    /// The merge watermark: all that crossed until this time has been read. Later packets wait:
    /// before an ACK is handled, the data that it acknowledges must be known, and before the
    /// agent's time advances, the ACKs until then.
    watermark: Instant,
    /// What has left before the next ACK is judged is at hand.
    is_refreshed: bool,
    drops: u64,
}

impl Intake {
    pub(super) fn new(copies: PacketSocket, link_type: LinkType) -> Self {
        let (data, acks) = (VecDeque::new(), VecDeque::new());
        Self {
            copies,
            link_type,
            data,
            acks,
            watermark: Instant::ZERO,
            is_refreshed: false,
            drops: 0,
        }
    }

    /// Reads what has arrived and returns the merge watermark: everything that crossed until then
    /// has been read. `reinjection` has the packets of mobiles that are too long for a report.
    ///
    /// # Errors
    /// A device fails.
    pub(super) fn collect(
        &mut self,
        clock: &Clock,
        bpf: &mut BpfPrograms,
        reinjection: &mut Reinjection,
    ) -> io::Result<Instant> {
        let begin = clock.now();
        while self.acks.len() < REPORTS {
            let link_type = self.link_type;
            let take = |report: Report<'_>| arrival(clock, link_type, &report);
            let Some(arrival) = bpf.next_report(take) else { break };
            if let Some(arrival) = arrival {
                queue_up(&mut self.acks, arrival);
            }
        }
        let is_full = self.acks.len() >= REPORTS;
        let last_ack = self.acks.back().filter(|_| is_full).map(|ack| ack.at);
        // After the reports, which know when they crossed, and with places of its own: nobody else
        // takes what waits there.
        take_redirected(reinjection, begin, &mut self.acks)?;
        let last_copy = self.collect_copies(clock);
        self.watermark = [last_ack, last_copy].into_iter().flatten().fold(begin, Instant::min);
        Ok(self.watermark)
    }

    /// Reads copies; if they were too many for one turn, says when the last one read had left.
    fn collect_copies(&mut self, clock: &Clock) -> Option<Instant> {
        let (now, today) = (clock::monotonic(), clock::realtime());
        let mut bytes = 0;
        while self.data.len() < COPIES && bytes < COPIED_BYTES {
            let copied = self.copies.receive_copy()?;
            let at = clock.at(now.saturating_sub(today.saturating_sub(copied.at)));
            let Some(packet) = data_packet(self.link_type, copied) else {
                self.drops += 1;
                continue;
            };
            bytes += packet.bytes().len();
            let (passed, damaged) = (true, false);
            let arrival = Arrival { at, from: Port::Wired, packet, passed, damaged };
            queue_up(&mut self.data, arrival);
        }
        self.data.back().map(|copy| copy.at)
    }

    /// The next packet, by the time when it crossed.
    ///
    /// Before an ACK that may lead to a repair, all that has left by now: the agent sends the
    /// repair after it, and takes what arrives of later frames for a sign that it is lost.
    pub(super) fn next(&mut self, clock: &Clock) -> Option<Arrival> {
        let at = |queue: &VecDeque<Arrival>| queue.front().map(|arrival| arrival.at);
        let (data, ack) = (at(&self.data), at(&self.acks));
        if data.is_some_and(|data| data <= self.watermark && ack.is_none_or(|ack| data <= ack)) {
            return self.data.pop_front();
        }
        let ack = self.acks.front().filter(|ack| ack.at <= self.watermark)?;
        if !ack.passed {
            if !self.is_refreshed {
                self.collect_copies(clock);
                self.is_refreshed = true;
            }
            if let Some(data) = self.data.pop_front() {
                return Some(data);
            }
            self.is_refreshed = false;
        }
        self.acks.pop_front()
    }

    /// Whether the mobiles' packets come faster than they are read: the kernel may have let some
    /// pass without telling.
    pub(super) fn is_behind(&self) -> bool {
        self.acks.len() >= REPORTS
    }

    /// Whether something waits for the next turn.
    pub(super) fn has_more(&self) -> bool {
        !self.data.is_empty() || !self.acks.is_empty()
    }

    /// Becomes readable with every copy.
    pub(super) fn copies_readable(&self) -> BorrowedFd<'_> {
        self.copies.as_fd()
    }

    /// Takes note of an error that the socket reports, such as an interface set down: until then it
    /// would seem readable.
    pub(super) fn take_error(&self) -> io::Result<()> {
        crate::sys::option(self.copies.as_fd(), libc::SOL_SOCKET, libc::SO_ERROR).map(drop)
    }

    /// Whether the interface is still there for this process.
    pub(super) fn has_interface(&self) -> bool {
        self.copies.is_bound()
    }

    /// Copies that were lost, or came without all of their bytes: the agent did not see them.
    pub(super) fn drops(&mut self) -> u64 {
        self.drops += self.copies.drops().unwrap_or(0);
        self.drops
    }
}

/// Takes what was redirected to a device: nobody has passed it on.
fn take_redirected(
    reinjection: &mut Reinjection,
    at: Instant,
    queue: &mut VecDeque<Arrival>,
) -> io::Result<()> {
    while queue.len() < 2 * REPORTS
        && let Some(packet) = reinjection.receive()?
    {
        if matches!(Segment::parse(&packet), Err(Bypass::NotIp | Bypass::NotTcp)) {
            // Nobody redirected it: the kernel or a daemon speaks of itself on every device.
            continue;
        }
        let (packet, damaged) = match packet.segment_size() {
            // The kernel joins sound segments only.
            Some(_) => (packet, false),
            None => verify_checksum(packet),
        };
        queue_up(queue, Arrival { at, from: Port::Air, packet, passed: false, damaged });
    }
    Ok(())
}

/// Appends what crossed after everything in the queue, whatever its timestamp says: clocks are set,
/// and processors differ. Else the front could wait for ever for a watermark that the back sets.
fn queue_up(queue: &mut VecDeque<Arrival>, mut arrival: Arrival) {
    let last = queue.back().map_or(Instant::ZERO, |last| last.at);
    arrival.at = arrival.at.max(last);
    queue.push_back(arrival);
}

fn data_packet(link_type: LinkType, copied: Copied) -> Option<Packet> {
    let is_whole = copied.bytes.len() == copied.wire_len as usize;
    if !is_whole {
        return None;
    }
    parse_frame(link_type, copied.vnet_header, copied.vlan, copied.bytes)
}

fn arrival(clock: &Clock, link_type: LinkType, report: &Report<'_>) -> Option<Arrival> {
    let packet = parse_frame(link_type, [0; 10], report.vlan, report.bytes.into())?;
    let at = clock.at(Duration::from_nanos(report.at));
    let (packet, damaged) = if report.bytes.len() == report.wire_len as usize {
        verify_checksum(packet)
    } else {
        let captured = packet.shared_bytes();
        let extra = report.wire_len.saturating_sub(report.bytes.len() as u32);
        let wire_len = packet.wire_len() + extra;
        (Packet::truncated(link_type, captured, wire_len), false)
    };
    Some(Arrival { at, from: Port::Air, packet, passed: !report.diverted, damaged })
}

/// The packet with its checksum complete, and whether it is damaged.
fn verify_checksum(packet: Packet) -> (Packet, bool) {
    match check_checksum(&packet) {
        Checksum::Right => (packet, false),
        Checksum::LeftToCard(completed) => (completed, false),
        Checksum::Wrong => (packet, true),
    }
}

/// The state of a checksum field.
#[derive(Debug, PartialEq, Eq)]
enum Checksum {
    Right,
    /// It holds the pseudo-header's sum alone: the sender is on this very machine, and no card came
    /// between. The packet with the whole sum.
    LeftToCard(Packet),
    Wrong,
}

fn check_checksum(packet: &Packet) -> Checksum {
    let Ok(segment) = Segment::parse(packet) else { return Checksum::Right };
    let begin = usize::from(segment.transport_offset);
    let end = usize::from(segment.payload_offset) + segment.payload_len as usize;
    let (source, destination) = (&segment.source.address, &segment.destination.address);
    let Some(tcp) = packet.bytes().get(begin..end) else { return Checksum::Wrong };
    let length = tcp.len() as u32;
    if checksum::tcp(source, destination, tcp, length) == 0 {
        return Checksum::Right;
    }
    let field = tcp.get(TCP_CHECKSUM..).and_then(|rest| rest.first_chunk());
    let pseudo_header = !checksum::tcp(source, destination, &[], length);
    if field.map(|field| u16::from_be_bytes(*field)) != Some(pseudo_header) {
        return Checksum::Wrong;
    }
    let mut bytes = packet.bytes().to_vec();
    let field = begin + TCP_CHECKSUM;
    bytes[field..field + 2].fill(0);
    let sum = checksum::tcp(source, destination, &bytes[begin..end], length);
    bytes[field..field + 2].copy_from_slice(&sum.to_be_bytes());
    Checksum::LeftToCard(Packet::new(packet.link_type(), bytes.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmend_proto::wire::build::SegmentBuilder;

    #[test]
    fn a_queue_never_waits_for_what_is_behind_it() {
        let packet = Packet::new(LinkType::Ip, vec![0x45; 40].into());
        let arrival = |millis| Arrival {
            at: Instant::from_millis(millis),
            from: Port::Air,
            packet: packet.clone(),
            passed: false,
            damaged: false,
        };
        let mut queue = VecDeque::new();
        for millis in [7, 3, 9, 8] {
            queue_up(&mut queue, arrival(millis));
        }
        let times: Vec<_> = queue.iter().map(|arrival| arrival.at).collect();
        assert_eq!(times, [7, 7, 9, 9].map(Instant::from_millis));
    }

    #[test]
    fn a_checksum_is_right_left_to_a_card_or_wrong() {
        let packet = SegmentBuilder::new(([10, 0, 0, 2], 80), ([10, 0, 0, 1], 5000))
            .payload(b"hello")
            .build(LinkType::Ethernet);
        assert_eq!(check_checksum(&packet), Checksum::Right);
        let segment = Segment::parse(&packet).unwrap();
        let at = usize::from(segment.transport_offset) + TCP_CHECKSUM;
        let mut bytes = packet.bytes().to_vec();
        bytes[at] ^= 0x40;
        assert_eq!(check_checksum(&Packet::new(LinkType::Ethernet, bytes.into())), Checksum::Wrong);
        let sum =
            !checksum::tcp(&segment.source.address, &segment.destination.address, &[], 20 + 5);
        let mut bytes = packet.bytes().to_vec();
        bytes[at..at + 2].copy_from_slice(&sum.to_be_bytes());
        let left = Packet::new(LinkType::Ethernet, bytes.into());
        assert_eq!(check_checksum(&left), Checksum::LeftToCard(packet));
    }
}
