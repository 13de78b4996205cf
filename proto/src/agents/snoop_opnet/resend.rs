//! Go-back-N: all unacknowledged packets are retransmitted in order [snoop-opnet §3.5; S3-07,
//! S3-08].

use super::SnoopOpnet;
use super::flow::Resending;
use super::settings::Resend;
use crate::agent::Port;
use crate::agents::flow_table::FlowRef;
use crate::event::{Cause, Event};
use crate::packet::Packet;
use crate::wire::flow::FlowKey;
use crate::wire::tcp::Segment;

impl SnoopOpnet {
    /// Begins to retransmit what a flow has in its cache, from the oldest packet on. What waits of
    /// an earlier retransmission is part of it, so that no packet waits twice.
    pub(super) fn go_back(&mut self, reference: FlowRef, cause: Cause) {
        let is_full = self.resending.is_full();
        let Some(flow) = self.flows.get_mut(reference) else { return };
        let Some(oldest) = flow.cache.oldest() else { return };
        let next = oldest.seq;
        let end = match self.settings.resend {
            Resend::First => next + 1,
            Resend::All => flow.last_seq,
        };
        let is_waiting = flow.resending.is_some();
        if !is_waiting && is_full {
            return self.event(Event::EgressDropped(Port::Air));
        }
        flow.resending = Some(Resending { next, end, cause });
        if !is_waiting {
            self.resending.push(reference);
        }
    }

    /// The next packet to retransmit.
    pub(super) fn poll_resend(&mut self) -> Option<Packet> {
        loop {
            let reference = self.resending.pop()?;
            if let Some((packet, event)) = self.next_packet(reference) {
                self.resending.put_back(reference);
                self.event(event);
                return Some(packet);
            }
        }
    }

    /// The next packet that a flow retransmits; without one the retransmission is complete.
    fn next_packet(&mut self, reference: FlowRef) -> Option<(Packet, Event)> {
        let flow = self.flows.get_mut(reference)?;
        let Resending { next, end, cause } = flow.resending.take()?;
        if flow.is_closed() {
            return None;
        }
        let cached = flow.cache.from(next).filter(|cached| cached.seq < end)?;
        let (seq, packet) = (cached.seq, cached.packet.clone());
        cached.attempts += 1;
        let attempt = cached.attempts;
        flow.resending = Some(Resending { next: seq + 1, end, cause });
        Some((packet, Event::LocalRetransmit { flow: flow.base.id, seq, cause, attempt }))
    }

    /// Whether a retransmission is still cached, so not acknowledged: it may have waited in a queue
    /// of the runner.
    pub(super) fn is_needed(&mut self, packet: &Packet) -> bool {
        let Ok(segment) = Segment::parse(packet) else { return true };
        let flow = self.flows.find(&FlowKey::of(&segment, Port::Wired));
        let flow = flow.and_then(|flow| self.flows.get_mut(flow));
        flow.is_some_and(|flow| flow.cache.starting_at(segment.seq).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Settings;
    use super::*;
    use crate::agents::Limits;
    use crate::forwarder::{Forwarder, PriorityClass};
    use crate::packet::LinkType;
    use crate::time::Instant;
    use crate::wire::build::SegmentBuilder;
    use crate::wire::seq::SeqNumber;
    use crate::wire::tcp::Flags;
    use alloc::boxed::Box;
    use alloc::vec::Vec;
    use core::time::Duration;

    const SENDER: ([u8; 4], u16) = ([10, 0, 0, 1], 80);
    const RECEIVER: ([u8; 4], u16) = ([10, 0, 0, 2], 5000);

    fn data(number: u32) -> Packet {
        let seq = SeqNumber(number * 100);
        SegmentBuilder::new(SENDER, RECEIVER)
            .seq(seq)
            .flags(Flags::ACK)
            .payload(&[7; 100])
            .build(LinkType::Ip)
    }

    fn sent(forwarder: &mut Forwarder<SnoopOpnet>, now: Instant) -> Vec<Packet> {
        core::iter::from_fn(|| forwarder.poll_transmit(now, Port::Air)).collect()
    }

    #[test]
    fn what_is_acknowledged_while_it_waits_in_the_runner_does_not_leave() {
        let agent = SnoopOpnet::new(Settings::default(), Limits::default(), 1);
        let mut forwarder = Forwarder::new(Box::new(agent), Limits::default().egress)
            .with_priority_class(PriorityClass::Absent);
        for number in 0..3 {
            forwarder.handle_packet(Instant::ZERO, Port::Wired, data(number));
        }
        assert_eq!(sent(&mut forwarder, Instant::ZERO).len(), 3);
        let later = Instant::ZERO + Duration::from_secs(1);
        forwarder.handle_timeout(later);
        let ack = SegmentBuilder::new(RECEIVER, SENDER).ack(SeqNumber(200)).flags(Flags::ACK);
        forwarder.handle_packet(later, Port::Air, ack.build(LinkType::Ip));
        assert_eq!(sent(&mut forwarder, later), [data(2)]);
    }
}
