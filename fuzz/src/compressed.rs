//! Two ends with header compression: packets cross unchanged, whatever else arrives.

use crate::input::Input;
use airmend_proto::agents::Compressor;
use airmend_proto::agents::tulip::frame::{Ack, Frame, FrameKind};
use airmend_proto::wire::seq::SeqNumber;
use airmend_proto::{Ecn, LinkType, Packet};
use core::time::Duration;

const EPOCHS: [u32; 2] = [7, 9];

/// A frame from one end to the other.
fn frame(from: usize, to: u32, serial: u32, payload: Option<Packet>) -> Frame {
    Frame {
        kind: if payload.is_some() { FrameKind::Unreliable } else { FrameKind::Control },
        poll: false,
        more: false,
        by_serial: true,
        reads_version_2: true,
        reads_repairs: payload.is_none(),
        answers_ce: false,
        outer_ecn: Ecn::NotEct,
        from: EPOCHS[from],
        to,
        serial: SeqNumber(serial),
        seq: SeqNumber(0),
        after: 0,
        ack: None,
        payload,
    }
}

fn cross(ends: &mut [Compressor; 2], from: usize, frame: &Frame) -> Option<Frame> {
    let (bytes, _) = ends[from].compress(frame.emit());
    let packet = Packet::new(LinkType::Frame, bytes);
    let expanded = ends[1 - from].expand(packet).ok()?;
    Frame::parse(&expanded).ok()
}

/// Packets of this input from one end, with what the input forges between them.
pub(crate) fn check(data: &[u8]) {
    let mut ends = [Compressor::new(true, 1), Compressor::new(true, 1)];
    cross(&mut ends, 0, &frame(0, 0, 0, None));
    cross(&mut ends, 1, &frame(1, EPOCHS[0], 0, None));
    let mut input = Input(data);
    for serial in 1..20 {
        let (what, len) = (input.byte(), usize::from(input.byte()));
        let len = len.min(input.0.len());
        let (bytes, rest) = input.0.split_at(len);
        input = Input(rest);
        let link_type = if what & 1 == 0 { LinkType::Ip } else { LinkType::Ethernet };
        let packet = Packet::new(link_type, bytes.to_vec().into());
        let sent = frame(0, EPOCHS[1], serial, Some(packet));
        if what & 2 == 0 {
            assert_eq!(cross(&mut ends, 0, &sent), Some(sent), "a packet crosses unchanged");
        }
        if what & 4 == 0 {
            // The peer is authentic, and may still be wrong.
            let mut forged = bytes.to_vec();
            forged.first_mut().into_iter().for_each(|first| *first = 0x20 | *first & 0x0f);
            let mut copy = ends[1].clone();
            let _ = copy.expand(Packet::new(LinkType::Frame, forged.into()));
            copy.poll_transmit();
        }
        let highest_serial = SeqNumber(serial);
        let (covered, vector) = (Some(1), vec![u8::from(what & 2 != 0)].into());
        let (next, delay) = (SeqNumber(0), Duration::ZERO);
        let clock = (what & 8 != 0).then_some(serial as u16);
        let ack = Ack { next, highest_serial, delay, covered, marks: None, clock, vector };
        cross(&mut ends, 1, &Frame { ack: Some(ack), ..frame(1, EPOCHS[0], 0, None) });
    }
}
