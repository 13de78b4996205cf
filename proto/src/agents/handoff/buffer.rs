//! What a mobile host may lack: its packets that it has not acknowledged, by reference.
//!
//! The serving station sees the ACKs and frees what they acknowledge; a station that the mobile may
//! move to sees copies of the packets only, and keeps the newest ones [snoop95 §3.3].

use crate::packet::Packet;
use crate::wire::edit::with_timestamp;
use crate::wire::flow::FlowKey;
use crate::wire::seq::SeqNumber;
use crate::wire::tcp::{Flags, Segment};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

/// The most packets for one mobile host: a window of 1.5 MB.
const MAX_PACKETS: usize = 1_024;
/// The most bytes of these packets, which matters for super-packets.
const MAX_BYTES: usize = 4 << 20;
/// The most flows of one mobile host.
const MAX_FLOWS: usize = 64;
/// The largest window (RFC 7323 §2.2): a sequence number further away begins anew.
const MAX_WINDOW: i32 = 1 << 30;

/// The packets for one mobile host.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    /// The flow that got a packet last is the last one.
    flows: Vec<Flow>,
    packets: usize,
    bytes: usize,
}

#[derive(Debug)]
struct Flow {
    key: FlowKey,
    acked: Option<SeqNumber>,
    /// The SACK blocks of the last ACK.
    sacked: Vec<(SeqNumber, SeqNumber)>,
    /// The TSecr of the last ACK, which is the mobile's TS.Recent.
    ts_recent: Option<u32>,
    /// The sequence number behind the highest byte.
    highest: SeqNumber,
    /// In the order of their first bytes.
    held: VecDeque<Held>,
}

/// A packet that the mobile may lack.
#[derive(Clone, Debug)]
pub(super) struct Held {
    seq: SeqNumber,
    end: SeqNumber,
    pub(super) packet: Packet,
    /// Whether the sender retransmitted it [S0-13].
    pub(super) is_resent: bool,
    /// Whether it was sent to the stations that the mobile may move to.
    pub(super) is_fed: bool,
    /// Whether it has been forwarded to the mobile host here.
    pub(super) is_forwarded: bool,
}

/// What the next station must know of a flow [snoop95 §3.3].
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FlowState {
    pub(super) key: FlowKey,
    /// The mobile's last ACK.
    pub(super) acked: Option<SeqNumber>,
    /// The mobile's TS.Recent (RFC 7323 §4.3).
    pub(super) ts_recent: Option<u32>,
    pub(super) air_round_trip: Option<Duration>,
    /// The ranges that it has acknowledged selectively.
    pub(super) sacked: Vec<(SeqNumber, SeqNumber)>,
    /// The ranges that the sender has retransmitted.
    pub(super) resent: Vec<(SeqNumber, SeqNumber)>,
}

impl Buffer {
    pub(super) fn is_empty(&self) -> bool {
        self.packets == 0
    }

    /// The mobile's last ACK of a flow.
    pub(super) fn acked(&self, key: &FlowKey) -> Option<SeqNumber> {
        self.flows.iter().find(|flow| flow.key == *key)?.acked
    }

    /// Keeps a packet with data; returns whether the sender retransmitted it.
    pub(super) fn insert(
        &mut self,
        key: FlowKey,
        segment: &Segment,
        packet: &Packet,
        is_fed: bool,
    ) -> bool {
        if segment.flags.intersects(Flags::SYN.union(Flags::RST)) {
            self.end(&key);
            return false;
        }
        if segment.seq_len() >= MAX_WINDOW as u32 {
            return false;
        }
        let (seq, end) = (segment.seq, segment.end());
        let index = self.open(key, seq);
        let flow = &mut self.flows[index];
        if !(-MAX_WINDOW..MAX_WINDOW).contains(&end.offset_from(flow.highest)) {
            self.end(&key);
            return self.insert(key, segment, packet, is_fed);
        }
        let is_resent = seq < flow.highest;
        flow.highest = flow.highest.max(end);
        if flow.acked.is_some_and(|acked| end <= acked) {
            return is_resent;
        }
        let place = flow.held.partition_point(|held| held.seq < seq);
        match flow.held.get_mut(place).filter(|held| held.seq == seq && held.end == end) {
            Some(held) => {
                self.bytes += packet.bytes().len();
                self.bytes -= held.packet.bytes().len();
                held.packet = packet.clone();
                held.is_resent = true;
                held.is_fed |= is_fed;
            }
            None => {
                self.packets += 1;
                self.bytes += packet.bytes().len();
                let (packet, is_forwarded) = (packet.clone(), false);
                let held = Held { seq, end, packet, is_resent, is_fed, is_forwarded };
                flow.held.insert(place, held);
            }
        }
        self.keep_the_newest();
        is_resent
    }

    /// Frees what an ACK of the mobile acknowledges.
    pub(super) fn acknowledge(&mut self, key: &FlowKey, segment: &Segment) {
        if segment.flags.intersects(Flags::SYN.union(Flags::RST)) {
            self.end(key);
        } else if segment.flags.intersects(Flags::ACK) {
            let ts_recent = segment.options.timestamps.map(|timestamps| timestamps.echo);
            self.synchronise(key, segment.ack, ts_recent, segment.options.sack.as_slice());
        }
    }

    /// Frees what lies below `acked`, and notes what the mobile has beyond. An ACK beyond all data
    /// that was seen, or an old one, says nothing.
    pub(super) fn synchronise(
        &mut self,
        key: &FlowKey,
        acked: SeqNumber,
        ts_recent: Option<u32>,
        sacked: &[(SeqNumber, SeqNumber)],
    ) {
        let Some(flow) = self.flows.iter_mut().find(|flow| flow.key == *key) else { return };
        if acked > flow.highest || flow.acked.is_some_and(|last| acked < last) {
            return;
        }
        flow.acked = Some(acked);
        flow.sacked = sacked.to_vec();
        flow.ts_recent = ts_recent.or(flow.ts_recent);
        while let Some(freed) = flow.held.pop_front_if(|held| held.end <= acked) {
            self.packets -= 1;
            self.bytes -= freed.packet.bytes().len();
        }
    }

    /// The packets within this segment have been forwarded to the mobile host.
    pub(super) fn note_forwarded(&mut self, key: &FlowKey, segment: &Segment) {
        let inside = self.inside(key, segment.seq, segment.end());
        inside.for_each(|held| held.is_forwarded = true);
    }

    /// Marks the ranges that the sender has retransmitted [S0-45].
    pub(super) fn mark(&mut self, key: &FlowKey, resent: &[(SeqNumber, SeqNumber)]) {
        for (start, end) in resent {
            self.inside(key, *start, *end).for_each(|held| held.is_resent = true);
        }
    }

    /// The packets of a flow that lie within a range.
    fn inside(
        &mut self,
        key: &FlowKey,
        start: SeqNumber,
        end: SeqNumber,
    ) -> impl Iterator<Item = &mut Held> {
        let flow = self.flows.iter_mut().find(|flow| flow.key == *key);
        let held = flow.into_iter().flat_map(|flow| &mut flow.held);
        held.filter(move |held| start <= held.seq && held.end <= end)
    }

    /// The packets that the mobile has acknowledged neither below its ACK nor selectively, with
    /// timestamps that it takes.
    pub(super) fn unacknowledged(&self) -> impl Iterator<Item = Held> {
        self.flows.iter().flat_map(|flow| {
            let lacks = |held: &&Held| {
                !flow.sacked.iter().any(|(start, end)| *start <= held.seq && held.end <= *end)
            };
            flow.held.iter().filter(lacks).map(|held| flow.renew(held.clone()))
        })
    }

    /// All packets have been sent to the stations that the mobile may move to.
    pub(super) fn note_fed(&mut self) {
        self.flows.iter_mut().flat_map(|flow| &mut flow.held).for_each(|held| held.is_fed = true);
    }

    /// What the next station must know.
    pub(super) fn state(
        &self,
        air_round_trip: &dyn Fn(&FlowKey) -> Option<Duration>,
    ) -> Vec<FlowState> {
        let state = |flow: &Flow| FlowState {
            key: flow.key,
            acked: flow.acked,
            ts_recent: flow.ts_recent,
            air_round_trip: air_round_trip(&flow.key),
            sacked: flow.sacked.clone(),
            resent: flow.resent(),
        };
        self.flows.iter().map(state).collect()
    }

    /// The index of a flow, which is now the last one.
    fn open(&mut self, key: FlowKey, seq: SeqNumber) -> usize {
        let newest = self.flows.len().saturating_sub(1);
        match self.flows.iter().position(|flow| flow.key == key) {
            Some(index) if index == newest => {}
            Some(index) => {
                let flow = self.flows.remove(index);
                self.flows.push(flow);
            }
            None => {
                if self.flows.len() >= MAX_FLOWS {
                    let oldest = self.flows[0].key;
                    self.end(&oldest);
                }
                let (held, sacked) = (VecDeque::new(), Vec::new());
                self.flows.push(Flow {
                    key,
                    acked: None,
                    sacked,
                    ts_recent: None,
                    highest: seq,
                    held,
                });
            }
        }
        self.flows.len() - 1
    }

    fn end(&mut self, key: &FlowKey) {
        let Some(index) = self.flows.iter().position(|flow| flow.key == *key) else { return };
        for held in self.flows.remove(index).held {
            self.packets -= 1;
            self.bytes -= held.packet.bytes().len();
        }
    }

    /// Beyond the bounds the oldest packets are the likeliest to have arrived: those of the flow
    /// that got a packet least recently, from its lowest byte on.
    fn keep_the_newest(&mut self) {
        for flow in &mut self.flows {
            while self.packets > MAX_PACKETS || self.bytes > MAX_BYTES {
                let Some(freed) = flow.held.pop_front() else { break };
                self.packets -= 1;
                self.bytes -= freed.packet.bytes().len();
            }
        }
    }
}

impl Flow {
    /// A packet that waited for long may be older than what has arrived since: the mobile would
    /// refuse its timestamp (RFC 7323 §5.3).
    fn renew(&self, held: Held) -> Held {
        let Ok(segment) = Segment::parse(&held.packet) else { return held };
        let value = segment.options.timestamps.map(|timestamps| timestamps.value);
        let is_old = |(recent, value): &(u32, u32)| (value.wrapping_sub(*recent) as i32) < 0;
        let recent = self.ts_recent.zip(value).filter(is_old).map(|(recent, _)| recent);
        let renewed = recent.and_then(|recent| with_timestamp(&held.packet, &segment, recent));
        Held { packet: renewed.unwrap_or(held.packet), ..held }
    }

    /// The ranges that the sender has retransmitted, as few as possible.
    fn resent(&self) -> Vec<(SeqNumber, SeqNumber)> {
        let mut ranges: Vec<(SeqNumber, SeqNumber)> = Vec::new();
        for held in self.held.iter().filter(|held| held.is_resent) {
            match ranges.last_mut().filter(|(_, end)| *end >= held.seq) {
                Some((_, end)) => *end = held.end.max(*end),
                None => ranges.push((held.seq, held.end)),
            }
        }
        ranges
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::LinkType;
    use crate::port::Port;
    use crate::wire::build::SegmentBuilder;

    const SERVER: ([u8; 4], u16) = ([10, 0, 0, 1], 80);
    const MOBILE: [u8; 4] = [10, 0, 1, 2];

    fn data(port: u16, seq: u32, len: usize) -> (FlowKey, Segment, Packet) {
        let packet = SegmentBuilder::new(SERVER, (MOBILE, port))
            .seq(SeqNumber(seq))
            .payload(&alloc::vec![7; len])
            .build(LinkType::Ip);
        let segment = Segment::parse(&packet).unwrap();
        (FlowKey::of(&segment, Port::Wired), segment, packet)
    }

    fn insert(buffer: &mut Buffer, port: u16, seq: u32, len: usize) -> bool {
        let (key, segment, packet) = data(port, seq, len);
        buffer.insert(key, &segment, &packet, false)
    }

    fn key(port: u16) -> FlowKey {
        data(port, 0, 1).0
    }

    fn lacking(buffer: &Buffer) -> Vec<u32> {
        buffer.unacknowledged().map(|held| held.seq.0).collect()
    }

    #[test]
    fn what_is_acknowledged_is_freed_and_what_is_sacked_is_not_lacking() {
        let mut buffer = Buffer::default();
        for seq in [0, 100, 300, 200, 400] {
            assert_eq!(insert(&mut buffer, 1, seq, 100), seq == 200);
        }
        assert_eq!(lacking(&buffer), [0, 100, 200, 300, 400]);
        let blocks = [(SeqNumber(300), SeqNumber(400))];
        buffer.synchronise(&key(1), SeqNumber(150), None, &blocks);
        assert_eq!(lacking(&buffer), [100, 200, 400], "a packet acknowledged in part stays");
        buffer.synchronise(&key(1), SeqNumber(100), None, &[]);
        buffer.synchronise(&key(1), SeqNumber(501), None, &[]);
        assert_eq!(buffer.acked(&key(1)), Some(SeqNumber(150)), "old, or beyond all data");
        let state = buffer.state(&|_| None);
        assert_eq!(state[0].sacked, blocks);
        assert_eq!(state[0].resent, [(SeqNumber(200), SeqNumber(300))]);
        buffer.synchronise(&key(1), SeqNumber(500), None, &[]);
        assert_eq!((buffer.packets, buffer.bytes), (0, 0));
    }

    #[test]
    fn a_packet_that_comes_again_is_held_once_and_marked() {
        let mut buffer = Buffer::default();
        assert!(!insert(&mut buffer, 1, u32::MAX - 49, 100));
        assert!(insert(&mut buffer, 1, u32::MAX - 49, 100));
        assert!(!insert(&mut buffer, 1, 50, 100));
        assert_eq!(lacking(&buffer), [u32::MAX - 49, 50]);
        assert!(buffer.unacknowledged().next().unwrap().is_resent);
        buffer.mark(&key(1), &[(SeqNumber(50), SeqNumber(150))]);
        assert!(buffer.unacknowledged().all(|held| held.is_resent));
    }

    #[test]
    fn a_new_connection_begins_anew() {
        let mut buffer = Buffer::default();
        insert(&mut buffer, 1, 0, 100);
        insert(&mut buffer, 1, 1 << 31, 100);
        assert_eq!(lacking(&buffer), [1 << 31], "too far away to be of the same connection");
        let syn = SegmentBuilder::new(SERVER, (MOBILE, 1)).flags(Flags::SYN).build(LinkType::Ip);
        let segment = Segment::parse(&syn).unwrap();
        buffer.insert(key(1), &segment, &syn, false);
        assert!(buffer.is_empty());
    }

    #[test]
    fn beyond_the_bounds_the_newest_are_kept() {
        let mut buffer = Buffer::default();
        insert(&mut buffer, 2, 7, 100);
        for number in 0..MAX_PACKETS as u32 + 5 {
            insert(&mut buffer, 1, number * 100, 100);
        }
        assert_eq!((buffer.packets, lacking(&buffer)[0]), (MAX_PACKETS, 500));
        for seq in 0..100 {
            insert(&mut buffer, 3, seq * 60_000, 60_000);
        }
        assert!(buffer.bytes <= MAX_BYTES);
        for port in 10..200 {
            insert(&mut buffer, port, 0, 1);
        }
        assert_eq!(buffer.flows.len(), MAX_FLOWS);
        let bytes: usize = buffer.unacknowledged().map(|held| held.packet.bytes().len()).sum();
        assert_eq!((buffer.packets, buffer.bytes), (lacking(&buffer).len(), bytes));
    }
}
