//! A flow of a replay: losses on the air, and their repairs by agent and sender.

use airmend_proto::wire::flow::FlowKey;
use airmend_proto::wire::seq::SeqNumber;
use airmend_proto::wire::tcp::{Flags, Segment};
use airmend_proto::{Instant, Port};
use std::collections::BTreeMap;
use std::time::Duration;

/// One flow. A segment counts as lost on the air, once, if it had departed to the air and was
/// retransmitted before the mobile acknowledged it; also if the connection or the capture ended
/// before that.
#[derive(Clone, Debug)]
pub struct FlowReport {
    /// The addresses and ports.
    pub key: FlowKey,
    /// Segments with payload from the wired side, retransmissions included.
    pub segments: u64,
    /// Payload bytes of these segments.
    pub payload_bytes: u64,
    /// Packets from the mobile host.
    pub answers: u64,
    /// Lost segments that the agent retransmitted first.
    pub repaired_locally: u64,
    /// Lost segments that the sender retransmitted first.
    pub repaired_by_sender: u64,
    /// Lost segments that were not acknowledged before the connection or the capture ended.
    pub unacknowledged: u64,
    /// Retransmissions of lost segments by the sender, all of each.
    pub sender_retransmits: u64,
    /// Segments that the agent retransmitted needlessly: reordered or late.
    pub needless: u64,
    /// Local retransmissions. They are many in a capture without an agent: a repair does not arrive
    /// in the capture, so that the agent retries until the sender's repair does.
    pub local_retransmits: u64,
    /// Duplicate ACKs that the agent suppressed.
    pub suppressed_dupacks: u64,
    /// Recoveries that began with a repair by the agent; each ends when all data is acknowledged
    /// that had been sent when it began.
    pub stalls: u64,
    /// Of these, without an estimate: the capture has neither the sender's repair nor the wired
    /// side's round trip.
    pub stalls_unknown: u64,
    /// The sum, over the recoveries, of the time from the agent's repair of their first segment to
    /// the sender's repair in the capture. In a capture with an agent the sender had nothing to
    /// repair: each recovery then counts as one round trip of the wired side, the least that the
    /// sender needs.
    pub stall_saved: Duration,
    /// The least time from a segment's departure to the air until it was acknowledged.
    pub air_round_trip: Option<Duration>,
    /// The wired side's round trip, from the handshake.
    pub wired_round_trip: Option<Duration>,
}

impl FlowReport {
    pub(super) fn new(key: FlowKey) -> Self {
        Self {
            key,
            segments: 0,
            payload_bytes: 0,
            answers: 0,
            repaired_locally: 0,
            repaired_by_sender: 0,
            unacknowledged: 0,
            sender_retransmits: 0,
            needless: 0,
            local_retransmits: 0,
            suppressed_dupacks: 0,
            stalls: 0,
            stalls_unknown: 0,
            stall_saved: Duration::ZERO,
            air_round_trip: None,
            wired_round_trip: None,
        }
    }

    /// Segments lost on the air.
    pub fn lost(&self) -> u64 {
        self.repaired_locally + self.repaired_by_sender
    }
}

/// Data from the wired side that the mobile has not acknowledged, by offset in the stream.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    pub(super) report: FlowReport,
    /// Whether an agent was active in the capture, which then lacks the sender's repairs.
    is_mended: bool,
    /// By the offset of the first byte; no two overlap.
    outstanding: BTreeMap<i64, Outstanding>,
    /// The highest end of data seen, as sequence number and as offset.
    highest: Option<(SeqNumber, i64)>,
    /// All below this offset is acknowledged.
    acked: i64,
    stall: Option<Stall>,
    handshake: Handshake,
}

/// A segment that departed to the air.
#[derive(Clone, Copy, Debug)]
struct Outstanding {
    end: i64,
    sent: Instant,
    /// When the agent first retransmitted the segment.
    local: Option<Instant>,
    /// When the sender first retransmitted the segment.
    sender: Option<Instant>,
    /// How often the sender has retransmitted it.
    retransmits: u64,
}

/// A recovery: from the agent's first repair until all data is acknowledged that had been sent by
/// then.
#[derive(Clone, Copy, Debug)]
struct Stall {
    /// The segment that was repaired first.
    first: i64,
    recover: i64,
}

/// The round trip of the wired side, from the handshake.
#[derive(Clone, Copy, Debug)]
enum Handshake {
    /// No SYN has been seen.
    Unseen,
    /// Waiting since this time for the wired side to answer a SYN or a SYN-ACK.
    Owed(Instant),
    /// The handshake is over, or was not captured.
    Over,
}

impl Flow {
    pub(super) fn new(report: FlowReport, is_mended: bool) -> Self {
        Self {
            report,
            is_mended,
            outstanding: BTreeMap::new(),
            highest: None,
            acked: i64::MIN,
            stall: None,
            handshake: Handshake::Unseen,
        }
    }

    /// A host's packet arrived.
    pub(super) fn enters(&mut self, now: Instant, from: Port, segment: &Segment) {
        self.time_handshake(now, from, segment);
        self.report.answers += u64::from(from == Port::Air);
        if segment.flags.intersects(Flags::SYN.union(Flags::RST)) {
            self.end_connection();
            return;
        }
        match from {
            Port::Wired if segment.payload_len > 0 => self.data_enters(now, segment),
            Port::Air if segment.flags.intersects(Flags::ACK) => self.acknowledge(now, segment.ack),
            _ => {}
        }
    }

    /// A packet departs to the air.
    pub(super) fn leaves_to_air(&mut self, now: Instant, segment: &Segment) {
        if segment.payload_len == 0 {
            return;
        }
        let Some(first) = self.offset(segment.seq) else { return };
        let end = first + i64::from(segment.payload_len);
        // Only what is neither on its way nor acknowledged is new.
        let mut from = first.max(self.acked);
        while from < end {
            let next = self.outstanding.range(self.begin_of(from)..end).next();
            let next = next.map(|(&begin, segment)| (begin, segment.end));
            if next.is_none_or(|(begin, _)| from < begin) {
                let end = next.map_or(end, |(begin, _)| begin);
                let sent =
                    Outstanding { end, sent: now, local: None, sender: None, retransmits: 0 };
                self.outstanding.insert(from, sent);
            }
            from = next.map_or(end, |(_, end)| end);
        }
    }

    /// The agent retransmits a segment.
    pub(super) fn repairs(&mut self, now: Instant, seq: SeqNumber) {
        self.report.local_retransmits += 1;
        let (Some(first), Some((_, recover))) = (self.offset(seq), self.highest) else { return };
        let first = self.begin_of(first);
        let Some(segment) = self.outstanding.get_mut(&first) else { return };
        if segment.local.is_none() && segment.sender.is_none() && self.stall.is_none() {
            self.stall = Some(Stall { first, recover });
        }
        segment.local.get_or_insert(now);
    }

    /// The connection or the capture is over: what was retransmitted and is not acknowledged was
    /// lost.
    pub(super) fn end_connection(&mut self) {
        for (first, segment) in std::mem::take(&mut self.outstanding) {
            self.judge(first, segment, false);
        }
        (self.highest, self.acked, self.stall) = (None, i64::MIN, None);
    }

    fn data_enters(&mut self, now: Instant, segment: &Segment) {
        self.report.segments += 1;
        self.report.payload_bytes += u64::from(segment.payload_len);
        let first = self.offset(segment.seq).unwrap_or(0);
        let end = first + i64::from(segment.payload_len);
        self.split(first);
        self.split(end);
        for (_, again) in self.outstanding.range_mut(self.begin_of(first)..end) {
            again.sender.get_or_insert(now);
            again.retransmits += 1;
        }
        if self.highest.is_none_or(|(_, highest)| end > highest) {
            self.highest = Some((segment.seq + segment.payload_len, end));
        }
    }

    fn acknowledge(&mut self, now: Instant, ack: SeqNumber) {
        let Some(ack) = self.offset(ack) else { return };
        self.acked = self.acked.max(ack);
        while let Some(oldest) = self.outstanding.first_entry() {
            if oldest.get().end > ack {
                break;
            }
            let (first, segment) = oldest.remove_entry();
            if segment.local.is_none() && segment.sender.is_none() {
                let (least, sample) = (&mut self.report.air_round_trip, now.since(segment.sent));
                *least = Some(least.map_or(sample, |least| least.min(sample)));
            }
            self.judge(first, segment, true);
        }
        self.stall.take_if(|stall| stall.recover <= ack);
    }

    /// The offset at which the outstanding segment begins that has this one; without any, the same.
    fn begin_of(&self, offset: i64) -> i64 {
        let before = self.outstanding.range(..=offset).next_back();
        before.filter(|(_, segment)| offset < segment.end).map_or(offset, |(&begin, _)| begin)
    }

    /// Makes two of the outstanding segment that has this offset in its middle, since only a part
    /// of it is sent again. One that the sender has sent again before stays whole.
    fn split(&mut self, offset: i64) {
        let begin = self.begin_of(offset);
        let Some(segment) = self.outstanding.get_mut(&begin) else { return };
        if begin < offset && segment.sender.is_none() {
            let behind = *segment;
            segment.end = offset;
            self.outstanding.insert(offset, behind);
        }
    }

    /// Whether a segment was lost, once it is acknowledged or nothing can acknowledge it.
    fn judge(&mut self, first: i64, segment: Outstanding, is_acked: bool) {
        let began_stall = self.stall.is_some_and(|stall| stall.first == first);
        let report = &mut self.report;
        match (segment.local, segment.sender) {
            (None, None) => return,
            (Some(_), None) if !self.is_mended => {
                // The original arrived, as far as can be seen.
                report.needless += u64::from(is_acked);
                return;
            }
            _ => {}
        }
        report.unacknowledged += u64::from(!is_acked);
        report.sender_retransmits += segment.retransmits;
        let saved = match (segment.local, segment.sender) {
            (Some(local), sender) if sender.is_none_or(|sender| local <= sender) => {
                report.repaired_locally += 1;
                sender.map(|sender| sender.since(local)).or(report.wired_round_trip)
            }
            _ => {
                report.repaired_by_sender += 1;
                return;
            }
        };
        if began_stall {
            report.stalls += 1;
            match saved {
                Some(saved) => report.stall_saved += saved,
                None => report.stalls_unknown += 1,
            }
        }
    }

    /// A SYN from the air is answered from the wired side; a SYN from there is answered from the
    /// air, and that again from the wired side.
    fn time_handshake(&mut self, now: Instant, from: Port, segment: &Segment) {
        let is_syn = segment.flags.intersects(Flags::SYN);
        self.handshake = match (from, self.handshake) {
            (Port::Air, _) if is_syn => Handshake::Owed(now),
            (Port::Wired, Handshake::Owed(since)) => {
                self.report.wired_round_trip = Some(now.since(since));
                Handshake::Over
            }
            (_, Handshake::Unseen) if !is_syn => Handshake::Over,
            (_, same) => same,
        };
    }

    /// The offset of a sequence number in the stream.
    fn offset(&self, seq: SeqNumber) -> Option<i64> {
        let (highest, offset) = self.highest?;
        Some(offset + i64::from(seq.offset_from(highest)))
    }
}
