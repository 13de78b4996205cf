use super::*;
use proptest::prelude::*;

fn ack() -> impl Strategy<Value = Ack> {
    let vector = prop::collection::vec(any::<u8>(), 0..=MAX_VECTOR_LEN);
    let clock = prop::option::of(0u16..0x4000);
    let report = prop::option::of((0u16..0x4000, any::<Option<u16>>(), clock));
    (any::<u32>(), any::<u32>(), any::<u16>(), report, vector).prop_map(
        |(next, highest_serial, delay, report, vector)| Ack {
            next: SeqNumber(next),
            highest_serial: SeqNumber(highest_serial),
            delay: DELAY_UNIT * u32::from(delay),
            covered: report.map(|(covered, ..)| covered),
            marks: report.and_then(|(_, marks, _)| marks),
            clock: report.and_then(|(.., clock)| clock),
            vector: vector.into(),
        },
    )
}

fn frame() -> impl Strategy<Value = Frame> {
    let payload = (prop::collection::vec(any::<u8>(), 0..100), 0u32..65_000, any::<bool>());
    let numbers = any::<([u32; 4], u16, [bool; 6], u8)>();
    (0u8..5, numbers, prop::option::of(ack()), payload).prop_map(
        |(kind, ([from, to, serial, seq], after, flags, ecn), ack, payload)| {
            let [poll, more, by_serial, reads_version_2, answers_ce, reads_repairs] = flags;
            let (bytes, uncaptured, is_ethernet) = payload;
            let link_type = if is_ethernet { LinkType::Ethernet } else { LinkType::Ip };
            let wire_len = bytes.len() as u32 + uncaptured;
            let payload = Packet::truncated(link_type, bytes.into(), wire_len);
            let kind = [
                FrameKind::Control,
                FrameKind::Reliable,
                FrameKind::Unreliable,
                FrameKind::Skip,
                FrameKind::Repair,
            ][usize::from(kind)];
            let has_payload = kind.has_payload();
            Frame {
                kind,
                poll,
                more,
                by_serial,
                reads_version_2,
                reads_repairs: reads_repairs && kind == FrameKind::Control,
                answers_ce,
                outer_ecn: Ecn::of_traffic_class(ecn),
                from: from.max(1),
                to,
                serial: SeqNumber(serial),
                seq: SeqNumber(seq),
                after,
                ack,
                payload: has_payload.then_some(payload),
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
        if packet.bytes().len() == packet.wire_len() as usize {
            let mut bytes = packet.bytes().to_vec();
            bytes.resize(bytes.len() + padding, 0);
            let padded = Packet::new(LinkType::Frame, bytes.into());
            let padded = padded.with_outer_ecn(frame.outer_ecn);
            prop_assert_eq!(Frame::parse(&padded), Ok(frame));
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes: Vec<u8>, version: bool, wire_len: u32) {
        let mut bytes = bytes;
        if let (true, Some(first)) = (version, bytes.first_mut()) {
            *first = VERSION << 4 | *first & 3;
        }
        let packet = Packet::truncated(LinkType::Frame, bytes.into(), wire_len);
        let _ = Frame::parse(&packet);
    }
}

#[test]
fn bytes_lie_as_the_document_says() {
    // [S2-03] docs/wire-tulip.md has this very frame as its example.
    let frame = Frame {
        kind: FrameKind::Reliable,
        poll: true,
        more: false,
        by_serial: false,
        reads_version_2: true,
        reads_repairs: false,
        answers_ce: false,
        outer_ecn: Ecn::NotEct,
        from: 0x0a0b_0c0d,
        to: 0x0102_0304,
        serial: SeqNumber(7),
        seq: SeqNumber(5),
        after: 1,
        ack: Some(Ack {
            next: SeqNumber(16),
            highest_serial: SeqNumber(33),
            delay: Duration::from_micros(32),
            covered: None,
            marks: None,
            clock: None,
            vector: Bytes::from_static(&[0b0000_0101]),
        }),
        payload: Some(Packet::new(LinkType::Ip, Bytes::from_static(b"IP"))),
    };
    let bytes = [
        0x11, 0x43, 0, 2, 10, 11, 12, 13, 1, 2, 3, 4, 0, 0, 0, 7, 0, 0, 0, 5, 0, 1, // header
        0, 0, 0, 16, 0, 0, 0, 33, 0, 2, 0, 1, 5, // link ACK
        b'I', b'P',
    ];
    assert_eq!(frame.emit().bytes(), bytes);
    let arrived: Vec<_> = frame.ack.unwrap().arrived().collect();
    assert_eq!(arrived, [SeqNumber(17), SeqNumber(19)]);
}

#[test]
fn a_report_tells_of_transmissions() {
    let (next, highest_serial, delay) = (SeqNumber(16), SeqNumber(33), Duration::ZERO);
    let vector = Bytes::from_static(&[0b0000_0101]);
    let (marks, clock) = (Some(3), Some(0x1234));
    let ack = Ack { next, highest_serial, delay, covered: Some(12), marks, clock, vector };
    assert_eq!(ack.report_fields().collect::<Vec<_>>(), [0xc0, 12, 0, 3, 0x12, 0x34]);
    let missing: Vec<_> = ack.missing().collect();
    assert_eq!(missing, [SeqNumber(33), SeqNumber(31)]);
    assert_eq!(ack.arrived().count(), 0);
    let told = [34, 33, 32, 31, 30, 22, 21].map(|serial| ack.has_arrived(SeqNumber(serial)));
    let (yes, no) = (Some(true), Some(false));
    assert_eq!(told, [None, no, yes, no, yes, yes, None]);
}

#[test]
fn what_contradicts_itself_is_refused() {
    let refused = |at: usize, byte: u8, len: usize| {
        let mut bytes = [0u8; HEADER_LEN + ACK_LEN];
        bytes[0] = 0x10;
        bytes[1] = ACK;
        bytes[7] = 1;
        bytes[at] = byte;
        let bytes = Bytes::copy_from_slice(&bytes[..len]);
        Frame::parse(&Packet::new(LinkType::Frame, bytes)).err()
    };
    let whole = HEADER_LEN + ACK_LEN;
    assert_eq!(refused(1, ACK, whole), None);
    assert_eq!(refused(0, 0x20, whole), Some(Malformed::Version));
    assert_eq!(refused(0, 0x15, whole), Some(Malformed::Kind));
    assert_eq!(refused(7, 0, whole), Some(Malformed::Epoch));
    assert_eq!(refused(3, 1, whole), Some(Malformed::Truncated), "payload");
    assert_eq!(refused(HEADER_LEN + 11, 1, whole), Some(Malformed::Truncated), "vector");
    assert_eq!(refused(HEADER_LEN + 10, 3, whole), Some(Malformed::Vector));
    for len in 0..whole {
        assert_eq!(refused(1, ACK, len), Some(Malformed::Truncated), "{len} bytes");
    }
}
