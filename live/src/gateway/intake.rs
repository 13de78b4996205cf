//! What the kernel tells: copies of data and repairs that left towards the mobiles, and their ACKs,
//! in the order in which they crossed the interface.

use super::arrival::{Arrival, Kind, headers, queue_up};
use super::copies::Copies;
use crate::bpf::{BpfPrograms, Report};
use crate::clock::Clock;
use crate::device::reinjection::Reinjection;
use crate::sys::PacketSocket;
use airmend_proto::wire::checksum;
use airmend_proto::wire::tcp::{Bypass, Segment};
use airmend_proto::{Instant, LinkType, Packet};
use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// Read at most in one turn: between two turns the heartbeat must be renewed and timers run.
const REPORTS: usize = 512;

/// The queues that the kernel fills.
#[derive(Debug)]
pub(super) struct Intake {
    data: Copies,
    repairs: Copies,
    link_type: LinkType,
    acks: VecDeque<Arrival>,
    /// The merge watermark: all that crossed until this time has been read. Later packets wait:
    /// before an ACK is handled, the data and the repairs that it acknowledges must be known, and
    /// before the agent's time advances, the ACKs until then.
    watermark: Instant,
    /// What has left before the next ACK is judged is at hand.
    is_refreshed: bool,
}

impl Intake {
    /// `data` and `repairs` are the sockets that the two filters are attached to.
    pub(super) fn new(data: PacketSocket, repairs: PacketSocket, link_type: LinkType) -> Self {
        Self {
            data: Copies::of_data(data, link_type),
            repairs: Copies::of_repairs(repairs, link_type),
            link_type,
            acks: VecDeque::new(),
            watermark: Instant::ZERO,
            is_refreshed: false,
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
        let lasts = [last_ack, self.data.collect(clock), self.repairs.collect(clock)];
        self.watermark = lasts.into_iter().flatten().fold(begin, Instant::min);
        Ok(self.watermark)
    }

    /// The next packet, by the time when it crossed.
    ///
    /// Before an ACK that may lead to a repair, all that has left by now: the agent sends the
    /// repair after it, and takes what arrives of later frames for a sign that it is lost. In a
    /// turn that has lasted long enough, only what is at hand.
    pub(super) fn next(&mut self, clock: &Clock, is_over: bool) -> Option<Arrival> {
        let ack = self.acks.front().map(|ack| ack.at);
        let left = self.next_copy().front().map(|copy| copy.at);
        if left.is_some_and(|left| left <= self.watermark && ack.is_none_or(|ack| left <= ack)) {
            return self.next_copy().pop_front();
        }
        let ack = self.acks.front().filter(|ack| ack.at <= self.watermark)?;
        if ack.kind == Kind::Diverted {
            if !self.is_refreshed && !is_over {
                self.data.collect(clock);
                self.repairs.collect(clock);
                self.is_refreshed = true;
            }
            if let Some(copy) = self.next_copy().pop_front() {
                return Some(copy);
            }
            self.is_refreshed = false;
        }
        self.acks.pop_front()
    }

    /// The queue with the copy of what left first, if there is any.
    fn next_copy(&mut self) -> &mut VecDeque<Arrival> {
        let is_repair = match (self.data.first(), self.repairs.first()) {
            (Some(data), Some(repair)) => repair < data,
            (data, _) => data.is_none(),
        };
        if is_repair { &mut self.repairs.queue } else { &mut self.data.queue }
    }

    /// Whether something waits for the next turn.
    pub(super) fn has_more(&self) -> bool {
        let queues = [&self.data.queue, &self.repairs.queue, &self.acks];
        queues.iter().any(|queue| !queue.is_empty())
    }

    /// Become readable with every copy.
    pub(super) fn copies_readable(&self) -> [BorrowedFd<'_>; 2] {
        [self.data.readable(), self.repairs.readable()]
    }

    /// Takes note of errors that the sockets report, such as an interface set down: until then they
    /// would seem readable.
    pub(super) fn take_errors(&self) -> io::Result<()> {
        self.data.take_error()?;
        self.repairs.take_error()
    }

    /// Whether the interface is still there for this process.
    pub(super) fn has_interface(&self) -> bool {
        self.data.has_interface()
    }

    /// Copies that were lost, or came without all of their bytes: the agent did not see them.
    pub(super) fn drops(&mut self) -> u64 {
        self.data.drops() + self.repairs.drops()
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
        // The kernel joins sound segments only, and told which checksums were left to a card.
        let damaged = packet.segment_size().is_none() && checksum(&packet) != Checksum::Right;
        queue_up(queue, Arrival { at, kind: Kind::Diverted, packet, damaged, has_gap: false });
    }
    Ok(())
}

fn arrival(clock: &Clock, link_type: LinkType, report: &Report<'_>) -> Option<Arrival> {
    let packet = headers(link_type, report.vlan, report.bytes.into(), report.wire_len)?;
    let at = clock.at(Duration::from_nanos(report.at));
    let is_whole = report.bytes.len() == report.wire_len as usize;
    let (kind, packet, damaged) = match report.diverted {
        true if report.is_left_to_card => (Kind::Diverted, with_checksum(packet), false),
        true => {
            let damaged = checksum(&packet) != Checksum::Right;
            (Kind::Diverted, packet, damaged)
        }
        false => {
            let damaged = is_whole && checksum(&packet) == Checksum::Wrong;
            (Kind::Passed, packet, damaged)
        }
    };
    Some(Arrival { at, kind, packet, damaged, has_gap: report.has_gap })
}

/// The state of a checksum field.
#[derive(Debug, PartialEq, Eq)]
enum Checksum {
    Right,
    /// It holds the pseudo-header's sum alone: wrong, or left to a card, if the sender is on this
    /// very machine and no card came between.
    OfPseudoHeader,
    Wrong,
}

fn checksum(packet: &Packet) -> Checksum {
    let Ok(segment) = Segment::parse(packet) else { return Checksum::Right };
    let Some(tcp) = packet.bytes().get(tcp_of(&segment)) else { return Checksum::Wrong };
    let (source, destination) = (&segment.source.address, &segment.destination.address);
    let length = tcp.len() as u32;
    if checksum::tcp(source, destination, tcp, length) == 0 {
        return Checksum::Right;
    }
    let field = tcp.get(checksum::TCP_FIELD..).and_then(|rest| rest.first_chunk());
    let pseudo_header = checksum::of_pseudo_header(source, destination, length);
    match field.map(|field| u16::from_be_bytes(*field)) == Some(pseudo_header) {
        true => Checksum::OfPseudoHeader,
        false => Checksum::Wrong,
    }
}

/// The packet with the sum that was left to a card, which adds it to that of the pseudo-header.
fn with_checksum(packet: Packet) -> Packet {
    let Ok(segment) = Segment::parse(&packet) else { return packet };
    let tcp = tcp_of(&segment);
    let field = tcp.start + checksum::TCP_FIELD;
    let Some(sum) = packet.bytes().get(tcp).map(checksum::internet) else { return packet };
    let mut bytes = packet.bytes().to_vec();
    if let Some(field) = bytes.get_mut(field..).and_then(<[u8]>::first_chunk_mut) {
        *field = sum.to_be_bytes();
    }
    Packet::new(packet.link_type(), bytes.into())
}

/// Where its TCP header and payload are.
fn tcp_of(segment: &Segment) -> Range<usize> {
    let end = usize::from(segment.payload_offset) + segment.payload_len as usize;
    usize::from(segment.transport_offset)..end
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmend_proto::wire::build::SegmentBuilder;

    #[test]
    fn a_checksum_is_right_that_of_the_pseudo_header_or_wrong() {
        let packet = SegmentBuilder::new(([10, 0, 0, 2], 80), ([10, 0, 0, 1], 5000))
            .payload(b"hello")
            .build(LinkType::Ethernet);
        assert_eq!(checksum(&packet), Checksum::Right);
        let segment = Segment::parse(&packet).unwrap();
        let at = tcp_of(&segment).start + checksum::TCP_FIELD;
        let with = |field: u16| {
            let mut bytes = packet.bytes().to_vec();
            bytes[at..at + 2].copy_from_slice(&field.to_be_bytes());
            Packet::new(LinkType::Ethernet, bytes.into())
        };
        let right = u16::from_be_bytes([packet.bytes()[at], packet.bytes()[at + 1]]);
        assert_eq!(checksum(&with(right ^ 0x40)), Checksum::Wrong);
        let (source, destination) = (&segment.source.address, &segment.destination.address);
        let sum = checksum::of_pseudo_header(source, destination, 20 + 5);
        assert_eq!(checksum(&with(sum)), Checksum::OfPseudoHeader);
        assert_eq!(with_checksum(with(sum)), packet);
    }
}
