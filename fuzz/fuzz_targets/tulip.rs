//! Bytes as a TULIP frame, and as a sequence of times, frames and packets for one end of a link
//! with small limits: what is read is written as it was, and the end keeps its promises.
#![no_main]

#[path = "../../proto/tests/link/hostile.rs"]
mod hostile;

/// The agent under test.
mod kit {
    pub(crate) use airmend_proto::agents::tulip::frame::Frame;
    pub(crate) use airmend_proto::agents::tulip::{Settings, Tulip as Station};
}

use airmend_proto::agents::tulip::frame::{Ack, Frame, FrameKind};
use airmend_proto::agents::tulip::{Order, Settings};
use airmend_proto::wire::seq::SeqNumber;
use airmend_proto::{LinkSignal, LinkType, Packet};
use core::time::Duration;
use hostile::{Step, play};
use libfuzzer_sys::fuzz_target;

/// Steps of one run: the window is small, so that more of them show little more.
const MAX_STEPS: usize = 150;

fuzz_target!(|data: &[u8]| {
    check_frame(data);
    let mut input = Input(data);
    let switches = input.byte();
    let settings = Settings {
        half_duplex: switches & 1 != 0,
        adaptive: switches & 2 != 0,
        order: if switches & 4 != 0 { Order::Flow } else { Order::Destination },
        strobe: 1 + u32::from(switches >> 3 & 3),
        window: 1 + u32::from(switches >> 5),
        ..Settings::default()
    };
    let mut steps = Vec::new();
    while !input.0.is_empty() && steps.len() < MAX_STEPS {
        steps.push(input.step());
    }
    if let Err(error) = play(&settings, &steps) {
        panic!("{error}");
    }
});

fn check_frame(data: &[u8]) {
    let packet = Packet::new(LinkType::Frame, data.to_vec().into());
    if let Ok(frame) = Frame::parse(&packet) {
        let again = Frame::parse(&frame.emit());
        assert_eq!(again, Ok(frame), "what is read is written as it was");
    }
}

/// Bytes still to be read; zeros after the last one.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn byte(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        *first
    }

    fn word(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }

    /// Mostly small, so that numbers meet.
    fn number(&mut self) -> u32 {
        match self.byte() {
            small @ 0..240 => u32::from(small % 12),
            240..250 => 4_090 + u32::from(self.byte() % 10),
            _ => u32::from(self.word()) << 16 | u32::from(self.word()),
        }
    }

    fn step(&mut self) -> Step {
        match self.byte() & 15 {
            0..6 => Step::Frame(self.frame()),
            6..9 => Step::Packet(self.packet()),
            9..12 => Step::Take(usize::from(self.byte() & 3), usize::from(self.byte() & 3)),
            12 => match self.byte() & 3 {
                0 => Step::Damaged(self.frame(), usize::from(self.byte())),
                1 => Step::Signal(LinkSignal::Sent),
                2 => Step::Signal(LinkSignal::Leaving),
                _ => Step::Signal(LinkSignal::Idle),
            },
            13 | 14 => Step::Wait(Duration::from_micros(u64::from(self.word()) * 4)),
            _ => {
                let len = usize::from(self.byte()).min(self.0.len());
                let (bytes, rest) = self.0.split_at(len);
                self.0 = rest;
                Step::Bytes(bytes.to_vec())
            }
        }
    }

    fn frame(&mut self) -> Frame {
        let kinds =
            [FrameKind::Control, FrameKind::Reliable, FrameKind::Unreliable, FrameKind::Skip];
        let head = self.byte();
        let kind = kinds[usize::from(head & 3)];
        let epochs = self.byte();
        let epoch = |bits: u8, usual: u32| match bits {
            0..12 => usual,
            other => u32::from(other) - 11,
        };
        let ack = (head & 16 != 0).then(|| Ack {
            next: SeqNumber(self.number()),
            highest_serial: SeqNumber(self.number()),
            delay: Duration::ZERO,
            vector: vec![self.byte(); usize::from(head >> 6)].into(),
        });
        let has_payload = matches!(kind, FrameKind::Reliable | FrameKind::Unreliable);
        let payload = vec![head; usize::from(self.word() % 1_500)];
        Frame {
            kind,
            poll: head & 4 != 0,
            more: head & 8 != 0,
            from: epoch(epochs & 15, 2),
            to: epoch(epochs >> 4, 1),
            serial: SeqNumber(self.number()),
            seq: SeqNumber(self.number()),
            after: self.number() as u16,
            ack,
            payload: has_payload.then(|| Packet::new(LinkType::Ip, payload.into())),
        }
    }

    /// TCP over IPv4, or nearly.
    fn packet(&mut self) -> Packet {
        let mut bytes = vec![0; 40 + usize::from(self.byte())];
        let total_len = bytes.len() as u16;
        bytes[0] = 0x45;
        bytes[2..4].copy_from_slice(&total_len.to_be_bytes());
        bytes[9] = [6, 6, 17, self.byte()][usize::from(self.byte() & 3)];
        bytes[23] = self.byte();
        bytes[32] = 0x50;
        Packet::new(LinkType::Ip, bytes.into())
    }
}
