//! A selective acknowledgment made from an acknowledgment.

use super::bare_ack::{bare_ack, set_lengths};
use crate::packet::Packet;
use crate::wire::options::{MAX_OPTIONS_LEN, NO_OPERATION, SACK, TIMESTAMPS};
use crate::wire::seq::SeqNumber;
use crate::wire::tcp::{Flags, HEADER_LEN, Segment};
use alloc::vec::Vec;

/// The acknowledgment of `packet` alone, with these SACK blocks in place of its own (RFC 2018 §3),
/// and with its timestamps. `None` if none can be made of the packet, as in [`bare_ack`], or if no
/// block fits.
pub fn selective_ack(
    packet: &Packet,
    segment: &Segment,
    blocks: &[(SeqNumber, SeqNumber)],
) -> Option<Packet> {
    let bare = bare_ack(packet, segment);
    let segment = Segment::parse(&bare).ok()?;
    let is_plain = segment.flags.intersects(Flags::ACK) && !segment.options.signed;
    if !is_plain || !segment.is_pure_ack() {
        return None;
    }
    let mut options = Vec::with_capacity(MAX_OPTIONS_LEN);
    if let Some(timestamps) = segment.options.timestamps {
        options.extend([NO_OPERATION, NO_OPERATION, TIMESTAMPS, 10]);
        options.extend(timestamps.value.to_be_bytes());
        options.extend(timestamps.echo.to_be_bytes());
    }
    let fit = blocks.len().min((MAX_OPTIONS_LEN - options.len() - 4) / 8);
    let blocks = blocks.get(..fit).filter(|blocks| !blocks.is_empty())?;
    options.extend([NO_OPERATION, NO_OPERATION, SACK, 2 + 8 * fit as u8]);
    for (left, right) in blocks {
        options.extend(left.0.to_be_bytes());
        options.extend(right.0.to_be_bytes());
    }
    let transport = usize::from(segment.transport_offset);
    let mut bytes = bare.bytes().get(..transport + HEADER_LEN)?.to_vec();
    bytes.extend(&options);
    let offset = bytes.get_mut(transport + 12)?;
    *offset = (((HEADER_LEN + options.len()) / 4) << 4) as u8 | (*offset & 0x0f);
    set_lengths(&mut bytes, &segment)?;
    Some(Packet::new(bare.link_type(), bytes.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::LinkType;
    use crate::wire::build::SegmentBuilder;
    use crate::wire::tcp::{Options, Timestamps};

    fn ack(options: Options) -> SegmentBuilder<'static> {
        SegmentBuilder::new(([10, 0, 0, 1], 80), ([10, 0, 0, 2], 5000))
            .ack(SeqNumber(100))
            .window(77)
            .options(options)
    }

    #[test]
    fn blocks_replace_those_of_the_ack_and_the_rest_stays() {
        let blocks: Vec<_> =
            (0..5).map(|n| (SeqNumber(200 * n + 300), SeqNumber(200 * n + 400))).collect();
        let old = [(SeqNumber(1), SeqNumber(2))].into_iter().collect();
        for (timestamps, fit) in [(None, 4), (Some(Timestamps { value: 7, echo: 8 }), 3)] {
            let options = Options { timestamps, sack: old, ..Options::default() };
            let wanted = Options {
                timestamps,
                sack: blocks[..fit].iter().copied().collect(),
                ..Options::default()
            };
            for link_type in [LinkType::Ip, LinkType::Ethernet] {
                let packet = ack(options).payload(b"data").build(link_type);
                let segment = Segment::parse(&packet).unwrap();
                let made = selective_ack(&packet, &segment, &blocks).unwrap();
                let read = Segment::parse(&made).unwrap();
                let tcp = &made.bytes()[usize::from(read.transport_offset)..];
                let (source, destination) = (&read.source.address, &read.destination.address);
                assert!(crate::wire::checksum::tcp_is_right(source, destination, tcp));
                assert!(read.is_pure_ack() && read.options == wanted);
                assert_eq!((read.ack, read.window, read.seq), (segment.ack, 77, segment.end()));
            }
        }
    }

    #[test]
    fn a_signed_ack_and_no_blocks_give_nothing() {
        let signed = ack(Options { signed: true, ..Options::default() }).build(LinkType::Ip);
        let segment = Segment::parse(&signed).unwrap();
        let block = (SeqNumber(300), SeqNumber(400));
        assert_eq!(selective_ack(&signed, &segment, &[block]), None);
        let plain = ack(Options::default()).build(LinkType::Ip);
        let segment = Segment::parse(&plain).unwrap();
        assert_eq!(selective_ack(&plain, &segment, &[]), None);
    }
}
