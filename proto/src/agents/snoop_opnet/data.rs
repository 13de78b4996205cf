//! Snoop_Data: packets from TCP/IP [snoop-opnet §3.5, Fig. 7; S3-06].

use super::SnoopOpnet;
use super::cache::CachedPacket;
use super::flow::Flow;
use crate::agent::Verdict;
use crate::agents::flow_table::FlowRef;
use crate::event::{Event, Uncached};
use crate::packet::Packet;
use crate::time::Instant;
use crate::wire::flow::FlowKey;
use crate::wire::seq::MAX_WINDOW;
use crate::wire::tcp::{Flags, Segment};

/// The branches of the flow chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Branch {
    /// With data above the last sequence number.
    New,
    /// Sent before, with data above the last ACK.
    Resent,
    /// Below the last ACK.
    Acknowledged,
    /// Too far from the window to belong to the flow.
    OutOfWindow,
}

impl SnoopOpnet {
    /// Discards data that the receiver has acknowledged.
    ///
    /// The agent generates no ACK. So where a sender has not received the last ACK, as behind a
    /// base station, its second copy passes, and so does the ACK that answers it.
    pub(super) fn judge_data(&mut self, now: Instant, key: &FlowKey, segment: &Segment) -> Verdict {
        let flow = self.flows.find(key).and_then(|reference| self.flows.get_mut(reference));
        let Some(flow) = flow.filter(|_| segment.seq_len() > 0) else { return Verdict::Pass };
        flow.base.active_at = now;
        let is_discarded = flow.branch(segment) == Branch::Acknowledged
            && !flow.is_probe(segment)
            && flow.discarded_end.is_none_or(|end| segment.seq >= end);
        if !is_discarded {
            return Verdict::Pass;
        }
        flow.discarded_end = Some(segment.end());
        let id = flow.base.id;
        self.event(Event::DataDiscarded(id, segment.seq));
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
        match flow.branch(segment) {
            Branch::OutOfWindow => {}
            Branch::Acknowledged => flow.is_answer_due = true,
            // The receiver answers a probe or the sender repeats it.
            Branch::New | Branch::Resent if flow.is_closed() => {
                flow.last_seq = flow.last_seq.max(segment.end());
            }
            branch => {
                let is_new = branch == Branch::New;
                // [S3-08] New data extends the timer, and the first packet in the cache starts it.
                let extends_timer = is_new || flow.cache.is_empty();
                flow.send(segment, is_new);
                let id = flow.base.id;
                if !is_new {
                    self.event(Event::SenderRetransmit(id, segment.seq));
                }
                let sent_at = Some(now).filter(|_| is_new);
                self.cache_packet(reference, segment, packet, sent_at);
                if let Some(flow) = self.flows.get_mut(reference).filter(|_| extends_timer) {
                    flow.restart_timer(now, &self.settings);
                }
                self.schedule(now, reference);
            }
        }
    }

    /// Caches a copy of the packet, if there is room [S3-04]. The copy of a packet that was sent
    /// before takes the place of the older one.
    fn cache_packet(
        &mut self,
        reference: FlowRef,
        segment: &Segment,
        packet: &Packet,
        sent_at: Option<Instant>,
    ) {
        let (room, load) = (self.flows.room(), self.flows.load());
        let Some(flow) = self.flows.get_mut(reference) else { return };
        let is_known = flow.cache.starting_at(segment.seq).is_some();
        let added = flow.cache.memory_with(segment.seq, packet) - flow.cache.memory();
        let refusal = if added > room {
            Some(Uncached::MemoryLimit)
        } else {
            let is_full = !is_known && load.cache_packets >= self.settings.cache_packets;
            is_full.then_some(Uncached::HighWaterMark)
        };
        if let Some(reason) = refusal {
            let id = flow.base.id;
            return self.event(Event::Uncached(id, segment.seq, reason));
        }
        let (seq, len, packet) = (segment.seq, segment.seq_len(), packet.clone());
        let cached = CachedPacket { seq, len, attempts: 0, sent_at, packet };
        self.flows.update(reference, |flow| flow.cache.insert(cached));
        if !is_known {
            self.counters.note_cached(self.flows.load().cache_packets);
        }
    }
}

impl Flow {
    /// Notes data that has departed.
    fn send(&mut self, segment: &Segment, is_new: bool) {
        if is_new {
            self.last_seq = segment.end();
        }
        if segment.flags.intersects(Flags::FIN) {
            self.fin_end = Some(segment.end());
        }
    }

    fn branch(&self, segment: &Segment) -> Branch {
        let end = segment.end();
        let acked = self.last_ack.map(|last| last.number);
        let anchor = acked.unwrap_or(self.last_seq);
        if !(-MAX_WINDOW..MAX_WINDOW).contains(&end.offset_from(anchor)) {
            Branch::OutOfWindow
        } else if acked.is_some_and(|acked| end <= acked) {
            Branch::Acknowledged
        } else if end > self.last_seq {
            Branch::New
        } else {
            Branch::Resent
        }
    }
}
