//! Bytes as a sequence of times and packets, nearly right ones and raw ones, for each agent of the
//! registry that stands alone, with limits so small that each is hit: the agents keep what the
//! property tests say that an agent promises. A quarter of the inputs each are transfers: of the
//! fixed host, of the mobile host, and of a sender in the agent's own host.

use crate::common::agents::{tight, vary};
use crate::common::hostile::{ISN, Step, TINY, play};
use crate::common::packet::{Foreign, Tcp};
use crate::common::transfer::{Choice, sack, transfer};
use crate::input::Input;
use airmend_proto::agents::Limits;
use airmend_proto::wire::tcp::Flags;
use airmend_proto::{LinkType, Port};
use core::num::NonZeroU16;
use core::time::Duration;

/// Steps of one run: the agent's state is small, so that more of them show little more.
const MAX_STEPS: usize = 150;

pub(crate) fn fuzz(data: &[u8]) {
    let mut input = Input(data);
    let (agent, choices) = (input.byte(), u64::from(input.word()));
    let steps = match agent >> 6 {
        0 => input.many(Input::step),
        1 => transfer(Port::Wired, false, input.many(Input::choice)),
        2 => transfer(Port::Air, false, input.many(Input::choice)),
        _ => transfer(Port::Wired, true, input.many(Input::choice)),
    };
    let agents: Vec<_> = tight().collect();
    let agent = &agents[usize::from(agent & 0x3f) % agents.len()];
    let agent = vary(agent.clone(), choices << 48 | choices);
    let limits = if choices & 1 << 15 == 0 { TINY } else { Limits::default() };
    if let Err(error) = play(&agent, limits, &steps) {
        panic!("{error}");
    }
}

impl Input<'_> {
    fn many<T>(&mut self, mut next: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let mut all = Vec::new();
        while !self.0.is_empty() && all.len() < MAX_STEPS {
            all.push(next(self));
        }
        all
    }

    /// A choice of one byte, or with a wait or SACK blocks of more.
    fn choice(&mut self) -> Choice {
        let kind = self.byte();
        let (is_ack, has_wait, is_report) = (kind & 4 != 0, kind & 8 != 0, kind & 16 != 0);
        let count = if is_ack { kind >> 5 & 3 } else { 0 };
        let block = |edges: u8| (u32::from(edges >> 2) & 15, 1 + u32::from(edges & 3));
        Choice {
            is_ack,
            number: u32::from(kind & 3),
            blocks: (0..count).map(|_| block(self.byte())).collect(),
            is_report,
            wait: Duration::from_millis(if has_wait { self.byte().into() } else { 0 }),
        }
    }

    fn step(&mut self) -> Step {
        let kind = self.byte();
        let side = if kind & 0x80 == 0 { Port::Wired } else { Port::Air };
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
    fn tcp(&mut self, sender: Port, kind: u8) -> Tcp {
        let place = self.byte();
        let detail = self.byte();
        let number = match place {
            0..240 => ISN.wrapping_add(u32::from(place % 40) * 100),
            _ => u32::from(self.word()) << 16 | u32::from(self.word()),
        };
        let flow = u16::from(detail & 7).min(5);
        let data_len = [100, 200, 0, u16::from(detail)][usize::from(detail >> 6)];
        let mut tcp = match sender {
            Port::Wired => Tcp::new(flow, sender, number, data_len, ISN),
            Port::Air if detail >> 6 == 3 => Tcp::new(flow, sender, ISN, 50, number),
            Port::Air => Tcp::new(flow, sender, ISN, 0, number),
        };
        tcp.ipv6 = detail & 8 != 0;
        tcp.window += u16::from(detail >> 4 & 1);
        if kind & 0x70 == 0x70 {
            tcp.flags = Flags(u16::from(self.byte()) & !Flags::ACK.0);
        }
        match kind & 0x70 {
            0x60 => tcp.options = (0..8).map(|_| self.byte()).collect(),
            0x50 => tcp.options = vec![1, 1, 8, 10, 0, 0, 0, self.byte(), 0, 0, 0, self.byte()],
            0x40 if sender == Port::Air => tcp.options = self.blocks(),
            0x40 => tcp.segment_size = NonZeroU16::new(100).filter(|size| size.get() < tcp.len),
            0x30 => tcp.ecn = self.byte() & 3,
            _ => {}
        }
        tcp
    }

    /// Up to four blocks on the grid.
    fn blocks(&mut self) -> Vec<u8> {
        let count = 1 + (self.byte() & 3);
        let blocks = (0..count).map(|_| {
            let left = ISN.wrapping_add(u32::from(self.byte() % 40) * 100);
            (left, left.wrapping_add(u32::from(self.byte() & 3) * 100))
        });
        sack(blocks)
    }

    fn bytes(&mut self, side: Port, kind: u8) -> Step {
        let link_type = if kind & 0x40 == 0 { LinkType::Ip } else { LinkType::Ethernet };
        let len = usize::from(self.byte()).min(self.0.len());
        let (bytes, rest) = self.0.split_at(len);
        self.0 = rest;
        Step::Bytes(side, link_type, bytes.to_vec())
    }
}
