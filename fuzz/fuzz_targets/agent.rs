//! Bytes as a sequence of times and packets, nearly right ones and raw ones, for snoop95 with
//! limits so small that each is hit: it keeps what the property tests say that an agent promises.
#![no_main]

#[path = "../../proto/tests/common/mod.rs"]
mod common;

use airmend_proto::agents::snoop95::{Settings, Snoop95};
use airmend_proto::wire::tcp::Flags;
use airmend_proto::{LinkType, Side};
use common::hostile::{ISN, Step, TINY, hasty, play};
use common::packet::{Foreign, Tcp};
use core::time::Duration;
use libfuzzer_sys::fuzz_target;

/// Steps of one run: the agent's state is small, so that more of them show little more.
const MAX_STEPS: usize = 150;

fuzz_target!(|data: &[u8]| {
    let mut input = Input(data);
    let switches = input.byte();
    let settings = Settings {
        dupack_threshold: u32::from(switches & 3).max(1),
        fast_queue: switches & 4 != 0,
        repeat_ack: switches & 8 != 0,
        ..hasty()
    };
    let mut steps = Vec::new();
    while !input.0.is_empty() && steps.len() < MAX_STEPS {
        steps.push(input.step());
    }
    if let Err(error) = play(Snoop95::new(settings, TINY, 1), TINY, &steps) {
        panic!("{error}");
    }
});

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

    fn step(&mut self) -> Step {
        let kind = self.byte();
        let side = if kind & 0x80 == 0 { Side::Wired } else { Side::Air };
        match kind & 0x0f {
            0..9 => Step::Tcp(self.tcp(side, kind)),
            // Up to 6.5 s, in steps that meet the timers.
            9..12 => Step::Wait(Duration::from_micros(u64::from(self.word()) * 100)),
            12 => Step::CanSend(side, self.byte() & 1 != 0),
            13 => {
                let kinds = [Foreign::Udp, Foreign::Fragment, Foreign::Malformed, Foreign::NotIp];
                let kind = kinds[usize::from(self.byte() & 3)];
                Step::Foreign(side, kind, u16::from(self.byte()))
            }
            _ => self.bytes(side, kind),
        }
    }

    /// A segment on a grid of 100 bytes across the wrap; rarely anywhere else.
    fn tcp(&mut self, sender: Side, kind: u8) -> Tcp {
        let place = self.byte();
        let detail = self.byte();
        let number = match place {
            0..240 => ISN.wrapping_add(u32::from(place % 40) * 100),
            _ => u32::from(self.word()) << 16 | u32::from(self.word()),
        };
        let flow = u16::from(detail & 7).min(5);
        let data_len = [100, 200, 0, u16::from(detail)][usize::from(detail >> 6)];
        let mut tcp = match sender {
            Side::Wired => Tcp::new(flow, sender, number, data_len, ISN),
            Side::Air if detail >> 6 == 3 => Tcp::new(flow, sender, ISN, 50, number),
            Side::Air => Tcp::new(flow, sender, ISN, 0, number),
        };
        tcp.ipv6 = detail & 8 != 0;
        tcp.window += u16::from(detail >> 4 & 1);
        if kind & 0x70 == 0x70 {
            tcp.flags = Flags(u16::from(self.byte()) & !Flags::ACK.0);
        }
        if kind & 0x70 == 0x60 {
            tcp.options = (0..8).map(|_| self.byte()).collect();
        }
        tcp
    }

    fn bytes(&mut self, side: Side, kind: u8) -> Step {
        let link_type = if kind & 0x40 == 0 { LinkType::Ip } else { LinkType::Ethernet };
        let len = usize::from(self.byte()).min(self.0.len());
        let (bytes, rest) = self.0.split_at(len);
        self.0 = rest;
        Step::Bytes(side, link_type, bytes.to_vec())
    }
}
