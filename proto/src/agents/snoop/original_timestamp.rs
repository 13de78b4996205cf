//! The sender's retransmissions have the timestamp of what was lost [C-27].

use super::duplicates::withheld;
use crate::agent::Verdict;
use crate::agents::snoop::Snoop;
use crate::agents::snoop::cache::Cached;
use crate::agents::snoop::flow::Flow;
use crate::agents::snoop::uplink::timestamp_restored;
use crate::packet::Packet;
use crate::port::Port;
use crate::time::Instant;
use crate::wire::edit::with_timestamp;
use crate::wire::flow::FlowKey;
use crate::wire::seq::is_before;
use crate::wire::tcp::Segment;

impl Snoop {
    /// Gives a retransmission of the sender in this host the timestamp of the original, if the
    /// original was lost on the way and not by congestion.
    pub(in super::super) fn restore_timestamp(&mut self, now: Instant, packet: &Packet) -> Verdict {
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
        if !flow.sender.wired.answers_from_own_host(flow.air.min()) {
            return Verdict::Pass;
        }
        let id = flow.base.id;
        if flow.withhold_duplicate(segment) {
            self.event(withheld(id, segment.seq));
            return Verdict::Withhold;
        }
        let restored = flow.original_timestamp(segment);
        match restored.and_then(|value| with_timestamp(packet, segment, value)) {
            Some(restored) => {
                self.event(timestamp_restored(id.0, segment.seq.0));
                Verdict::Replace(restored)
            }
            None => Verdict::Pass,
        }
    }
}

impl Flow {
    /// The timestamp of the lost original, if it is older than that of this retransmission and the
    /// receiver accepts it (RFC 7323 §5.3).
    fn original_timestamp(&self, segment: &Segment) -> Option<u32> {
        let value = segment.options.timestamps?.value;
        let start = self.position(segment.seq)?;
        let end = start + u64::from(segment.seq_len());
        let mut cached = self.outstanding.cache.iter_overlapping(start, end).peekable();
        let original = Segment::parse(&cached.peek()?.packet).ok()?.options.timestamps?.value;
        let is_airs = |cached: &Cached| {
            cached.trouble.missing_since.is_some()
                && !cached.trouble.is_congestion
                && !cached.trouble.is_disputed
        };
        if segment.options.signed || !cached.all(is_airs) {
            return None;
        }
        Some(self.ts_recent.renewed(original)).filter(|restored| is_before(*restored, value))
    }
}
