//! What strangers send, one function for each attack.

use super::place::{STRANGE_FIXED, STRANGE_MOBILE, Side, Strangers};
use crate::hostile::{Random, frame};
use crate::world::fixed_address;
use airmend_proto::wire::build::SegmentBuilder;
use airmend_proto::wire::seq::SeqNumber;
use airmend_proto::wire::tcp::{Flags, Options, Segment};
use airmend_proto::{LinkType, Packet};
use nix::unistd::read;
use std::net::Ipv4Addr;

const HONEST_MOBILE: [u8; 4] = [10, 77, 2, 2];
/// The first sequence number of strangers' flows.
const FIRST: u32 = 1;
/// Bytes of a window that a stranger pretends to have.
const WINDOW: u32 = 1 << 20;
/// Bytes of a stranger's segment: the air belongs to others.
const LEN: u32 = 100;

/// An attack: its name, and what makes its frames.
pub(super) struct Attack {
    pub(super) name: &'static str,
    pub(super) what: &'static str,
    make: fn(&mut Attacker<'_>, u32) -> Frame,
}

type Frame = (Side, Vec<u8>);

/// All attacks.
pub(super) const ATTACKS: [Attack; 10] = [
    Attack { name: "crumbs", what: "SACKs of alternate bytes of 1 MB", make: crumbs },
    Attack { name: "newest", what: "SACKs of the newest packet only", make: newest },
    Attack { name: "stray", what: "data to a silent mobile host", make: stray },
    Attack { name: "forged_data", what: "data in the honest window, old TSval", make: forged_data },
    Attack { name: "forged_end", what: "RST and SYN of any sequence number", make: forged_end },
    Attack { name: "wrong_acks", what: "ACKs of future and past", make: wrong_acks },
    Attack { name: "tiny", what: "segments of one byte, every second SACKed", make: tiny },
    Attack { name: "windows", what: "ACKs whose window shrinks and grows", make: windows },
    Attack { name: "syns_down", what: "SYNs to a silent mobile host", make: syns_down },
    Attack { name: "syns_up", what: "SYNs from mobile hosts that nobody has", make: syns_up },
];

/// The honest flow as a stranger at the wire sees it.
#[derive(Clone, Debug, Default)]
struct View {
    /// The mobile's port.
    port: u16,
    /// The next sequence number of the fixed host, and of the mobile host.
    next: u32,
    ack: u32,
    /// Of the fixed host's last segment.
    options: Options,
}

/// Makes the frames of an attack.
pub(super) struct Attacker<'a> {
    strangers: &'a Strangers,
    view: View,
    random: Random,
}

impl<'a> Attacker<'a> {
    pub(super) fn new(strangers: &'a Strangers, seed: u64) -> Self {
        Self { strangers, view: View::default(), random: Random::new(seed) }
    }

    /// Looks at the honest flow. False before there is one.
    pub(super) fn look(&mut self) -> bool {
        let mut bytes = [0; 2048];
        while let Ok(length) = read(&self.strangers.wire, &mut bytes) {
            let packet = Packet::new(LinkType::Ethernet, bytes[..length].to_vec().into());
            let Ok(segment) = Segment::parse(&packet) else { continue };
            if segment.source.ip() == honest_fixed() && segment.payload_len > 0 {
                self.view = View {
                    port: segment.destination.port,
                    next: segment.seq.0.wrapping_add(segment.payload_len),
                    ack: segment.ack.0,
                    options: segment.options,
                };
            }
        }
        self.view.port != 0
    }

    /// The frame with this number, from one side.
    pub(super) fn frame(&mut self, attack: &Attack, number: u32) -> Frame {
        (attack.make)(self, number)
    }

    fn wired(&self, segment: SegmentBuilder<'_>) -> Frame {
        (Side::Wired, frame(self.strangers.base[0], segment))
    }

    fn air(&self, segment: SegmentBuilder<'_>) -> Frame {
        (Side::Air, frame(self.strangers.base[1], segment))
    }

    /// Data of a stranger to another.
    fn data(&self, port: u16, offset: u32, payload: &[u8]) -> Frame {
        let segment = SegmentBuilder::new((STRANGE_FIXED, 80), (STRANGE_MOBILE, port));
        let segment = segment.seq(SeqNumber(FIRST.wrapping_add(offset))).ack(SeqNumber(1));
        self.wired(segment.flags(Flags::ACK).payload(payload))
    }

    /// The other one's ACK, with these ranges as SACK blocks.
    fn sack(&self, port: u16, offset: u32, ranges: &[(u32, u32)]) -> Frame {
        let at = |offset: u32| SeqNumber(FIRST.wrapping_add(offset));
        let sack = ranges.iter().map(|(from, to)| (at(*from), at(*to))).collect();
        let segment = SegmentBuilder::new((STRANGE_MOBILE, port), (STRANGE_FIXED, 80));
        let segment = segment.seq(SeqNumber(1)).ack(at(offset)).flags(Flags::ACK);
        self.air(segment.options(Options { sack, ..Options::default() }))
    }
}

fn honest_fixed() -> Ipv4Addr {
    fixed_address(false).parse().unwrap_or(Ipv4Addr::UNSPECIFIED)
}

/// Two segments open the window, and each ACK adds four holes of one byte.
fn crumbs(attacker: &mut Attacker<'_>, number: u32) -> Frame {
    match number {
        0 => attacker.data(7000, 0, &[7; LEN as usize]),
        1..20 => attacker.sack(7000, 0, &[]),
        20..40 => attacker.data(7000, WINDOW, &[7; LEN as usize]),
        _ => {
            let crumb = |n: u32| 1 + 2 * ((4 * number + n) % (WINDOW / 2));
            let ranges = [0, 1, 2, 3].map(|n| (crumb(n), crumb(n) + 1));
            attacker.sack(7000, 0, &ranges)
        }
    }
}

/// Nothing is ever acknowledged but the newest segment, selectively, until the window is full.
fn newest(attacker: &mut Attacker<'_>, number: u32) -> Frame {
    let segments = WINDOW / LEN;
    let (round, index) = (number / 2 / segments, number / 2 % segments);
    let port = 7000 + (round % 1000) as u16;
    let at = index * LEN;
    match number % 2 {
        0 => attacker.data(port, at, &[7; LEN as usize]),
        _ if index == 0 => attacker.sack(port, LEN, &[]),
        _ if index == 1 => attacker.sack(port, LEN, &[]),
        _ => attacker.sack(port, LEN, &[(at, at + LEN)]),
    }
}

/// Each segment is of another flow, as far as there are ports.
fn stray(attacker: &mut Attacker<'_>, number: u32) -> Frame {
    let ports = 60_000;
    attacker.data(1024 + (number % ports) as u16, number / ports * LEN, &[7; LEN as usize])
}

/// The mobile host discards them by their old timestamp; a gateway should not keep them.
fn forged_data(attacker: &mut Attacker<'_>, number: u32) -> Frame {
    let View { port, next, ack, mut options } = attacker.view.clone();
    let ahead = (number % 64) * 1448;
    if let Some(timestamps) = &mut options.timestamps {
        timestamps.value = timestamps.value.wrapping_sub(1_000_000);
    }
    let segment = SegmentBuilder::new((honest_fixed(), 5001), (HONEST_MOBILE, port));
    let segment = segment.seq(SeqNumber(next.wrapping_add(ahead))).ack(SeqNumber(ack));
    attacker.wired(segment.flags(Flags::ACK).options(options).payload(&[0xee; LEN as usize]))
}

fn forged_end(attacker: &mut Attacker<'_>, number: u32) -> Frame {
    let port = attacker.view.port;
    let [seq, ack] = [(); 2].map(|()| SeqNumber(attacker.random.next() as u32));
    let flags = if number.is_multiple_of(2) { Flags::RST } else { Flags::SYN };
    let (fixed, mobile) = ((honest_fixed(), 5001), (HONEST_MOBILE, port));
    let make = |from: (Ipv4Addr, u16), to: (Ipv4Addr, u16)| {
        SegmentBuilder::new(from, to).seq(seq).ack(ack).flags(flags.union(Flags::ACK))
    };
    let mobile = (Ipv4Addr::from(mobile.0), mobile.1);
    match number / 2 % 2 {
        0 => attacker.wired(make(fixed, mobile)),
        _ => attacker.air(make(mobile, fixed)),
    }
}

fn wrong_acks(attacker: &mut Attacker<'_>, number: u32) -> Frame {
    let View { port, next, ack, .. } = attacker.view;
    let away = 1 + (attacker.random.next() as u32 >> 3);
    let wrong = match number % 2 {
        0 => next.wrapping_add(WINDOW + away),
        _ => next.wrapping_sub(8 * WINDOW + away),
    };
    let block = (SeqNumber(wrong.wrapping_add(LEN)), SeqNumber(wrong.wrapping_add(2 * LEN)));
    let options = Options { sack: [block].into_iter().collect(), ..Options::default() };
    let segment = SegmentBuilder::new((HONEST_MOBILE, port), (honest_fixed(), 5001));
    let segment = segment.seq(SeqNumber(ack)).ack(SeqNumber(wrong)).flags(Flags::ACK);
    attacker.air(segment.options(options))
}

/// Every second segment is missing.
fn tiny(attacker: &mut Attacker<'_>, number: u32) -> Frame {
    let at = number / 2;
    match number % 2 {
        0 => attacker.data(7000, at, b"x"),
        _ if at < 20 => attacker.sack(7000, 1, &[]),
        _ => {
            let newest = at - at % 2;
            attacker.sack(7000, 1, &[(newest, newest + 1), (newest - 2, newest - 1)])
        }
    }
}

fn windows(attacker: &mut Attacker<'_>, number: u32) -> Frame {
    if number.is_multiple_of(100) {
        return attacker.data(7000, number / 100 * LEN, &[7; LEN as usize]);
    }
    let window = if number.is_multiple_of(3) { 0 } else { number as u16 };
    let segment = SegmentBuilder::new((STRANGE_MOBILE, 7000), (STRANGE_FIXED, 80));
    let segment = segment.seq(SeqNumber(1)).ack(SeqNumber(FIRST + number / 200 * LEN));
    attacker.air(segment.flags(Flags::ACK).window(window))
}

fn syns_down(attacker: &mut Attacker<'_>, number: u32) -> Frame {
    let source = [172, 16 + (number >> 16) as u8, (number >> 8) as u8, number as u8];
    let port = attacker.random.next() as u16 | 1;
    let segment = SegmentBuilder::new((source, port), (STRANGE_MOBILE, 80));
    let segment = segment.seq(SeqNumber(attacker.random.next() as u32)).flags(Flags::SYN);
    attacker.wired(segment)
}

fn syns_up(attacker: &mut Attacker<'_>, number: u32) -> Frame {
    let source = [10, 77, 2, 100 + (number % 100) as u8];
    let port = attacker.random.next() as u16 | 1;
    let segment = SegmentBuilder::new((source, port), (STRANGE_FIXED, 80));
    let segment = segment.seq(SeqNumber(attacker.random.next() as u32)).flags(Flags::SYN);
    attacker.air(segment)
}
