//! `snoop_ack()`: ACKs from the mobile host [snoop95 §3.1.2, Fig. 2].

use super::Snoop95;
use super::flow::{Flow, LastAck, SmallPacket};
use super::settings::Settings;
use crate::agent::Verdict;
use crate::agents::flow_table::FlowRef;
use crate::event::{Cause, Event, FlowEnd};
use crate::packet::Packet;
use crate::time::Instant;
use crate::wire::edit::bare_ack;
use crate::wire::flow::FlowKey;
use crate::wire::seq::SeqNumber;
use crate::wire::tcp::{Flags, Segment};
use core::time::Duration;

/// The kind of an ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AckKind {
    /// The ACK acknowledges new data.
    New,
    /// The ACK number is below that of the last ACK.
    Spurious,
    /// The ACK repeats the last ACK while data is outstanding.
    Duplicate,
    /// Another ACK: a window update, the answer to a probe, or an ACK number above all data sent.
    Other,
}

impl Snoop95 {
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
        flow.touch(now, &self.settings);
        let kind = flow.classify_ack(segment);
        let bare = segment.is_pure_ack() && !segment.flags.intersects(Flags::URG);
        let closed = flow.is_closed(&self.settings);
        let verdict = match kind {
            AckKind::New => {
                self.handle_new_ack(now, reference, segment, packet);
                Verdict::Pass
            }
            // Data with an old ACK number must pass.
            AckKind::Spurious if bare => {
                let id = flow.base.id;
                self.event(Event::SpuriousAckDropped(id, segment.ack));
                Verdict::Withhold
            }
            // [S0-38] While the window is closed the same ACK again answers a probe.
            AckKind::Duplicate if bare && !closed => {
                self.handle_dupack(now, reference, segment.ack)
            }
            AckKind::Spurious | AckKind::Duplicate | AckKind::Other => {
                if flow.last_ack.as_ref().is_some_and(|last| last.number == segment.ack) {
                    flow.remember(segment, packet);
                }
                Verdict::Pass
            }
        };
        if let Some(flow) = self.flows.get_mut(reference)
            && kind != AckKind::Spurious
        {
            flow.withheld = (verdict == Verdict::Withhold).then(|| packet.clone());
        }
        self.schedule(now, reference);
        verdict
    }

    /// [S0-20] Frees acknowledged packets, and takes a round-trip sample.
    fn handle_new_ack(
        &mut self,
        now: Instant,
        reference: FlowRef,
        segment: &Segment,
        packet: &Packet,
    ) {
        let Some(flow) = self.flows.get_mut(reference) else { return };
        flow.remember(segment, packet);
        flow.expected_dupacks = 0;
        flow.unexpected_dupacks = 0;
        // [S0-33] Further losses among the data that was outstanding when a DUPACK started the
        // timer may cause no DUPACKs of their own.
        let spans = self.settings.timer_spans_recovery && segment.ack < flow.recover;
        let timeout = flow.round_trip_timeout(&self.settings);
        flow.round_trip_due = flow.round_trip_due.filter(|_| spans).map(|_| now + timeout);
        let mut closed = false;
        let id = flow.base.id;
        if let Some((sample, srtt)) = flow.measure(now, segment.ack, &self.settings) {
            self.event(Event::AirRtt { flow: id, sample, srtt });
        }
        self.flows.update(reference, |flow| {
            while let Some(freed) = flow.cache.pop_acknowledged(segment.ack) {
                closed |= freed.fin;
            }
        });
        if closed {
            // The mobile has the sender's FIN: no further data will need repair.
            self.flows.end(reference, FlowEnd::Closed);
        }
    }

    fn handle_dupack(&mut self, now: Instant, reference: FlowRef, ack: SeqNumber) -> Verdict {
        let threshold = self.settings.dupack_threshold;
        let Some(flow) = self.flows.get_mut(reference) else { return Verdict::Pass };
        let id = flow.base.id;
        let sent_packets = flow.sent_packets;
        let lost = flow.cache.holding(ack).filter(|cached| !cached.sender_retransmitted);
        // [S0-22] The packet is not cached, or the sender retransmitted it and counts the DUPACKs
        // itself.
        let Some(lost) = lost else {
            self.event(Event::DupAckForwarded(id, ack));
            return Verdict::Pass;
        };
        let (seq, sent_index, is_queued) = (lost.seq, lost.sent_index, lost.queued.is_some());
        self.event(Event::DupAckSuppressed(id, ack));
        let Some(flow) = self.flows.get_mut(reference) else { return Verdict::Withhold };
        if flow.expected_dupacks > 0 {
            // [S0-24] The DUPACK was expected: a retransmission is in flight.
            flow.expected_dupacks -= 1;
            return Verdict::Withhold;
        }
        flow.unexpected_dupacks += 1;
        if is_queued || flow.unexpected_dupacks < threshold {
            return Verdict::Withhold;
        }
        // [S0-23] Each packet sent after the lost one causes one DUPACK; those seen already are not
        // expected.
        let sent_after = sent_packets.wrapping_sub(sent_index);
        flow.expected_dupacks = sent_after.saturating_sub(flow.unexpected_dupacks);
        flow.unexpected_dupacks = 0;
        self.retransmit(now, reference, seq, Cause::DupAck);
        Verdict::Withhold
    }
}

impl Flow {
    fn classify_ack(&self, segment: &Segment) -> AckKind {
        if segment.ack > self.last_seq {
            // The ACK is beyond all data that passed here: there is no state to judge it by.
            return AckKind::Other;
        }
        let Some(last) = &self.last_ack else { return AckKind::New };
        if segment.ack > last.number {
            AckKind::New
        } else if segment.ack < last.number {
            AckKind::Spurious
        } else if segment.window == last.window && segment.ack < self.last_seq {
            AckKind::Duplicate
        } else {
            AckKind::Other
        }
    }

    /// Keeps the mobile's last ACK, to be repeated unchanged. The checksum of a packet that was not
    /// captured whole is not verified, and a repetition would bear a valid one: it is not repeated.
    fn remember(&mut self, segment: &Segment, packet: &Packet) {
        let is_whole = packet.bytes().len() == packet.wire_len() as usize;
        self.last_ack = Some(LastAck {
            number: segment.ack,
            window: segment.window,
            packet: is_whole.then(|| SmallPacket::of(&bare_ack(packet, segment))).flatten(),
        });
    }

    /// [S0-20] Takes at most one sample per window, and none after a retransmission in that window.
    fn measure(
        &mut self,
        now: Instant,
        ack: SeqNumber,
        settings: &Settings,
    ) -> Option<(Duration, Duration)> {
        let timed = self.timed.take_if(|timed| timed.end <= ack)?;
        let sent_at = timed.sent_at.filter(|_| !timed.spoiled)?;
        if timed.end == self.last_seq && !settings.lone_samples {
            return None;
        }
        let sample = now - sent_at;
        Some((sample, self.sample_round_trip(sample, settings.srtt_gain)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::flows::FlowBase;
    use crate::event::FlowId;
    use crate::packet::LinkType;
    use crate::wire::build::SegmentBuilder;

    #[test]
    fn an_ack_that_was_not_captured_whole_is_not_repeated() {
        let whole = SegmentBuilder::new(([10, 0, 0, 2], 80), ([10, 0, 0, 1], 5000))
            .ack(SeqNumber(7))
            .payload(b"data")
            .build(LinkType::Ip);
        let segment = Segment::parse(&whole).unwrap();
        let longer = whole.wire_len() + 1;
        let cut = Packet::truncated(LinkType::Ip, whole.shared_bytes(), longer);
        for (packet, is_repeated) in [(whole, true), (cut, false)] {
            let mut flow = Flow::new(FlowBase::new(FlowId(0), Instant::ZERO), SeqNumber(0));
            flow.remember(&segment, &packet);
            assert_eq!(flow.last_ack.unwrap().packet.is_some(), is_repeated);
        }
    }
}
