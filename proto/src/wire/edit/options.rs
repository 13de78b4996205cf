//! TCP options edited in place.

use super::field::{TCP_CHECKSUM, update_checksum};
use crate::packet::Packet;
use crate::wire::options::{NO_OPERATION, SACK, TIMESTAMPS, find};
use crate::wire::seq::SeqNumber;
use crate::wire::tcp::{HEADER_LEN, Segment};

/// The packet with those SACK blocks only whose left edge `keep` accepts. The others' place is
/// filled with NOPs, so that nothing else moves; a packet that loses none comes back as it is.
pub fn keep_sack_blocks(
    packet: &Packet,
    segment: &Segment,
    keep: impl Fn(SeqNumber) -> bool,
) -> Packet {
    if segment.options.sack.as_slice().iter().all(|(left, _)| keep(*left)) {
        return packet.clone();
    }
    edit(packet, segment, |options| {
        let range = find(options, SACK)?;
        let option = options.get_mut(range)?;
        let (header, body) = option.split_at_mut_checked(2)?;
        let mut kept = 0;
        for at in (0..body.len()).step_by(8) {
            let left = u32::from_be_bytes(*body.get(at..)?.first_chunk()?);
            if keep(SeqNumber(left)) {
                body.copy_within(at..at + 8, kept);
                kept += 8;
            }
        }
        body.get_mut(kept..)?.fill(NO_OPERATION);
        if kept == 0 {
            header.fill(NO_OPERATION);
        } else {
            *header.get_mut(1)? = kept as u8 + 2;
        }
        Some(())
    })
    .unwrap_or_else(|| packet.clone())
}

/// The packet with this TSval (RFC 7323 §3.2). `None` if it has no timestamps.
pub fn with_timestamp(packet: &Packet, segment: &Segment, value: u32) -> Option<Packet> {
    edit(packet, segment, |options| {
        let range = find(options, TIMESTAMPS)?;
        let option = options.get_mut(range)?;
        option.get_mut(2..6)?.copy_from_slice(&value.to_be_bytes());
        Some(())
    })
}

/// A copy whose options `change` has edited, with the TCP checksum updated for it.
fn edit(
    packet: &Packet,
    segment: &Segment,
    change: impl FnOnce(&mut [u8]) -> Option<()>,
) -> Option<Packet> {
    let header = usize::from(segment.transport_offset)..usize::from(segment.payload_offset);
    let mut bytes = packet.bytes().to_vec();
    let old = packet.bytes().get(header.clone())?;
    let new = bytes.get_mut(header)?;
    change(new.get_mut(HEADER_LEN..)?)?;
    update_checksum(new, old, TCP_CHECKSUM)?;
    let edited = Packet::truncated(packet.link_type(), bytes.into(), packet.wire_len());
    Some(edited.with_segment_size(packet.segment_size()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::LinkType;
    use crate::wire::build::SegmentBuilder;
    use crate::wire::tcp::{Options, SackBlocks, Timestamps};
    use alloc::vec::Vec;

    fn ack<'a>(blocks: &[(u32, u32)]) -> SegmentBuilder<'a> {
        let blocks = blocks.iter().map(|&(left, right)| (SeqNumber(left), SeqNumber(right)));
        let timestamps = Some(Timestamps { value: 7, echo: 8 });
        let options = Options { timestamps, sack: blocks.collect(), ..Options::default() };
        SegmentBuilder::new(([10, 0, 0, 2], 5000), ([10, 0, 0, 1], 80))
            .ack(SeqNumber(100))
            .options(options)
    }

    fn assert_right(packet: &Packet) -> Segment {
        let segment = Segment::parse(packet).unwrap();
        let tcp = &packet.bytes()[usize::from(segment.transport_offset)..];
        let (source, destination) = (&segment.source.address, &segment.destination.address);
        assert!(crate::wire::checksum::tcp_is_right(source, destination, tcp));
        segment
    }

    #[test]
    fn blocks_are_taken_out_and_the_rest_stays() {
        let blocks = [(500, 600), (300, 400), (50, 60)];
        for (limit, left) in [(1000, 3), (500, 2), (300, 1), (10, 0)] {
            for link_type in [LinkType::Ip, LinkType::Ethernet] {
                let packet = ack(&blocks).payload(b"abc").build(link_type);
                let segment = Segment::parse(&packet).unwrap();
                let kept = keep_sack_blocks(&packet, &segment, |left| left.0 < limit);
                let read = assert_right(&kept);
                let expected: Vec<_> = blocks
                    .iter()
                    .filter(|(left, _)| *left < limit)
                    .map(|&(left, right)| (SeqNumber(left), SeqNumber(right)))
                    .collect();
                assert_eq!(read.options.sack.as_slice(), expected);
                assert_eq!((left, kept.bytes().len()), (expected.len(), packet.bytes().len()));
                let sack: SackBlocks = expected.into_iter().collect();
                assert_eq!(
                    read,
                    Segment { options: Options { sack, ..segment.options }, ..segment }
                );
            }
        }
    }

    #[test]
    fn an_option_at_an_odd_place_is_edited_too() {
        // One NOP, then SACK with one block.
        let raw = [1, 5, 10, 0, 0, 1, 0xff, 0, 0, 2, 0xff, 1];
        let packet = SegmentBuilder::new(([10, 0, 0, 2], 5000), ([10, 0, 0, 1], 80))
            .ack(SeqNumber(100))
            .raw_options(&raw)
            .build(LinkType::Ip);
        let segment = Segment::parse(&packet).unwrap();
        assert_eq!(segment.options.sack.as_slice().len(), 1);
        let stripped = keep_sack_blocks(&packet, &segment, |_| false);
        assert!(assert_right(&stripped).options.sack.is_empty());
    }

    #[test]
    fn the_timestamp_is_replaced_and_the_echo_stays() {
        let packet = ack(&[]).payload(b"payload").build(LinkType::Ip);
        let segment = Segment::parse(&packet).unwrap();
        let renewed = with_timestamp(&packet, &segment, 0xdead_beef).unwrap();
        let read = assert_right(&renewed);
        assert_eq!(read.options.timestamps, Some(Timestamps { value: 0xdead_beef, echo: 8 }));
        let bare = SegmentBuilder::new(([10, 0, 0, 2], 1), ([10, 0, 0, 1], 2)).build(LinkType::Ip);
        assert_eq!(with_timestamp(&bare, &Segment::parse(&bare).unwrap(), 1), None);
    }
}
