//! ACKs from the mobile host: what they say of the air hop, and what of it the sender should see.

use super::Snoop;
use super::flow::{Flow, Told, Withheld};
use crate::agent::Port;
use crate::agents::flow_table::FlowRef;
use crate::event::{Event, FlowEnd};
use crate::packet::Packet;
use crate::time::Instant;
use crate::wire::edit::keep_sack_blocks;
use crate::wire::flow::FlowKey;
use crate::wire::seq::SeqNumber;
use crate::wire::tcp::{Flags, Segment};
use core::time::Duration;

/// What becomes of an ACK.
enum Verdict {
    /// It passes as it is.
    Pass,
    /// It passes without the SACK blocks that begin here or above.
    Strip(u64),
    /// It says nothing but what is being mended, the lowest hole of which begins here.
    Withhold(u64),
}

/// What an ACK says beside its SACK blocks.
#[derive(Clone, Copy, Debug, Default)]
struct Says {
    /// It is not the last one again.
    advances: bool,
    /// Something arrived that the sender had sent again.
    resent: bool,
}

impl Snoop {
    pub(super) fn handle_ack(
        &mut self,
        now: Instant,
        key: &FlowKey,
        segment: &Segment,
        packet: Packet,
    ) {
        let found = self.flows.find(key);
        let Some((reference, flow)) =
            found.and_then(|reference| Some((reference, self.flows.get_mut(reference)?)))
        else {
            self.forward(Port::Wired, packet, None);
            return;
        };
        flow.active_at = now;
        // An ACK of what never passed here says nothing that this state could judge.
        let known = flow.position(segment.ack).filter(|ack| *ack <= flow.highest);
        let Some(ack) = known else {
            self.forward(Port::Wired, packet, None);
            return;
        };
        // An older one, overtaken or from before the flow was picked up, may tell the sender more
        // than it knows, too.
        let advances = ack != flow.acked || !flow.answered;
        let before = flow.cache.memory();
        let news = flow.take_ack(now, ack, segment);
        self.cache_bytes = self.cache_bytes - before + flow.cache.memory();
        let id = flow.id;
        if news.reneged {
            self.event(Event::Reneged(id, segment.ack));
        }
        if let Some((sample, srtt)) = news.round_trip {
            self.air_round_trip = Some(srtt);
            self.event(Event::AirRtt { flow: id, sample, srtt });
        }
        if let Some(flow) = self.flows.get_mut(reference)
            && flow.is_duplicate(segment, ack, advances)
        {
            flow.take_duplicate(now);
        }
        self.repair_losses(now, reference);
        let says = Says { advances, resent: news.resent };
        self.pass_ack(now, reference, segment, says, packet);
        if news.fin {
            // The mobile has the sender's FIN: no more data will need mending.
            self.end_flow(reference, FlowEnd::Closed);
        } else {
            self.schedule(now, reference);
        }
    }

    /// Gives the sender what it should see of an ACK.
    fn pass_ack(
        &mut self,
        now: Instant,
        reference: FlowRef,
        segment: &Segment,
        says: Says,
        packet: Packet,
    ) {
        let Some(flow) = self.flows.get_mut(reference) else { return };
        let id = flow.id;
        let budget = flow.hold_budget(&self.settings);
        let verdict = match self.settings.suppress {
            true => flow.judge(now, budget, segment, says),
            false => Verdict::Pass,
        };
        let (passed, event) = match verdict {
            Verdict::Pass => (packet, None),
            Verdict::Withhold(hole) => {
                flow.withheld = Some(Withheld { packet, hole });
                self.event(Event::DupAckSuppressed(id, segment.ack));
                return;
            }
            Verdict::Strip(limit) => {
                let keep = |left| flow.position(left).is_none_or(|left| left < limit);
                let stripped = keep_sack_blocks(&packet, segment, keep);
                (stripped, Some(Event::SackStripped(id, segment.ack)))
            }
        };
        flow.withheld = None;
        flow.told = Some(Told::of(segment));
        if let Some(timestamps) = segment.options.timestamps {
            flow.wired.ack_left(now, timestamps.value);
        }
        if let Some(event) = event {
            self.event(event);
        }
        self.forward(Port::Wired, passed, None);
    }

    /// [C-13] The hold budget is spent: the sender sees the last ACK that was kept from it, up to
    /// the next hole that is still covered.
    pub(super) fn reveal(&mut self, now: Instant, reference: FlowRef) {
        let Some(flow) = self.flows.get_mut(reference) else { return };
        let Some(Withheld { packet, .. }) = flow.withheld.take() else { return };
        let Ok(segment) = Segment::parse(&packet) else { return };
        let id = flow.id;
        let budget = flow.hold_budget(&self.settings);
        if let Verdict::Withhold(hole) = flow.judge(now, budget, &segment, Says::default()) {
            // It tells only of what lies above a hole that is still covered.
            flow.withheld = Some(Withheld { packet, hole });
            return;
        }
        self.event(Event::Revealed(id, segment.ack));
        self.pass_ack(now, reference, &segment, Says::default(), packet);
    }
}

impl Flow {
    /// A duplicate ACK in the sense of RFC 5681 §2, from a mobile without SACK.
    fn is_duplicate(&self, segment: &Segment, ack: u64, advances: bool) -> bool {
        !self.uses_sack
            && !advances
            && ack < self.highest
            && segment.is_pure_ack()
            && self.told.is_none_or(|told| told == Told::of(segment))
    }

    /// [C-7, C-8, C-9] What the sender should see.
    fn judge(&self, now: Instant, budget: Duration, segment: &Segment, says: Says) -> Verdict {
        if says.resent {
            // What the sender sent after the holes has arrived: it takes for lost whatever it does
            // not know to have arrived, the hidden packets too.
            return Verdict::Pass;
        }
        let Some(limit) = self.lowest_covered(now, budget).map(|hole| hole.start) else {
            return Verdict::Pass;
        };
        let blocks = segment.options.sack.as_slice();
        let is_revealing = |left: SeqNumber| self.position(left).is_some_and(|left| left >= limit);
        let revealing = blocks.iter().filter(|(left, _)| is_revealing(*left)).count();
        if revealing == 0 && self.uses_sack {
            return Verdict::Pass;
        }
        let urgent = segment.flags.intersects(Flags::URG);
        let says_nothing_else = !says.advances
            && revealing == blocks.len()
            && segment.is_pure_ack()
            && !urgent
            && self.told.is_some_and(|told| told == Told::of(segment));
        if says_nothing_else {
            return Verdict::Withhold(limit);
        }
        // [C-16] What is signed may be dropped or passed, never edited.
        if revealing == 0 || segment.options.signed {
            return Verdict::Pass;
        }
        Verdict::Strip(limit)
    }
}
