use super::*;
use bytes::Bytes;
use proptest::prelude::*;

const KINDS: [FrameKind; 5] =
    [FrameKind::Ack, FrameKind::Packet, FrameKind::Once, FrameKind::Skip, FrameKind::Hello];

fn ack() -> impl Strategy<Value = Ack> {
    let bits = (any::<u32>(), prop_oneof![Just(0), any::<u32>()]);
    (any::<u32>(), any::<u32>(), any::<u16>(), bits).prop_map(
        |(next, serial, delay, (correct, erroneous))| Ack {
            next: SeqNumber(next),
            serial: SeqNumber(serial),
            delay: DELAY_UNIT * u32::from(delay),
            correct,
            erroneous,
        },
    )
}

fn frame() -> impl Strategy<Value = Frame> {
    let payload = (prop::collection::vec(any::<u8>(), 0..100), 0u32..65_000, any::<bool>());
    let numbers = (any::<[u32; 3]>(), prop::option::of(any::<u16>()));
    (prop::sample::select(&KINDS), numbers, prop::option::of(ack()), payload).prop_map(
        |(kind, ([run, serial, seq], after), ack, (bytes, uncaptured, is_ethernet))| {
            let link_type = if is_ethernet { LinkType::Ethernet } else { LinkType::Ip };
            let wire_len = bytes.len() as u32 + uncaptured;
            let payload = Some(Packet::truncated(link_type, bytes.into(), wire_len));
            let (serial, seq) = (SeqNumber(serial), SeqNumber(seq));
            let frame = Frame::bare(kind, run);
            match kind {
                FrameKind::Ack => Frame { ack, ..frame },
                FrameKind::Hello => Frame::hello(run.max(1), serial.0),
                FrameKind::Skip => Frame { serial, seq, after, ack, ..frame },
                _ => Frame { serial, seq, after, ack, payload, ..frame },
            }
        },
    )
}

proptest! {
    #[test]
    fn a_frame_is_read_as_it_was_written(frame in frame(), padding in 0usize..50) {
        let packet = frame.emit();
        prop_assert_eq!(packet.wire_len(), frame.wire_len());
        prop_assert_eq!(Frame::parse(&packet), Ok(frame.clone()));
        let without = Frame { payload: None, ..frame.clone() };
        prop_assert_eq!(Frame::parse_damaged(packet.bytes()), Ok(without));
        if packet.bytes().len() == packet.wire_len() as usize {
            let mut bytes = packet.bytes().to_vec();
            bytes.resize(bytes.len() + padding, 0);
            let padded = Packet::new(LinkType::Frame, bytes.into());
            prop_assert_eq!(Frame::parse(&padded), Ok(frame));
        }
    }

    /// A bit error in the header is found; one behind it leaves the header right.
    #[test]
    fn the_checksum_finds_any_wrong_bit_of_the_header(frame in frame(), place: usize) {
        let mut bytes = frame.emit().bytes().to_vec();
        let bit = place % (8 * bytes.len());
        bytes[bit / 8] ^= 1 << (bit % 8);
        let read = Frame::parse_damaged(&bytes);
        if bit / 8 < frame.header_len() {
            prop_assert!(read.is_err(), "{read:?}");
        } else {
            prop_assert_eq!(read, Ok(Frame { payload: None, ..frame }));
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes: Vec<u8>, version: bool, wire_len: u32) {
        let mut bytes = bytes;
        if let (true, Some(first)) = (version, bytes.first_mut()) {
            *first = VERSION << 4 | *first & 7;
        }
        let _ = Frame::parse_damaged(&bytes);
        let packet = Packet::truncated(LinkType::Frame, bytes.into(), wire_len);
        let _ = Frame::parse(&packet);
    }
}

/// The frame that docs/wire-lack.md has as its example.
fn example() -> Frame {
    Frame {
        serial: SeqNumber(7),
        seq: SeqNumber(5),
        after: Some(1),
        ack: Some(Ack {
            next: SeqNumber(16),
            serial: SeqNumber(33),
            delay: Duration::from_micros(32),
            correct: 0x0000_0005,
            erroneous: 0x0000_0002,
        }),
        payload: Some(Packet::new(LinkType::Ip, Bytes::from_static(b"IP"))),
        ..Frame::bare(FrameKind::Packet, run(0x0a0b_0c0d, 0x0102_0304))
    }
}

#[test]
fn bytes_lie_as_the_document_says() {
    // [lack §3.1 S1-03 S1-04]
    let bytes = [
        &[0x11, 0x07, 0xad, 0x93, 0xc6, 0x22, 0x7a, 0xf9][..], // run
        &[0, 2, 0, 0, 0, 7, 0, 0, 0, 5, 0, 1],                 // numbers
        &[0, 0, 0, 16, 0, 0, 0, 33, 0, 2, 0, 0, 0, 5, 0, 0, 0, 2], // local ACK
        b"IP",
    ];
    assert_eq!(example().emit().bytes(), bytes.concat());
}

#[test]
fn lengths_are_those_of_the_document() {
    let short = Frame { after: None, ack: None, ..example() };
    assert_eq!(short.wire_len(), 18 + 2);
    assert_eq!(example().wire_len(), 18 + 2 + 18 + 2);
    let ack = Frame { ack: example().ack, ..Frame::bare(FrameKind::Ack, 1) };
    assert_eq!(ack.wire_len(), 26);
    assert_eq!(Frame::hello(1, 2).wire_len(), 12);
}

#[test]
fn what_contradicts_itself_is_refused() {
    let refused = |frame: &Frame, at: usize, byte: u8, len: usize| {
        let mut bytes = frame.emit().bytes().to_vec();
        bytes[at] = byte;
        bytes.truncate(len);
        Frame::parse(&Packet::new(LinkType::Frame, bytes.into())).err()
    };
    let (frame, whole) = (example(), example().wire_len() as usize);
    assert_eq!(refused(&frame, 0, 0x11, whole), None);
    assert_eq!(refused(&frame, 0, 0x21, whole), Some(Malformed::Version));
    assert_eq!(refused(&frame, 0, 0x15, whole), Some(Malformed::LackKind));
    assert_eq!(refused(&frame, 9, 3, whole), Some(Malformed::Checksum));
    for len in 0..whole {
        assert_eq!(refused(&frame, 0, 0x11, len), Some(Malformed::Truncated), "{len} bytes");
    }
    let hello = Frame::hello(0, 1);
    assert_eq!(refused(&hello, 0, 0x14, 12), Some(Malformed::Epoch));
    assert_eq!(Frame::parse_damaged(&[]), Err(Malformed::Truncated));
}
