//! The sender's retransmissions of what the air lost have the timestamp of the original [C-27].

use super::Snoop;
use super::cache::Cached;
use super::flow::Flow;
use super::own_host::withheld;
use super::uplink::timestamp_restored;
use crate::agent::Verdict;
use crate::packet::Packet;
use crate::port::Port;
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
        let start = self.position(segment.seq).filter(|start| *start < self.highest)?;
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
        let accepted = self.ts_recent.renewed(original, start, self.own.resent);
        Some(accepted).filter(|accepted| is_before(*accepted, value))
    }
}
