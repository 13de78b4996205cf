//! Which TCP ACKs say nothing that a later one does not say.

use crate::packet::Packet;
use crate::wire::tcp::Segment;

/// Whether `later` is an ACK of the same connection that says all that `earlier` says, which says
/// nothing else: more bytes have arrived, nothing is missing, and the flags, with which ECN counts,
/// are the same (the ACK filter of CAKE, Høiland-Jørgensen et al. 2018 §IV.D).
pub(super) fn supersedes(later: &Packet, earlier: &Packet) -> bool {
    let (Ok(later), Ok(earlier)) = (Segment::parse(later), Segment::parse(earlier)) else {
        return false;
    };
    let is_plain = |ack: &Segment| ack.is_pure_ack() && ack.options.sack.is_empty();
    let connection = |ack: &Segment| (ack.source, ack.destination);
    is_plain(&later)
        && is_plain(&earlier)
        && connection(&later) == connection(&earlier)
        && later.flags == earlier.flags
        && later.ack > earlier.ack
}

#[cfg(test)]
mod tests {
    use crate::packet::LinkType;
    use crate::wire::build::SegmentBuilder;
    use crate::wire::seq::SeqNumber;
    use crate::wire::tcp::{Flags, Options, SackBlocks};

    fn ack(number: u32) -> SegmentBuilder<'static> {
        SegmentBuilder::new(([10, 0, 0, 1], 80), ([10, 0, 1, 2], 5_000)).ack(SeqNumber(number))
    }

    fn supersedes(later: SegmentBuilder<'_>, earlier: SegmentBuilder<'_>) -> bool {
        let [later, earlier] = [later, earlier].map(|segment| segment.build(LinkType::Ip));
        super::supersedes(&later, &earlier)
    }

    #[test]
    fn an_ack_of_more_stands_for_one_of_less() {
        assert!(supersedes(ack(9), ack(5)));
        assert!(supersedes(ack(3), ack(u32::MAX)), "numbers wrap");
        assert!(!supersedes(ack(5), ack(9)));
        assert!(!supersedes(ack(5), ack(5)), "a duplicate");
    }

    #[test]
    fn what_says_anything_else_stays() {
        let mut sack = SackBlocks::default();
        sack.push(SeqNumber(20), SeqNumber(30));
        let with_sack = |number| ack(number).options(Options { sack, ..Options::default() });
        let other = SegmentBuilder::new(([10, 0, 0, 1], 80), ([10, 0, 1, 2], 5_001));
        for (later, earlier) in [
            (ack(9), with_sack(5)),
            (with_sack(9), ack(5)),
            (ack(9).flags(Flags::ECE), ack(5)),
            (ack(9), ack(5).flags(Flags::FIN)),
            (ack(9).flags(Flags::RST), ack(5)),
            (ack(9), ack(5).payload(b"data")),
            (ack(9).payload(b"data"), ack(5)),
            (other.ack(SeqNumber(9)), ack(5)),
        ] {
            assert!(!supersedes(later, earlier), "{later:?} {earlier:?}");
        }
    }
}
