//! The sender's retransmissions of what the air lost have the timestamp of the original [C-27].

use super::cache::{Cached, MAX_EXAMINED};
use super::flow::Flow;
use super::own_host::withheld;
use super::{Snoop, seq};
use crate::agent::{Restoration, Verdict};
use crate::packet::Packet;
use crate::port::Port;
use crate::ranges::Span;
use crate::time::Instant;
use crate::wire::edit::with_timestamp;
use crate::wire::flow::FlowKey;
use crate::wire::seq::is_before;
use crate::wire::tcp::Segment;

impl Snoop {
    /// Gives a retransmission of the sender the timestamp of the original, if the original was lost
    /// on the air and not by congestion: the ACK of the repair or of this one undoes the sender's
    /// reduction (RFC 3522).
    pub(super) fn restore_timestamp(&mut self, now: Instant, packet: &Packet) -> Verdict {
        if self.flows.load().flows == 0 {
            return Verdict::Pass;
        }
        let parsed = Segment::parse(packet);
        let Ok(segment) = &parsed else { return Verdict::Pass };
        if segment.payload_len == 0 {
            return Verdict::Pass;
        }
        let key = FlowKey::of(segment, Port::Wired);
        let Some(flow) = self.flows.find(&key) else { return Verdict::Pass };
        let Some(flow) = self.flows.get_mut(flow) else { return Verdict::Pass };
        if let Some(timestamps) = segment.options.timestamps {
            flow.sender.wired.data_arrived(now, timestamps.echo);
        }
        let id = flow.base.id;
        if flow.is_in_sending_host() && flow.withhold_duplicate(segment) {
            self.event(withheld(id, segment.seq));
            return Verdict::Withhold;
        }
        let restored = flow.older_timestamp(segment);
        let restored = restored.and_then(|value| with_timestamp(packet, segment, value));
        restored.map_or(Verdict::Pass, Verdict::Replace)
    }

    /// What the sender resends of this repair's data, and of what was lost behind it, gets the
    /// timestamp of the originals.
    pub(super) fn restoration_of(&self, repair: &Packet) -> Option<Restoration> {
        let segment = Segment::parse(repair).ok().filter(|segment| !segment.options.signed)?;
        let key = FlowKey::of(&segment, Port::Wired);
        let flow = self.flows.get(self.flows.find(&key)?)?;
        let (lost, timestamp) = flow.lost_with_one_timestamp(flow.span(&segment)?)?;
        Some(Restoration { flow: key, start: segment.seq, end: seq(lost.end), timestamp })
    }
}

impl Flow {
    /// The timestamp of the lost original, if it is older than that of this retransmission.
    fn older_timestamp(&self, segment: &Segment) -> Option<u32> {
        let value = segment.options.timestamps.filter(|_| !segment.options.signed)?.value;
        let original = self.original_timestamp(self.span(segment)?)?;
        Some(original).filter(|original| is_before(*original, value))
    }

    /// Whether data that the sender has sent before has the timestamp of the lost original again.
    pub(super) fn is_restored(&self, segment: &Segment, span: Span) -> bool {
        let value = segment.options.timestamps.map(|timestamps| timestamps.value);
        span.start < self.highest && value.is_some() && self.original_timestamp(span) == value
    }

    /// A range that the air has lost, prolonged by what it has lost behind it of the same
    /// timestamp, and this timestamp.
    fn lost_with_one_timestamp(&self, mut span: Span) -> Option<(Span, u32)> {
        let timestamp = self.original_timestamp(span)?;
        let behind = self.outstanding.cache.iter_overlapping(span.end, self.highest);
        for next in behind.take(MAX_EXAMINED) {
            if next.start != span.end || self.original_timestamp(next.span()) != Some(timestamp) {
                break;
            }
            span.end = next.end;
        }
        Some((span, timestamp))
    }

    /// The timestamp of the original of a range that the air has lost, or the oldest one that the
    /// receiver accepts instead (RFC 7323 §5.3).
    fn original_timestamp(&self, Span { start, end }: Span) -> Option<u32> {
        let mut cached = self.outstanding.cache.iter_overlapping(start, end).peekable();
        let original = Segment::parse(&cached.peek()?.packet).ok()?.options.timestamps?.value;
        let is_airs = |cached: &Cached| {
            cached.trouble.missing_since.is_some()
                && !cached.trouble.is_congestion
                && !cached.trouble.is_disputed
        };
        cached.all(is_airs).then(|| self.ts_recent.renewed(original, start, self.own.resent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::Agent;
    use crate::agents::limits::Limits;
    use crate::agents::snoop::Settings;
    use crate::agents::snoop::uplink::timestamp_restored;
    use crate::packet::LinkType;
    use crate::wire::build::SegmentBuilder;
    use crate::wire::seq::SeqNumber;
    use crate::wire::tcp::{Options, Timestamps};
    use alloc::vec::Vec;

    const FIXED: ([u8; 4], u16) = ([10, 0, 0, 1], 80);
    const MOBILE: ([u8; 4], u16) = ([10, 0, 1, 2], 5000);

    fn timestamps(value: u32, echo: u32) -> Options {
        Options { timestamps: Some(Timestamps { value, echo }), ..Options::default() }
    }

    /// Segment `number` of 1,000 bytes, with this timestamp.
    fn data(number: u32, value: u32) -> Packet {
        SegmentBuilder::new(FIXED, MOBILE)
            .seq(SeqNumber(number * 1_000))
            .options(timestamps(value, 7))
            .payload(&[0; 1_000])
            .build(LinkType::Ip)
    }

    fn ack(number: u32, sacked: u32) -> Packet {
        let block = (SeqNumber(sacked * 1_000), SeqNumber((sacked + 1) * 1_000));
        let sack = [block].into_iter().filter(|_| sacked > number).collect();
        SegmentBuilder::new(MOBILE, FIXED)
            .ack(SeqNumber(number * 1_000))
            .window(u16::MAX)
            .options(Options { sack, ..timestamps(10, 100) })
            .build(LinkType::Ip)
    }

    /// As in a gateway, whose kernel forwards data before the agent sees a copy: segments 1 and 2
    /// are lost and have one timestamp, 3 is lost and has another, and 4 arrives.
    #[test]
    fn a_gateway_learns_what_to_restore_with_each_repair() {
        let mut agent = Snoop::new(Settings::default(), Limits::default(), 1);
        let mut now = Instant::from_millis(1);
        agent.handle_copy(now, Port::Wired, &data(0, 100));
        now = Instant::from_millis(201);
        agent.handle_copy(now, Port::Air, &ack(1, 0));
        for (number, value) in [(1, 300), (2, 300), (3, 301), (4, 301)] {
            agent.handle_copy(now, Port::Wired, &data(number, value));
        }
        now = Instant::from_millis(401);
        let _shown = agent.handle_packet(now, Port::Air, &ack(1, 4));
        let mut restorations = Vec::new();
        while let Some(repair) = agent.poll_transmit(now, Port::Air) {
            agent.confirm_departure(now, Port::Air, &repair);
            let known = agent.restoration(&repair).unwrap();
            restorations.push((known.start.0, known.end.0, known.timestamp));
        }
        restorations.truncate(3);
        let expected = [(1_000, 3_000, 300), (2_000, 3_000, 300), (3_000, 4_000, 301)];
        assert_eq!(restorations, expected);
        assert_eq!(agent.restoration(&data(4, 301)), None, "it has arrived");

        while agent.poll_event().is_some() {}
        agent.handle_copy(now, Port::Wired, &data(1, 300));
        agent.handle_copy(now, Port::Wired, &data(3, 500));
        let restored = core::iter::from_fn(|| agent.poll_event());
        let restored: Vec<_> =
            restored.filter(|event| event.counter() == "restored_timestamps").collect();
        assert_eq!(restored, [timestamp_restored(0, 1_000)]);
    }
}
