//! tcpdump-style segments: text to fields and back.

use crate::common::packet::{CE, ECT0, ECT1, Tcp};
use airmend_proto::Port;
use airmend_proto::wire::tcp::Flags;
use std::fmt::Write;
use std::num::NonZeroU16;

const LETTERS: [(char, Flags); 8] = [
    ('S', Flags::SYN),
    ('F', Flags::FIN),
    ('R', Flags::RST),
    ('P', Flags::PSH),
    ('U', Flags::URG),
    ('E', Flags::ECE),
    ('W', Flags::CWR),
    ('A', Flags::AE),
];

const CODEPOINTS: [(&str, u8); 3] = [("ect0", ECT0), ("ect1", ECT1), ("ce", CE)];

/// What relative sequence numbers count from.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bases {
    /// The fixed host's.
    pub(crate) wired: u32,
    /// The mobile host's.
    pub(crate) air: u32,
}

impl Bases {
    fn of(self, side: Port) -> u32 {
        match side {
            Port::Wired => self.wired,
            Port::Air => self.air,
        }
    }
}

/// A written segment. In a packet that arrives, an unwritten window is 500.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pattern {
    /// The segment, absolute numbers filled in.
    pub(crate) tcp: Tcp,
    /// Whether the window was written.
    pub(crate) window_written: bool,
    /// Whether options were written.
    pub(crate) options_written: bool,
    /// Whether it is to differ from what came in: then it has the options that are written.
    pub(crate) edited: bool,
}

impl Pattern {
    /// Whether `actual` is what was written.
    pub(crate) fn matches(&self, actual: &Tcp) -> bool {
        let mut wanted = self.tcp.clone();
        if !self.window_written {
            wanted.window = actual.window;
        }
        if !self.options_written && !self.edited {
            wanted.options.clone_from(&actual.options);
        }
        wanted == *actual
    }

    /// Reads `[edited] [other] [ce] [gso N] [dscp N] [flow N] flags first:end(length) [ack N]
    /// [win N] [<options>]`.
    pub(crate) fn parse(
        text: &str,
        sender: Port,
        ipv6: bool,
        bases: Bases,
    ) -> Result<Self, String> {
        let (head, options) = match text.split_once('<') {
            Some((head, rest)) => {
                let options = rest.trim_end().strip_suffix('>').ok_or("options end with `>`")?;
                (head, Some(options))
            }
            None => (text, None),
        };
        let mut words = head.split_whitespace();
        let mut next = |what: &str| words.next().ok_or(format!("{what} is missing"));
        let mut tcp = Tcp { ipv6, ..Tcp::new(0, sender, 0, 0, 0) };
        let mut edited = false;
        let flags = loop {
            match next("flags")? {
                "edited" => edited = true,
                "other" => tcp.is_other = true,
                "gso" => tcp.segment_size = NonZeroU16::new(number(next("a size")?)? as u16),
                "dscp" => tcp.dscp = number(next("a codepoint")?)?.min(63) as u8,
                "flow" => tcp.flow = number(next("the flow's number")?)? as u16,
                word => match CODEPOINTS.iter().find(|(name, _)| *name == word) {
                    Some((_, codepoint)) => tcp.ecn = *codepoint,
                    None => break word,
                },
            }
        };
        let range = next("first:end(length)")?;
        (tcp.seq, tcp.len) = parse_range(range)?;
        tcp.seq = tcp.seq.wrapping_add(bases.of(sender));
        let has_ack = flags.contains('.');
        tcp.flags = parse_flags(flags)?;
        tcp.ack = None;
        let mut window_written = false;
        while let Some(word) = words.next() {
            let value = words.next().ok_or(format!("`{word}` needs a number"))?;
            match word {
                "ack" => {
                    tcp.ack = Some(number(value)?.wrapping_add(bases.of(sender.opposite())));
                }
                "win" => {
                    tcp.window = number(value)? as u16;
                    window_written = true;
                }
                _ => return Err(format!("`{word}` is neither ack, win nor <options>")),
            }
        }
        if has_ack != tcp.ack.is_some() {
            return Err("the flag `.` and `ack N` go together".into());
        }
        if let Some(options) = options {
            tcp.options = parse_options(options, bases.of(sender.opposite()))?;
        }
        Ok(Self { tcp, window_written, options_written: options.is_some(), edited })
    }
}

/// Writes a segment as the scripts do, with window and options.
pub(crate) fn write(tcp: &Tcp, bases: Bases) -> String {
    let mut text = String::new();
    if let Some((name, _)) = CODEPOINTS.iter().find(|(_, codepoint)| *codepoint == tcp.ecn) {
        let _ = write!(text, "{name} ");
    }
    if let Some(size) = tcp.segment_size {
        let _ = write!(text, "gso {size} ");
    }
    if tcp.dscp != 0 {
        let _ = write!(text, "dscp {} ", tcp.dscp);
    }
    if tcp.flow != 0 {
        let _ = write!(text, "flow {} ", tcp.flow);
    }
    text.extend(LETTERS.iter().filter(|(_, flag)| tcp.flags.intersects(*flag)).map(|(l, _)| l));
    if tcp.ack.is_some() {
        text.push('.');
    }
    let first = tcp.seq.wrapping_sub(bases.of(tcp.sender));
    let _ = write!(text, " {first}:{}({})", first.wrapping_add(u32::from(tcp.len)), tcp.len);
    let peer = bases.of(tcp.sender.opposite());
    if let Some(ack) = tcp.ack {
        let _ = write!(text, " ack {}", ack.wrapping_sub(peer));
    }
    let _ = write!(text, " win {}", tcp.window);
    if !tcp.options.is_empty() {
        let _ = write!(text, " <{}>", write_options(&tcp.options, peer));
    }
    text
}

/// A decimal or `0x` number.
pub(crate) fn number(text: &str) -> Result<u32, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(hex) => u32::from_str_radix(hex, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| format!("`{text}` is not a number below 2^32"))
}

fn parse_flags(text: &str) -> Result<Flags, String> {
    text.chars().filter(|c| *c != '.').try_fold(Flags::default(), |flags, letter| {
        let known = LETTERS.iter().find(|(l, _)| *l == letter);
        let (_, flag) = known.ok_or(format!("`{letter}` is not a flag: S F R P U E W A or `.`"))?;
        Ok(flags.union(*flag))
    })
}

fn parse_range(text: &str) -> Result<(u32, u16), String> {
    let parts = text.split_once(':').and_then(|(first, rest)| {
        let (end, len) = rest.strip_suffix(')')?.split_once('(')?;
        Some((first, end, len))
    });
    let (first, end, len) = parts.ok_or(format!("`{text}` is not first:end(length)"))?;
    let (first, end, len) = (number(first)?, number(end)?, number(len)?);
    if end.wrapping_sub(first) != len || len > 60_000 {
        return Err(format!("`{text}`: end - first is not the length, or it is above 60000"));
    }
    Ok((first, len as u16))
}

fn parse_options(text: &str, peer: u32) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    for option in text.split(',') {
        let words: Vec<&str> = option.split_whitespace().collect();
        match words[..] {
            ["nop"] => bytes.push(1),
            ["nops", count] => bytes.resize(bytes.len() + number(count)?.min(40) as usize, 1),
            ["eol"] => bytes.push(0),
            ["mss", value] => {
                bytes.extend([2, 4]);
                bytes.extend((number(value)? as u16).to_be_bytes());
            }
            ["wscale", shift] => bytes.extend([3, 3, number(shift)? as u8]),
            ["sackOK"] => bytes.extend([4, 2]),
            ["TS", "val", value, "ecr", echo] => {
                bytes.extend([8, 10]);
                bytes.extend(number(value)?.to_be_bytes());
                bytes.extend(number(echo)?.to_be_bytes());
            }
            ["sack", ref blocks @ ..] => {
                bytes.extend([5, 2 + 8 * blocks.len() as u8]);
                for block in blocks {
                    let (left, right) =
                        block.split_once(':').ok_or("a sack block is left:right")?;
                    bytes.extend(number(left)?.wrapping_add(peer).to_be_bytes());
                    bytes.extend(number(right)?.wrapping_add(peer).to_be_bytes());
                }
            }
            ["kind", kind, value] => {
                let value = number(value)?.to_be_bytes();
                bytes.extend([number(kind)? as u8, 6]);
                bytes.extend(value);
            }
            _ => return Err(format!("`{option}` is not an option that scripts know")),
        }
    }
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    if bytes.len() > 40 { Err("more than 40 bytes of options".into()) } else { Ok(bytes) }
}

fn write_options(mut bytes: &[u8], peer: u32) -> String {
    let word = |b: &[u8]| u32::from_be_bytes([b[0], b[1], b[2], b[3]]);
    let mut texts = Vec::new();
    while let Some((&kind, rest)) = bytes.split_first() {
        let len = if kind < 2 { 1 } else { usize::from(rest[0]) };
        let value = if kind < 2 { rest } else { &bytes[2..len] };
        texts.push(match kind {
            0 => break,
            1 => {
                let more = rest.iter().take_while(|&&kind| kind == 1).count();
                bytes = &rest[more..];
                texts.push(if more < 2 {
                    vec!["nop"; more + 1].join(",")
                } else {
                    format!("nops {}", more + 1)
                });
                continue;
            }
            2 => format!("mss {}", u16::from_be_bytes([value[0], value[1]])),
            3 => format!("wscale {}", value[0]),
            4 => "sackOK".into(),
            5 => value.chunks(8).fold("sack".into(), |text, block| {
                let edge = |b| word(b).wrapping_sub(peer);
                format!("{text} {}:{}", edge(block), edge(&block[4..]))
            }),
            8 => format!("TS val {} ecr {}", word(value), word(&value[4..])),
            _ => format!("kind {kind} {:#x}", word(value)),
        });
        bytes = &bytes[len..];
    }
    texts.join(",")
}
