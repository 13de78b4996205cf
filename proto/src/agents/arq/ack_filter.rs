//! Which TCP ACKs say nothing that a later one does not say.

use crate::packet::Packet;
use crate::wire::tcp::{HEADER_LEN, Segment};

/// Length of timestamps with what pads them (RFC 7323 §3.2).
const TIMESTAMPS_LEN: usize = 12;

/// Whether `later` is an ACK of the same connection that says all that `earlier` says: more bytes
/// have arrived, nothing is missing, and the flags, with which ECN counts, are the same (the ACK
/// filter of CAKE, Høiland-Jørgensen et al. 2018 §IV.D). The sequence number is the same, too: who
/// forges an ACK without knowing it drops none of the connection's own.
pub(super) fn supersedes(later: &Packet, earlier: &Packet) -> bool {
    let (Ok(later), Ok(earlier)) = (Segment::parse(later), Segment::parse(earlier)) else {
        return false;
    };
    let connection = |ack: &Segment| (ack.source, ack.destination);
    is_plain(&later)
        && is_plain(&earlier)
        && connection(&later) == connection(&earlier)
        && later.flags == earlier.flags
        && later.seq == earlier.seq
        && later.ack > earlier.ack
}

/// Whether it has no options but timestamps: SACK, Multipath TCP and others say more.
fn is_plain(ack: &Segment) -> bool {
    let options = if ack.options.timestamps.is_some() { TIMESTAMPS_LEN } else { 0 };
    let header_len = usize::from(ack.payload_offset - ack.transport_offset);
    ack.is_pure_ack() && header_len == HEADER_LEN + options
}

#[cfg(test)]
mod tests {
    use crate::packet::LinkType;
    use crate::wire::build::SegmentBuilder;
    use crate::wire::seq::SeqNumber;
    use crate::wire::tcp::{Flags, Options, SackBlocks, Timestamps};

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
        let timestamps = Some(Timestamps { value: 7, echo: 5 });
        let timed = |number| ack(number).options(Options { timestamps, ..Options::default() });
        assert!(supersedes(timed(9), timed(5)));
    }

    #[test]
    fn what_says_anything_else_stays() {
        let mut sack = SackBlocks::default();
        sack.push(SeqNumber(20), SeqNumber(30));
        let with_sack = |number| ack(number).options(Options { sack, ..Options::default() });
        let other = SegmentBuilder::new(([10, 0, 0, 1], 80), ([10, 0, 1, 2], 5_001));
        for (later, earlier) in [
            (ack(9), with_sack(5)),
            (ack(9), ack(5).raw_options(&[30, 4, 0x50, 0])),
            (with_sack(9), ack(5)),
            (ack(9).flags(Flags::ECE), ack(5)),
            (ack(9), ack(5).flags(Flags::FIN)),
            (ack(9).flags(Flags::RST), ack(5)),
            (ack(9), ack(5).payload(b"data")),
            (ack(9).payload(b"data"), ack(5)),
            (other.ack(SeqNumber(9)), ack(5)),
            (ack(9).seq(SeqNumber(1)), ack(5)),
        ] {
            assert!(!supersedes(later, earlier), "{later:?} {earlier:?}");
        }
    }
}
