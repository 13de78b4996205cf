//! Snoop_Ack: packets from the MAC layer [snoop-opnet §3.5, Fig. 8; S3-07].

use super::SnoopOpnet;
use super::flow::{Flow, LastAck};
use super::settings::TimerPeriod;
use crate::agent::Verdict;
use crate::agents::flow_table::FlowRef;
use crate::event::{Cause, Event, FlowEnd};
use crate::packet::Packet;
use crate::time::Instant;
use crate::wire::flow::FlowKey;
use crate::wire::seq::MAX_WINDOW;
use crate::wire::tcp::{Flags, Segment};

/// The kind of an ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AckKind {
    /// Higher than the last one.
    New,
    /// A lower ACK and nothing else: a "false acknowledgement".
    False,
    /// The last ACK once more, and nothing else, while data is outstanding.
    Duplicate,
    /// The last ACK number with more than that: data, a FIN, another window, other ECN bits.
    Repeated,
    /// An ACK number outside of what was sent, or a lower one with more than an ACK.
    Other,
}

impl SnoopOpnet {
    pub(super) fn snoop_ack(
        &mut self,
        now: Instant,
        key: &FlowKey,
        segment: &Segment,
        packet: &Packet,
    ) -> Verdict {
        let found = self.flows.find(key);
        let Some((reference, flow)) =
            found.and_then(|reference| Some((reference, self.flows.get_mut(reference)?)))
        else {
            return Verdict::Pass;
        };
        flow.base.active_at = now;
        let verdict = match flow.classify(segment) {
            AckKind::Other => Verdict::Pass,
            AckKind::New => {
                self.handle_new_ack(now, reference, segment);
                Verdict::Pass
            }
            AckKind::False if !flow.is_answer_due => {
                let id = flow.base.id;
                self.event(Event::SpuriousAckDropped(id, segment.ack));
                Verdict::Withhold
            }
            AckKind::Duplicate if !flow.is_answer_due => {
                self.handle_duplicate(reference, segment, packet)
            }
            // The sender must receive the answer to what it has sent again.
            AckKind::Repeated | AckKind::False | AckKind::Duplicate => {
                let was_closed = flow.is_closed();
                flow.forward(segment);
                if was_closed {
                    flow.restart_timer(now, &self.settings);
                }
                Verdict::Pass
            }
        };
        self.schedule(now, reference);
        verdict
    }

    /// A new ACK: the cache is cleaned, and the timer extended [S3-07, S3-08].
    fn handle_new_ack(&mut self, now: Instant, reference: FlowRef, segment: &Segment) {
        let Some(flow) = self.flows.get_mut(reference) else { return };
        flow.forward(segment);
        flow.repeat_ack = false;
        let id = flow.base.id;
        let settings = &self.settings;
        let mut measured = None;
        let closed = self.flows.update(reference, |flow| {
            let (mut packets, mut sent_at) = (0, None);
            while let Some(cached) = flow.cache.pop_acknowledged(segment.ack) {
                let is_clean = packets == 0 || sent_at.is_some();
                sent_at = cached.departed_once().filter(|_| is_clean);
                packets += 1;
            }
            if let (Some(sent_at), TimerPeriod::Adaptive) = (sent_at, settings.timer) {
                measured = Some(flow.measure(now - sent_at, packets));
            }
            flow.restart_timer(now, settings);
            flow.fin_end.is_some_and(|end| end <= segment.ack)
        });
        if let Some((sample, srtt)) = measured {
            self.event(Event::AirRtt { flow: id, sample, srtt });
        }
        if closed == Some(true) {
            // [S3-06] The receiver has the sender's FIN: no further data will need repair.
            self.flows.end(reference, FlowEnd::Closed);
        }
    }

    /// A duplicate ACK: the first one of an episode retransmits all packets from the lost one on.
    /// If that is not cached, the sender must repair the loss.
    fn handle_duplicate(
        &mut self,
        reference: FlowRef,
        segment: &Segment,
        packet: &Packet,
    ) -> Verdict {
        let Some(flow) = self.flows.get_mut(reference) else { return Verdict::Pass };
        let id = flow.base.id;
        if flow.cache.holding(segment.ack).is_none() {
            flow.forward(segment);
            self.event(Event::DupAckForwarded(id, segment.ack));
            return Verdict::Pass;
        }
        flow.withheld = Some(packet.clone());
        let is_first = !flow.repeat_ack;
        flow.repeat_ack = true;
        self.event(Event::DupAckSuppressed(id, segment.ack));
        if is_first {
            self.go_back(reference, Cause::DupAck);
        }
        Verdict::Withhold
    }
}

impl Flow {
    fn classify(&self, segment: &Segment) -> AckKind {
        let outstanding = self.last_seq.offset_from(segment.ack);
        if !(0..MAX_WINDOW).contains(&outstanding) {
            // There is no state to judge it by.
            return AckKind::Other;
        }
        let Some(last) = &self.last_ack else { return AckKind::New };
        // An option of Multipath TCP may acknowledge data of its own.
        let is_bare = segment.is_pure_ack()
            && !segment.flags.intersects(Flags::URG)
            && !segment.options.multipath;
        if segment.ack > last.number {
            AckKind::New
        } else if segment.ack < last.number {
            if is_bare { AckKind::False } else { AckKind::Other }
        } else if is_bare && *last == LastAck::of(segment) && outstanding > 0 && !self.is_closed() {
            AckKind::Duplicate
        } else {
            AckKind::Repeated
        }
    }

    /// Notes an ACK that is forwarded to the sender.
    fn forward(&mut self, segment: &Segment) {
        self.last_ack = Some(LastAck::of(segment));
        self.withheld = None;
        self.discarded_end = None;
        self.is_answer_due = false;
    }
}
