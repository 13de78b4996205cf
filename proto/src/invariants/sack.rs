//! SACK blocks: an agent reports no data that has not arrived, neither once nor twice.
//!
//! A block names data that the receiver has reported or, towards the air, data that has passed: a
//! mobile host may take blocks though its receiver sends none [S0-40 S0-42]. Towards the wired side
//! there is none before the receiver's first, which shows that the sender understands them
//! (RFC 2018 §2).
//! A DSACK block (RFC 2883) names data that the receiver has reported so, or that came in twice
//! [C-29].

use super::bounded_map::BoundedMap;
use super::violation::Violation;
use crate::port::Port;
use crate::ranges::{Ranges, Span};
use crate::wire::seq::SeqNumber;
use crate::wire::tcp::{Endpoint, Flags, Segment};
use alloc::vec::Vec;

/// The number of directed flows in memory.
const FLOWS: usize = 1 << 11;
/// The most spans of each kind for a flow. Of more the two lowest become one, with what is between
/// them: that is not accused.
const SPANS: usize = 1 << 10;

/// What has entered of the data of each directed flow and of the reports on it.
#[derive(Debug)]
pub(super) struct Sack {
    flows: BoundedMap<(Endpoint, Endpoint), Data>,
}

/// The data of one directed flow.
#[derive(Debug)]
struct Data {
    /// The highest position, of data or of a report; its low bits are the sequence number.
    highest: u64,
    /// The receiver's highest cumulative ACK.
    acked: u64,
    /// What the receiver has reported above that.
    sacked: Ranges,
    /// What the receiver has reported as duplicates.
    duplicates: Ranges,
    /// What has come in, and what of it more than once.
    arrived: Ranges,
    arrived_twice: Ranges,
    /// Whether the receiver has sent blocks.
    uses_sack: bool,
    /// Numbers without an order, which only a hostile host sends, are not checked. Nor is a flow
    /// whose begin may have been forgotten.
    is_checked: bool,
}

impl Default for Sack {
    fn default() -> Self {
        Self { flows: BoundedMap::new(FLOWS) }
    }
}

impl Sack {
    /// Notes a segment that is about to enter the agent.
    pub(super) fn enters(&mut self, segment: &Segment) {
        let (source, destination) = (segment.source, segment.destination);
        if segment.seq_len() > 0
            && let Some(data) = self.data((source, destination), segment.seq)
        {
            data.arrives(segment);
        }
        let reports = segment.flags.intersects(Flags::ACK) || !segment.options.sack.is_empty();
        if reports && let Some(data) = self.data((destination, source), segment.ack) {
            data.is_reported(segment);
        }
    }

    fn data(&mut self, flow: (Endpoint, Endpoint), first: SeqNumber) -> Option<&mut Data> {
        if self.flows.get(&flow).is_none() {
            let is_checked = !self.flows.has_forgotten;
            self.flows.insert(flow, Data::new(first, is_checked));
        }
        self.flows.get_mut(&flow)
    }

    /// Checks a segment that leaves the agent towards `to`.
    pub(super) fn leaves(&self, to: Port, segment: &Segment) -> Result<(), Violation> {
        let blocks = segment.options.sack.as_slice();
        let Some(&(left, right)) = blocks.first() else { return Ok(()) };
        match self.flows.get(&(segment.destination, segment.source)) {
            Some(data) if data.is_checked => data.check(to, segment),
            // An ACK that was withheld may leave when its flow has been forgotten.
            None if !self.flows.has_forgotten => Err(Violation::SackInvented { to, left, right }),
            _ => Ok(()),
        }
    }
}

impl Data {
    fn new(first: SeqNumber, is_checked: bool) -> Self {
        let first = (1 << 32) | u64::from(first.0);
        Self {
            highest: first,
            acked: 0,
            sacked: Ranges::default(),
            duplicates: Ranges::default(),
            arrived: Ranges::default(),
            arrived_twice: Ranges::default(),
            uses_sack: false,
            is_checked,
        }
    }

    fn position(&self, number: SeqNumber) -> Option<u64> {
        number.position(self.highest)
    }

    /// The positions from `left` up to `right`. A block that is empty or begins behind its end
    /// names no data.
    fn span(&self, (left, right): (SeqNumber, SeqNumber)) -> Option<Span> {
        let (start, end) = (self.position(left)?, self.position(right)?);
        Some(Span { start, end: end.max(start) })
    }

    fn arrives(&mut self, segment: &Segment) {
        let Some(span) = self.span((segment.seq, segment.end())) else {
            self.is_checked = false;
            return;
        };
        self.highest = self.highest.max(span.end);
        let mut at = span.start;
        while at < span.end {
            let known = self.arrived.span_at(at).map(|known| known.end.min(span.end));
            if let Some(end) = known {
                insert(&mut self.arrived_twice, Span { start: at, end });
            }
            at = known.or(self.arrived.gap(at, span.end).map(|gap| gap.end)).unwrap_or(span.end);
        }
        insert(&mut self.arrived, span);
    }

    fn is_reported(&mut self, segment: &Segment) {
        let ack = segment.flags.intersects(Flags::ACK).then_some(segment.ack);
        let ack = ack.map_or(Some(0), |ack| self.position(ack));
        let blocks = segment.options.sack.as_slice();
        let blocks: Option<Vec<Span>> = blocks.iter().map(|block| self.span(*block)).collect();
        let (Some(ack), Some(blocks)) = (ack, blocks) else {
            self.is_checked = false;
            return;
        };
        let ends = blocks.iter().map(|block| block.end);
        self.highest = ends.fold(self.highest.max(ack), u64::max);
        self.acked = self.acked.max(ack);
        self.uses_sack |= !blocks.is_empty();
        for (index, block) in blocks.iter().enumerate() {
            insert(&mut self.sacked, *block);
            // An agent may take out those before it.
            let mut others = blocks.iter().enumerate().filter(|(other, _)| *other != index);
            if block.start < ack || others.any(|(_, other)| is_within(block, other)) {
                insert(&mut self.duplicates, *block);
            }
        }
        self.sacked.remove_below(self.acked);
    }

    fn check(&self, to: Port, segment: &Segment) -> Result<(), Violation> {
        let ack = self.position(segment.ack).filter(|_| segment.flags.intersects(Flags::ACK));
        let ack = ack.unwrap_or(0);
        let blocks = segment.options.sack.as_slice();
        let second = blocks.get(1).and_then(|block| self.span(*block));
        for (index, &(left, right)) in blocks.iter().enumerate() {
            let invented = Violation::SackInvented { to, left, right };
            // A hostile host can move the positions as far away as this.
            let Some(span) = self.span((left, right)) else { continue };
            let is_within = second.is_some_and(|second| is_within(&span, &second));
            let is_duplicate = index == 0 && (span.start < ack || is_within);
            if is_duplicate && !self.is_duplicate(span, span.end <= ack || is_within) {
                return Err(Violation::DsackInvented { to, left, right });
            }
            let received = Span { start: span.start.max(self.acked), end: span.end };
            let passed = Some(&self.arrived).filter(|_| to == Port::Air);
            let is_understood = self.uses_sack || to == Port::Air;
            if !is_understood || !covers(&self.sacked, passed, received) {
                return Err(invented);
            }
        }
        Ok(())
    }

    /// Whether this was reported as a duplicate, or came in twice and may be reported in this
    /// place.
    fn is_duplicate(&self, span: Span, is_in_place: bool) -> bool {
        let own = Some(&self.arrived_twice).filter(|_| is_in_place);
        covers(&self.duplicates, own, span)
    }
}

fn is_within(inner: &Span, outer: &Span) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}

/// Whether both together have all positions of `span`.
fn covers(ranges: &Ranges, others: Option<&Ranges>, span: Span) -> bool {
    let mut start = span.start;
    while let Some(gap) = ranges.gap(start, span.end) {
        if others.is_none_or(|others| others.missing(gap.start, gap.end) > 0) {
            return false;
        }
        start = gap.end;
    }
    true
}

/// Adds `span`, within the bound.
fn insert(ranges: &mut Ranges, span: Span) {
    ranges.insert(span);
    if ranges.len() > SPANS {
        let first = ranges.iter().next();
        let second = ranges.iter().nth(1);
        if let (Some(first), Some(second)) = (first, second) {
            ranges.insert(Span { start: first.start, end: second.end });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::LinkType;
    use crate::wire::build::SegmentBuilder;
    use crate::wire::tcp::Options;

    const SENDER: ([u8; 4], u16) = ([10, 0, 0, 1], 80);
    const RECEIVER: ([u8; 4], u16) = ([10, 0, 0, 2], 5001);

    fn segment(builder: SegmentBuilder<'_>) -> Segment {
        Segment::parse(&builder.build(LinkType::Ip)).unwrap()
    }

    fn data(from: u32, to: u32) -> Segment {
        let sent = SegmentBuilder::new(SENDER, RECEIVER).seq(SeqNumber(from));
        segment(sent.payload(&[0; 4_000][..to.wrapping_sub(from) as usize]))
    }

    fn ack(number: u32, blocks: &[(u32, u32)]) -> Segment {
        let blocks = blocks.iter().map(|&(left, right)| (SeqNumber(left), SeqNumber(right)));
        let options = Options { sack: blocks.collect(), ..Options::default() };
        let ack = SegmentBuilder::new(RECEIVER, SENDER).ack(SeqNumber(number));
        segment(ack.flags(Flags::ACK).options(options))
    }

    fn entered(segments: &[Segment]) -> Sack {
        let mut sack = Sack::default();
        segments.iter().for_each(|segment| sack.enters(segment));
        sack
    }

    fn invented(to: Port, left: u32, right: u32) -> Result<(), Violation> {
        Err(Violation::SackInvented { to, left: SeqNumber(left), right: SeqNumber(right) })
    }

    fn no_duplicate(left: u32, right: u32) -> Result<(), Violation> {
        let (left, right) = (SeqNumber(left), SeqNumber(right));
        Err(Violation::DsackInvented { to: Port::Wired, left, right })
    }

    #[test]
    fn blocks_of_the_receiver_may_be_repeated_merged_and_taken_out() {
        // Across the wrap.
        let begin = u32::MAX - 99;
        let reports = [ack(begin, &[(100, 200)]), ack(begin, &[(200, 300), (100, 200)])];
        let sack = entered(&[&[data(begin, 900)], &reports[..]].concat());
        for blocks in [&[(100, 200)][..], &[(200, 300)], &[(100, 300)], &[(150, 250)]] {
            assert_eq!(sack.leaves(Port::Wired, &ack(begin, blocks)), Ok(()), "{blocks:?}");
        }
        for (left, right) in [(0, 200), (100, 301), (300, 400)] {
            let report = ack(begin, &[(left, right)]);
            assert_eq!(sack.leaves(Port::Wired, &report), invented(Port::Wired, left, right));
        }
        let report = ack(begin, &[(100, 300), (500, 600)]);
        assert_eq!(sack.leaves(Port::Wired, &report), invented(Port::Wired, 500, 600));
    }

    #[test]
    fn towards_the_mobile_what_has_passed_may_be_reported() {
        let mut sack = entered(&[data(1, 101), ack(101, &[]), data(201, 301), data(301, 401)]);
        let report = ack(101, &[(201, 401)]);
        assert_eq!(sack.leaves(Port::Air, &report), Ok(()), "the receiver has no SACK");
        sack.enters(&ack(1, &[(51, 101)]));
        assert_eq!(sack.leaves(Port::Air, &report), Ok(()));
        assert_eq!(sack.leaves(Port::Wired, &report), invented(Port::Wired, 201, 401));
        for (left, right) in [(200, 401), (201, 402), (501, 601)] {
            let report = ack(101, &[(left, right)]);
            assert_eq!(sack.leaves(Port::Air, &report), invented(Port::Air, left, right));
        }
    }

    #[test]
    fn a_duplicate_came_twice_and_stands_where_rfc_2883_puts_it() {
        let twice = [data(101, 201), data(101, 201), data(301, 401), data(301, 401)];
        let answers = [ack(101, &[]), ack(201, &[(301, 401)])];
        let sack = entered(&[&[data(1, 401)], &twice[..], &answers].concat());
        let leaves = |blocks: &[(u32, u32)]| sack.leaves(Port::Wired, &ack(201, blocks));
        assert_eq!(leaves(&[(101, 201)]), Ok(()));
        assert_eq!(leaves(&[(101, 201), (301, 401)]), Ok(()));
        assert_eq!(leaves(&[(301, 401), (301, 401)]), Ok(()));
        assert_eq!(leaves(&[(1, 101)]), no_duplicate(1, 101), "it came once");
        assert_eq!(leaves(&[(101, 202)]), no_duplicate(101, 202), "it ends above the ACK");
        let sack = entered(&[data(1, 401), ack(101, &[(301, 401)])]);
        let report = ack(101, &[(301, 401), (301, 401)]);
        assert_eq!(sack.leaves(Port::Wired, &report), no_duplicate(301, 401), "it came once");
    }

    #[test]
    fn a_duplicate_that_the_receiver_reports_may_pass() {
        let reported = [ack(201, &[(101, 151)]), ack(201, &[(321, 331), (301, 401), (501, 601)])];
        let sack = entered(&[&[data(1, 601)], &reported[..]].concat());
        for report in &reported {
            assert_eq!(sack.leaves(Port::Wired, report), Ok(()));
        }
        assert_eq!(sack.leaves(Port::Wired, &ack(201, &[(101, 152)])), no_duplicate(101, 152));
    }

    #[test]
    fn numbers_without_an_order_accuse_nobody() {
        let sack = entered(&[data(1, 101), ack(101, &[(1 << 31, (1 << 31) + 5)])]);
        assert_eq!(sack.leaves(Port::Wired, &ack(101, &[(7_000, 8_000)])), Ok(()));
        let sack = entered(&[data(0, 100), ack(1 << 30, &[(3 << 30, (3 << 30) + 5)])]);
        let report = ack(1 << 30, &[(3 << 30, (3 << 30) + 5)]);
        assert_eq!(sack.leaves(Port::Wired, &report), Ok(()));
    }

    #[test]
    fn memory_is_bounded_and_what_is_forgotten_is_not_accused() {
        let spans = SPANS as u32 + 1;
        let blocks = (1..=spans).map(|index| ack(1, &[(index * 10, index * 10 + 5)]));
        let mut sack = entered(&blocks.collect::<Vec<_>>());
        let reported = sack.flows.get(&(SENDER.into(), RECEIVER.into())).unwrap();
        assert_eq!(reported.sacked.len(), SPANS);
        assert_eq!(sack.leaves(Port::Wired, &ack(1, &[(15, 20)])), Ok(()), "the lowest became one");
        let report = ack(1, &[(25, 30)]);
        assert_eq!(sack.leaves(Port::Wired, &report), invented(Port::Wired, 25, 30));
        for port in 0..FLOWS as u16 {
            let syn = SegmentBuilder::new(([10, 0, 0, 3], port), SENDER).flags(Flags::SYN);
            sack.enters(&segment(syn));
        }
        assert_eq!(sack.flows.len(), FLOWS);
        assert_eq!(sack.leaves(Port::Wired, &report), Ok(()), "it was withheld");
        sack.enters(&ack(1, &[]));
        assert_eq!(sack.leaves(Port::Wired, &report), Ok(()));
    }
}
