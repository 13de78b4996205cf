//! What happens to one end of a link protocol, by the choices of a fuzz target.

use crate::hostile::Step;
use crate::input::Input;
use crate::kit::Frame;
use airmend_proto::{LinkSignal, LinkType, Packet};
use core::time::Duration;

/// Steps of one run: the window is small, so that more of them show little more.
const MAX_STEPS: usize = 150;

impl Input<'_> {
    /// All that is left, as steps.
    pub(crate) fn steps(&mut self, frame: impl Fn(&mut Self) -> Frame) -> Vec<Step> {
        let mut steps = Vec::new();
        while !self.0.is_empty() && steps.len() < MAX_STEPS {
            steps.push(self.step(&frame));
        }
        steps
    }

    /// Mostly small, so that numbers meet.
    pub(crate) fn number(&mut self) -> u32 {
        match self.byte() {
            small @ 0..240 => u32::from(small % 12),
            240..250 => 4_090 + u32::from(self.byte() % 10),
            _ => u32::from(self.word()) << 16 | u32::from(self.word()),
        }
    }

    fn step(&mut self, frame: impl Fn(&mut Self) -> Frame) -> Step {
        match self.byte() & 15 {
            0..6 => Step::Frame(frame(self)),
            6..9 => Step::Packet(self.packet()),
            9..12 => Step::Take(usize::from(self.byte() & 3), usize::from(self.byte() & 3)),
            12 => match self.byte() & 3 {
                0 => Step::Damaged(frame(self), usize::from(self.byte())),
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
