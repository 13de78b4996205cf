//! Both ends of a session over a path that loses and reorders: what is read is what was written.

use super::*;
use crate::agents::tulip::frame::Ack;
use crate::wire::checksum;
use alloc::vec;
use bytes::Bytes;
use core::time::Duration;
use proptest::prelude::*;

/// What of an agent matters here.
struct End {
    compressor: Compressor,
    epochs: (u32, u32),
    serial: u32,
    seq: u32,
    reads_version_2: bool,
    /// The serial numbers that have arrived.
    arrived: Vec<u32>,
}

impl End {
    fn new(own: u32) -> Self {
        let compressor = Compressor::new(true, 1);
        let (serial, seq, arrived) = (0, 0, Vec::new());
        Self { compressor, epochs: (own, 0), serial, seq, reads_version_2: true, arrived }
    }

    fn frame(&self, kind: FrameKind, payload: Option<Packet>) -> Frame {
        Frame {
            kind,
            poll: false,
            more: false,
            by_serial: true,
            reads_version_2: self.reads_version_2,
            reads_repairs: kind == FrameKind::Control,
            answers_ce: self.serial.is_multiple_of(3),
            outer_ecn: Ecn::Ect0,
            from: self.epochs.0,
            to: self.epochs.1,
            serial: SeqNumber(self.serial),
            seq: SeqNumber(0),
            after: 0,
            ack: None,
            payload,
        }
    }

    fn control(&self) -> Frame {
        Frame { ack: self.report(), ..self.frame(FrameKind::Control, None) }
    }

    /// A reliable packet, with the number of its transmission.
    fn packet(&mut self, packet: Packet) -> Frame {
        self.serial += 1;
        self.seq += 1;
        let frame = self.frame(FrameKind::Reliable, Some(packet));
        Frame { seq: SeqNumber(self.seq - 1), after: u16::from(self.seq > 1), ..frame }
    }

    /// What has arrived.
    fn report(&self) -> Option<Ack> {
        let highest = *self.arrived.iter().max()?;
        let mut vector = vec![0; highest as usize / 8 + 1];
        for serial in (1..=highest).filter(|serial| !self.arrived.contains(serial)) {
            vector[(highest - serial) as usize / 8] |= 1 << ((highest - serial) % 8);
        }
        Some(Ack {
            next: SeqNumber(0),
            highest_serial: SeqNumber(highest),
            delay: Duration::from_micros(160),
            covered: Some(highest as u16),
            marks: (highest > 2).then_some(highest as u16),
            clock: (highest > 4).then_some(0x3000 + highest as u16),
            vector: vector.into(),
        })
    }

    fn send(&mut self, frame: &Frame) -> Vec<u8> {
        self.compressor.compress(frame.emit()).0.to_vec()
    }

    fn receive(&mut self, bytes: &[u8]) -> Result<Frame, Malformed> {
        let packet = Packet::new(LinkType::Frame, Bytes::copy_from_slice(bytes));
        let packet = packet.with_outer_ecn(Ecn::Ect0);
        let frame = Frame::parse(&self.compressor.expand(packet)?)?;
        if frame.payload.is_some() {
            self.arrived.push(frame.serial.0);
        }
        Ok(frame)
    }
}

/// Two ends that have agreed on the short form.
fn agreed() -> [End; 2] {
    let (mut a, mut b) = (End::new(0x0a0b_0c0d), End::new(0x0102_0304));
    let hello = a.send(&a.control());
    assert_eq!(hello[0], 0x10, "whole");
    b.receive(&hello).unwrap();
    b.epochs.1 = a.epochs.0;
    let answer = b.send(&b.control());
    assert_eq!(answer[0], 0x10, "the other end does not know this one yet");
    a.receive(&answer).unwrap();
    a.epochs.1 = b.epochs.0;
    [a, b]
}

/// Segment number `n` of a transfer.
fn segment(n: u32, is_ipv6: bool, payload: usize) -> Packet {
    let mut tcp = vec![0x13, 0x89, 0x9c, 0x40];
    tcp.extend((1_000 + n * payload as u32).to_be_bytes());
    tcp.extend(77u32.to_be_bytes());
    tcp.extend([0x80, 0x10, 1, 0xf5, (n * 31) as u8, 3, 0, 0]);
    tcp.extend([1, 1, 8, 10]);
    tcp.extend((7_000 + n).to_be_bytes());
    tcp.extend(9_000u32.to_be_bytes());
    tcp.extend((0..payload).map(|at| (at as u32 * n) as u8));
    packet_of(6, n, is_ipv6, &tcp)
}

/// Datagram number `n` of a flow.
fn datagram(n: u32, is_ipv6: bool, payload: usize) -> Packet {
    let mut udp = vec![0x13, 0x89, 0x9c, 0x40];
    udp.extend((8 + payload as u16).to_be_bytes());
    udp.extend([n as u8, 7]);
    udp.extend(vec![n as u8; payload]);
    packet_of(17, n, is_ipv6, &udp)
}

fn packet_of(protocol: u8, n: u32, is_ipv6: bool, transport: &[u8]) -> Packet {
    let mut ip = vec![];
    if is_ipv6 {
        ip.extend([0x60, 1, 2, 3]);
        ip.extend((transport.len() as u16).to_be_bytes());
        ip.extend([protocol, 64]);
        ip.extend([[0x20; 16], [0x21; 16]].concat());
    } else {
        ip.extend([0x45, 0]);
        ip.extend((20 + transport.len() as u16).to_be_bytes());
        ip.extend((400 + n as u16).to_be_bytes());
        ip.extend([0x40, 0, 64, protocol, 0, 0, 10, 9, 0, 1, 10, 9, 0, 2]);
        let sum = checksum::internet(&ip).to_be_bytes();
        ip[10..12].copy_from_slice(&sum);
    }
    ip.extend(transport);
    Packet::new(LinkType::Ip, ip.into())
}

/// The first packet of a flow crosses whole, and once the other end has it the others without what
/// both ends know.
#[test]
fn headers_cross_once() {
    for (is_ipv6, headers) in [(false, 52), (true, 72)] {
        let [mut a, mut b] = agreed();
        let first = a.packet(segment(0, is_ipv6, 1_000));
        let bytes = a.send(&first);
        assert_eq!(bytes.len(), 8 + 1 + headers + 1_000);
        assert_eq!(b.receive(&bytes), Ok(first));
        // Not yet acknowledged.
        let second = a.packet(segment(1, is_ipv6, 1_000));
        let bytes = a.send(&second);
        assert_eq!(bytes.len(), 8 + headers + 1_000);
        assert_eq!(b.receive(&bytes), Ok(second));
        let ack = b.send(&b.control());
        assert_eq!(ack.len(), 6 + 10);
        a.receive(&ack).unwrap();
        let third = a.packet(segment(2, is_ipv6, 1_000));
        let bytes = a.send(&third);
        let id = if is_ipv6 { 0 } else { 2 };
        // The context and its mask, sequence number, timestamps, flags, checksum.
        assert_eq!(bytes.len(), 8 + 1 + 2 + 3 + 2 + 2 + id + 1 + 2 + 1_000);
        assert_eq!(b.receive(&bytes), Ok(third));
    }
}

/// Every pattern of losses of ten packets, each answered by a report that may be lost too, with the
/// frames in their order and in the opposite one.
#[test]
fn whatever_is_lost_or_reordered_the_rest_is_read() {
    for pattern in 0u32..1 << 10 {
        let [mut a, mut b] = agreed();
        let mut late = Vec::new();
        for n in 0..10 {
            let frame = a.packet(segment(n, n % 2 == 1, 20));
            let bytes = a.send(&frame);
            match pattern >> n & 3 {
                0 | 1 => assert_eq!(b.receive(&bytes), Ok(frame), "{pattern:b}"),
                2 => late.push((bytes, frame)),
                _ => {}
            }
            let report = b.send(&b.control());
            if pattern >> (9 - n) & 1 == 0 {
                a.receive(&report).unwrap();
            }
        }
        for (bytes, frame) in late.into_iter().rev() {
            assert_eq!(b.receive(&bytes), Ok(frame), "{pattern:b}");
        }
    }
}

/// An end that has restarted cannot read what was meant for its former run; it tells its epoch.
#[test]
fn a_repair_frame_has_the_short_form_and_its_bytes_are_no_packet() {
    let [mut a, mut b] = agreed();
    let first = a.packet(segment(1, false, 100));
    let bytes = a.send(&first);
    b.receive(&bytes).unwrap();
    a.serial += 1;
    let combination = Packet::new(LinkType::Ip, segment(2, false, 100).shared_bytes());
    let repair = Frame {
        seq: SeqNumber(0),
        after: 0xf001,
        ..a.frame(FrameKind::Repair, Some(combination.clone()))
    };
    let bytes = a.send(&repair);
    assert_eq!((bytes[0] >> 4, bytes.len()), (2, 10 + combination.bytes().len()));
    assert_eq!(b.receive(&bytes).unwrap(), repair);
}

#[test]
fn a_restart_is_told_and_the_former_contexts_are_void() {
    let [mut a, mut b] = agreed();
    for n in 0..3 {
        let frame = a.packet(segment(n, false, 100));
        let bytes = a.send(&frame);
        b.receive(&bytes).unwrap();
        let report = b.send(&b.control());
        a.receive(&report).unwrap();
    }
    let mut b = End::new(0x0102_0305);
    // Its hello frame is lost.
    b.send(&b.control());
    let frame = a.packet(segment(3, false, 100));
    let short = a.send(&frame);
    assert_eq!(b.receive(&short), Err(Malformed::Unknown));
    let told = b.compressor.poll_transmit().expect("it tells its epoch");
    let told = a.receive(told.bytes()).unwrap();
    assert_eq!((told.from, told.to, told.poll), (0x0102_0305, 0, true));
    assert_eq!(b.compressor.poll_transmit(), None);
    // Before the agent knows that: a frame for the former run crosses whole.
    let frame = a.packet(segment(4, false, 100));
    assert_eq!(a.send(&frame)[0] >> 4, 1);
    (a.epochs.1, a.serial, a.seq) = (b.epochs.0, 0, 0);
    for n in 0..4 {
        let frame = a.packet(segment(n, false, 100));
        let bytes = a.send(&frame);
        b.epochs.1 = a.epochs.0;
        assert_eq!(b.receive(&bytes), Ok(frame));
        let report = b.send(&b.control());
        a.receive(&report).unwrap();
    }
    // The frame of the former session comes again.
    assert_eq!(b.receive(&short), Err(Malformed::Unknown));
}

/// A run with too low an epoch must learn that: it is answered in a whole frame.
#[test]
fn an_earlier_run_is_answered_in_whole_frames() {
    let [mut a, mut b] = agreed();
    let frame = a.packet(segment(0, false, 100));
    let short = a.send(&frame);
    assert_eq!(short[0] >> 4, 2);
    let mut early = End::new(b.epochs.0 - 1);
    let hello = early.send(&early.control());
    a.receive(&hello).unwrap();
    let answer = a.send(&a.control());
    assert_eq!(answer[0] >> 4, 1);
    // The other end is there still.
    b.receive(&short).unwrap();
    let report = b.send(&b.control());
    a.receive(&report).unwrap();
    assert_eq!(a.send(&a.control())[0] >> 4, 2);
}

/// An end of a version before the short form ignores the flag, and is never sent any.
#[test]
fn an_older_end_is_spoken_to_in_whole_frames() {
    let [mut a, b] = agreed();
    // What the older end sends is what its agent writes.
    let mut older = End::new(0x0102_0304);
    a.compressor = Compressor::new(true, 1);
    (older.epochs.1, older.reads_version_2) = (a.epochs.0, false);
    let hello = a.send(&a.control());
    assert_eq!(hello[1] & 0x40, 0x40);
    let packet = Packet::new(LinkType::Frame, hello.into()).with_outer_ecn(Ecn::Ect0);
    assert_eq!(Frame::parse(&packet), Ok(a.control()), "the flag changes nothing for an older end");
    for n in 0..5 {
        a.receive(older.control().emit().bytes()).unwrap();
        let frame = a.packet(segment(n, false, 100));
        let bytes = a.send(&frame);
        assert_eq!(bytes[0] >> 4, 1);
        let packet = Packet::new(LinkType::Frame, bytes.into()).with_outer_ecn(Ecn::Ect0);
        let read = Frame::parse(&packet);
        assert_eq!(read, Ok(frame));
        older.arrived.push(n + 1);
    }
    // In the other direction nothing is done to what an older end sends.
    let mut newer = b;
    let frame = older.packet(segment(0, false, 100));
    assert_eq!(newer.receive(frame.emit().bytes()), Ok(frame));
}

/// A packet in a shape whose headers are not compressed, or otherwise: with options of IPv4 or an
/// extension header of IPv6, as a fragment, with SACK blocks.
fn shaped(mut bytes: Vec<u8>, is_ipv6: bool, shape: u8) -> Vec<u8> {
    match (shape, is_ipv6) {
        (1, false) => {
            bytes.splice(20..20, [1, 1, 1, 0]);
            bytes[0] = 0x46;
        }
        (1, true) => {
            bytes.splice(40..40, [bytes[6], 0, 1, 4, 0, 0, 0, 0]);
            bytes[6] = 0;
        }
        (2, false) => bytes[6..8].copy_from_slice(&[0x20, 185]),
        (3, _) if bytes[if is_ipv6 { 6 } else { 9 }] == 6 => {
            let tcp = if is_ipv6 { 40 } else { 20 };
            bytes.splice(tcp + 32..tcp + 32, [1, 1, 5, 10, 0, 0, 0, 1, 0, 0, 0, 9]);
            bytes[tcp + 12] = 0xb0;
        }
        _ => {}
    }
    if is_ipv6 {
        let len = (bytes.len() as u16 - 40).to_be_bytes();
        bytes[4..6].copy_from_slice(&len);
    } else {
        let len = (bytes.len() as u16).to_be_bytes();
        bytes[2..4].copy_from_slice(&len);
        bytes[10..12].fill(0);
        let header = usize::from(bytes[0] & 15) * 4;
        let sum = checksum::internet(&bytes[..header]).to_be_bytes();
        bytes[10..12].copy_from_slice(&sum);
    }
    bytes
}

/// Packets of a few flows, some with a byte that was changed, and others.
fn packet() -> impl Strategy<Value = Packet> {
    let other = prop::collection::vec(any::<u8>(), 0..90);
    let edit = prop::option::of((0usize..72, any::<u8>()));
    let kind = (0u32..400, any::<[bool; 4]>(), 0usize..60, 0u8..8, 0u8..6);
    (kind, edit, other).prop_map(|((n, kind, payload, which, shape), edit, other)| {
        let [is_ipv6, is_udp, is_ethernet, is_right] = kind;
        if which == 0 {
            return Packet::new(LinkType::Ip, other.into());
        }
        let packet = if is_udp { datagram } else { segment }(n, is_ipv6, payload);
        let mut bytes = shaped(packet.bytes().to_vec(), is_ipv6, shape);
        if let Some((at, value)) = edit.filter(|(at, _)| *at < bytes.len()) {
            bytes[at] = value;
            if !is_ipv6 && at < 20 && is_right && bytes[0] == 0x45 {
                bytes[10..12].fill(0);
                let sum = checksum::internet(&bytes[..20]).to_be_bytes();
                bytes[10..12].copy_from_slice(&sum);
            }
        }
        if is_ethernet {
            let kind: &[u8] = if is_ipv6 { &[0x86, 0xdd] } else { &[8, 0] };
            let tag: &[u8] = if which == 1 { &[0x81, 0, 0, 9] } else { &[] };
            bytes = [&[2; 12], tag, kind, &bytes].concat();
            return Packet::new(LinkType::Ethernet, bytes.into());
        }
        Packet::new(LinkType::Ip, bytes.into())
    })
}

proptest! {
    /// Any packet that goes in comes out, over a path that loses, and delays reports.
    #[test]
    fn any_packet_comes_out_as_it_went_in(
        packets in prop::collection::vec((packet(), 0u8..8), 1..80),
    ) {
        let [mut a, mut b] = agreed();
        for (packet, fate) in packets {
            let frame = a.packet(packet);
            let bytes = a.send(&frame);
            prop_assert!(bytes.len() <= frame.wire_len() as usize);
            if fate > 0 {
                prop_assert_eq!(b.receive(&bytes), Ok(frame));
            }
            let report = b.send(&b.control());
            if fate > 2 {
                a.receive(&report).unwrap();
            }
        }
    }

    /// The same over a path that reorders, and duplicates what it does not lose.
    #[test]
    fn in_any_order_and_number_packets_come_out_as_they_went_in(
        packets in prop::collection::vec((packet(), 0usize..12, 0usize..3, any::<bool>()), 1..120),
    ) {
        let [mut a, mut b] = agreed();
        let mut under_way: Vec<(usize, Vec<u8>, Frame)> = Vec::new();
        for (n, (packet, delay, copies, is_report_lost)) in packets.into_iter().enumerate() {
            let frame = a.packet(packet);
            let bytes = a.send(&frame);
            let copy = |copy| (n + copy * delay, bytes.clone(), frame.clone());
            under_way.extend((1..=copies).map(copy));
            let is_here = |(due, ..): &(usize, Vec<u8>, Frame)| *due <= n;
            let (here, rest): (Vec<_>, Vec<_>) = under_way.into_iter().partition(is_here);
            under_way = rest;
            for (_, bytes, frame) in here {
                prop_assert_eq!(b.receive(&bytes), Ok(frame));
            }
            let report = b.send(&b.control());
            if !is_report_lost {
                a.receive(&report).unwrap();
            }
        }
    }

    /// Whatever the other end sends is read or refused.
    #[test]
    fn nothing_from_outside_causes_a_panic(
        frames in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 1..40),
        cuts in prop::collection::vec((0usize..70, any::<u8>()), 40),
    ) {
        let [mut a, mut b] = agreed();
        let first = a.packet(segment(0, false, 10));
        let bytes = a.send(&first);
        b.receive(&bytes).unwrap();
        let report = b.send(&b.control());
        a.receive(&report).unwrap();
        let next = a.packet(segment(1, false, 10));
        let good = a.send(&next);
        for (mut frame, (cut, value)) in frames.into_iter().zip(cuts) {
            if let Some(first) = frame.first_mut() {
                *first = 0x20 | *first & 0x0f;
            }
            let _ = b.receive(&frame);
            let mut damaged = good.clone();
            let _ = b.receive(&damaged[..cut.min(damaged.len())]);
            if let Some(byte) = damaged.get_mut(cut) {
                *byte ^= value;
            }
            let _ = b.receive(&damaged);
        }
        prop_assert_eq!(b.receive(&good), Ok(next));
    }
}
