//! `snoop_data()`: packets from the fixed host [snoop95 §3.1.1, Fig. 1].

use super::cache::CachedPacket;
use super::flow::{Flow, Timed};
use super::{Departure, Snoop95};
use crate::agent::Port;
use crate::agents::flow_table::FlowRef;
use crate::event::{Event, Uncached};
use crate::packet::Packet;
use crate::time::Instant;
use crate::wire::flow::FlowKey;
use crate::wire::seq::SeqNumber;
use crate::wire::tcp::{Flags, Segment};

/// A packet further ahead than this cannot belong to the window (RFC 7323 §2.2 allows 2^30).
const MAX_WINDOW: i32 = 1 << 30;

/// The cases of the flowchart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Case {
    /// 1: in the normal, increasing sequence, perhaps after a gap.
    New,
    /// 2, above the last ACK: it was cached, and the mobile probably never got it.
    Resent,
    /// 2, below the last ACK: the mobile has it; the ACK may have been lost on its way.
    Acknowledged,
    /// 3: earlier than the last one seen, but not cached: lost before the base station, or late.
    OutOfSequence,
    /// So far from the window that it says nothing about the stream.
    OutOfWindow,
}

impl Snoop95 {
    pub(super) fn snoop_data(
        &mut self,
        now: Instant,
        key: FlowKey,
        segment: &Segment,
        packet: Packet,
    ) {
        // A lone FIN opens no state: there is nothing of the stream left to mend.
        let known = match segment.payload_len {
            0 => self.flows.find(&key),
            _ => self.find_or_open(now, key, segment.seq),
        };
        let Some(reference) = known else {
            self.forward(Port::Air, packet, None);
            return;
        };
        let Some(flow) = self.flows.get_mut(reference) else { return };
        flow.touch(now, &self.settings);
        let case = flow.classify(segment.seq, segment.seq_len());
        match case {
            Case::OutOfWindow => {
                self.forward(Port::Air, packet, None);
            }
            Case::Acknowledged => self.repeat_ack(reference, segment.seq, packet),
            Case::New | Case::Resent | Case::OutOfSequence => {
                self.cache_and_forward(now, reference, case, segment, packet);
            }
        }
    }

    /// [S0-12] The mobile has this data: its last ACK is repeated, as it was, to the sender.
    fn repeat_ack(&mut self, reference: FlowRef, seq: SeqNumber, packet: Packet) {
        let last = self.flows.get(reference).and_then(|flow| {
            let last = flow.last_ack.as_ref()?;
            Some((flow.id, last.number, last.packet.as_ref()?.packet()))
        });
        match last.filter(|_| self.settings.repeat_ack) {
            Some((id, number, ack)) => {
                if self.forward(Port::Wired, ack, None) {
                    self.event(Event::AckRepeated(id, number));
                }
            }
            None => {
                let departure = Departure { flow: reference, seq, retransmission: None };
                self.forward(Port::Air, packet, Some(departure));
            }
        }
    }

    /// [S0-10, S0-11, S0-13] The packet goes on; a reference to it stays, if there is room.
    fn cache_and_forward(
        &mut self,
        now: Instant,
        reference: FlowRef,
        case: Case,
        segment: &Segment,
        packet: Packet,
    ) {
        let departure = Departure { flow: reference, seq: segment.seq, retransmission: None };
        // The queue decides first: what it refuses is congestion, which TCP must see.
        let accepted = self.forward(Port::Air, packet.clone(), Some(departure));
        let Some(flow) = self.flows.get_mut(reference) else { return };
        let id = flow.id;
        let newest = case == Case::New;
        if newest {
            flow.time_packet(segment, accepted);
        } else {
            flow.spoil_measurement();
        }
        flow.last_seq = flow.last_seq.max(segment.end());
        let added = flow.cache.memory_with(segment.seq, &packet) - flow.cache.memory();
        let admission = match accepted {
            false => Err(Uncached::Congestion),
            true if added > self.limits.cache_bytes.saturating_sub(self.cache_bytes) => {
                Err(Uncached::MemoryLimit)
            }
            true if case == Case::Resent => Ok(()),
            true => {
                let settings = &self.settings;
                flow.cache.admits(newest, settings.high_water_packets(), settings.cache_packets)
            }
        };
        match admission {
            Ok(()) => self.cache(now, reference, newest, segment, packet),
            Err(reason) => {
                // What the sender resent stays marked, even where the new copy found no room.
                if let Some(cached) = flow.cache.starting_at(segment.seq) {
                    cached.sender_retransmitted |= !newest;
                }
                self.event(Event::Uncached(id, segment.seq, reason));
            }
        }
        if !newest {
            self.event(Event::SenderRetransmit(id, segment.seq));
        }
    }

    fn cache(
        &mut self,
        now: Instant,
        reference: FlowRef,
        newest: bool,
        segment: &Segment,
        packet: Packet,
    ) {
        let Some(flow) = self.flows.get_mut(reference) else { return };
        let before = flow.cache.memory();
        let cached = CachedPacket {
            seq: segment.seq,
            len: segment.seq_len(),
            fin: segment.flags.intersects(Flags::FIN),
            packet,
            // [S0-14] It came from the sender: its local retransmissions count from zero.
            retransmissions: 0,
            // [S0-13] Both kinds of late packets are marked, so that the sender sees its DUPACKs.
            sender_retransmitted: !newest,
            queued: true,
            sent_index: flow.sent_packets,
        };
        if newest {
            flow.cache.append(cached);
        } else {
            flow.cache.insert(cached);
        }
        self.cache_bytes = self.cache_bytes - before + flow.cache.memory();
        self.schedule(now, reference);
    }
}

impl Flow {
    fn classify(&mut self, seq: SeqNumber, len: u32) -> Case {
        let end = seq + len;
        let anchor = self.last_ack.as_ref().map_or(self.last_seq, |ack| ack.number);
        if !(-MAX_WINDOW..MAX_WINDOW).contains(&end.offset_from(anchor)) {
            return Case::OutOfWindow;
        }
        if self.last_ack.as_ref().is_some_and(|ack| end <= ack.number) {
            return Case::Acknowledged;
        }
        if seq >= self.last_seq {
            return Case::New;
        }
        match self.cache.starting_at(seq) {
            Some(cached) if cached.len == len => Case::Resent,
            _ => Case::OutOfSequence,
        }
    }

    /// [S0-10] One packet per window is timed: the next begins when the ACK of this one came.
    fn time_packet(&mut self, segment: &Segment, accepted: bool) {
        if self.timed.is_none() && accepted {
            let (seq, end) = (segment.seq, segment.end());
            self.timed = Some(Timed { seq, end, sent_at: None, spoiled: false });
        }
    }
}
