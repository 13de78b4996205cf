//! `snoop_data()`: packets from the fixed host [snoop95 §3.1.1, Fig. 1].

use super::Snoop95;
use super::cache::{CachedPacket, RESENT_CACHED, admits};
use super::flow::{Flow, Timed};
use crate::agent::Verdict;
use crate::agents::flow_table::FlowRef;
use crate::event::{Event, OwnEvent, Uncached};
use crate::packet::Packet;
use crate::time::Instant;
use crate::wire::flow::FlowKey;
use crate::wire::seq::{MAX_WINDOW, SeqNumber};
use crate::wire::tcp::{Flags, Segment};

/// The cases of the flowchart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Case {
    /// Case 1: in the normal, increasing sequence, perhaps after a gap.
    New,
    /// Case 2, above the last ACK: the packet was cached, and the mobile has probably not received
    /// it.
    Resent,
    /// Case 2, below the last ACK: the mobile has the packet; the ACK may have been lost.
    Acknowledged,
    /// Case 3: below the last packet seen and not cached: lost before the base station, or late.
    OutOfSequence,
    /// Too far from the window to belong to the flow.
    OutOfWindow,
}

impl Snoop95 {
    /// [S0-12] Repeats the mobile's last ACK to the sender if the mobile has this data already.
    pub(super) fn repeat_ack(&mut self, now: Instant, key: &FlowKey, segment: &Segment) -> Verdict {
        let flow = self.flows.find(key).and_then(|reference| self.flows.get_mut(reference));
        let Some(flow) = flow.filter(|_| segment.seq_len() > 0) else { return Verdict::Pass };
        flow.touch(now, &self.settings);
        let case = flow.classify(segment.seq, segment.seq_len());
        if case == Case::New {
            flow.arrived = flow.arrived.max(segment.end());
            flow.time_packet(segment);
        }
        let is_answered = self.settings.repeat_ack && !flow.is_probe(segment, &self.settings);
        if case != Case::Acknowledged || !is_answered {
            return Verdict::Pass;
        }
        let last = flow.last_ack.as_ref();
        let last = last.and_then(|last| Some((last.number, last.packet.as_ref()?.packet())));
        let Some((number, ack)) = last else { return Verdict::Pass };
        let id = flow.base.id;
        self.repeated_acks.push_back(ack);
        self.event(Event::AckRepeated(id, number));
        Verdict::Withhold
    }

    /// Processes a packet that has departed to the air.
    pub(super) fn snoop_data(
        &mut self,
        now: Instant,
        key: FlowKey,
        segment: &Segment,
        packet: &Packet,
    ) {
        // A lone FIN opens no state: no data is left to repair.
        let known = match segment.payload_len {
            0 => self.flows.find(&key),
            _ => self.flows.find_or_open(now, key, |base| Flow::new(base, segment.seq)),
        };
        let Some(reference) = known else { return };
        let Some(flow) = self.flows.get_mut(reference) else { return };
        flow.base.active_at = now;
        if flow.persist_due <= now {
            flow.persist_due = now + self.settings.persist_timeout;
        }
        flow.sent_packets = flow.sent_packets.wrapping_add(1);
        match flow.classify(segment.seq, segment.seq_len()) {
            Case::OutOfWindow | Case::Acknowledged => {}
            // [S0-38] The mobile answers a probe or the sender repeats it.
            _ if flow.is_closed(&self.settings) => {
                flow.spoil_measurement();
                flow.last_seq = flow.last_seq.max(segment.end());
            }
            case => self.cache_packet(now, reference, case, segment, packet),
        }
    }

    /// [S0-10, S0-11, S0-13] Caches a reference to the packet, if there is room.
    fn cache_packet(
        &mut self,
        now: Instant,
        reference: FlowRef,
        case: Case,
        segment: &Segment,
        packet: &Packet,
    ) {
        let room = self.flows.room();
        let Some(flow) = self.flows.get_mut(reference) else { return };
        let id = flow.base.id;
        let newest = case == Case::New;
        if newest {
            flow.time_packet(segment);
        } else {
            flow.spoil_measurement();
        }
        if let Some(timed) = flow.timed.as_mut().filter(|timed| timed.seq == segment.seq) {
            timed.sent_at.get_or_insert(now);
        }
        flow.last_seq = flow.last_seq.max(segment.end());
        let settings = &self.settings;
        let admission = match flow.cache.memory_with(segment.seq, packet) - flow.cache.memory() {
            added if added > room => Err(Uncached::MemoryLimit),
            _ if case == Case::Resent => Ok(()),
            _ => {
                let high_water = settings.high_water_packets();
                admits(flow.cache.len(), newest, high_water, settings.cache_packets)
            }
        };
        match admission {
            Ok(()) => {
                self.flows.update(reference, |flow| flow.cache(newest, segment, packet.clone()));
                self.schedule(now, reference);
            }
            Err(reason) => {
                // A packet that the sender retransmitted is marked even if the new copy is not
                // cached.
                if let Some(cached) = flow.cache.starting_at(segment.seq) {
                    cached.sender_retransmitted |= !newest;
                }
                self.event(Event::Uncached(id, segment.seq, reason));
            }
        }
        if !newest {
            self.event(Event::SenderRetransmit(id, segment.seq));
        }
        if case == Case::Resent {
            self.event(Event::Own(OwnEvent {
                counter: RESENT_CACHED,
                text: "flow {}: {} was cached when the sender resent it",
                values: [id.0, segment.seq.0.into()],
                is_retransmission: false,
            }));
        }
    }
}

impl Flow {
    fn cache(&mut self, newest: bool, segment: &Segment, packet: Packet) {
        let cached = CachedPacket {
            seq: segment.seq,
            len: segment.seq_len(),
            fin: segment.flags.intersects(Flags::FIN),
            packet,
            // [S0-14] The packet came from the sender: local retransmissions are counted from zero.
            retransmissions: 0,
            // [S0-13] Packets of cases 2 and 3 are marked, so that the sender sees their DUPACKs.
            sender_retransmitted: !newest,
            queued: None,
            sent_index: self.sent_packets,
        };
        if newest {
            self.cache.append(cached);
        } else {
            self.cache.insert(cached);
        }
    }

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

    /// [S0-10] Times one packet per window: the next one after the ACK of this one.
    fn time_packet(&mut self, segment: &Segment) {
        let (seq, end) = (segment.seq, segment.end());
        self.timed.get_or_insert(Timed { seq, end, sent_at: None, spoiled: false });
    }
}
