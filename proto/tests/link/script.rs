//! Runs `<folder of the protocol>/<behaviour>.script`: what arrives at one end of a link, and what
//! must leave. How a frame is written stands in the protocol's `kit.rs`.
//!
//! ```text
//! set window 8                        // a setting of the agent, by its name
//! +.004 air < FRAME                   // a frame arrives; the other end's epoch is 2, ours is 1
//! +0    air x FRAME                   // the same, and a byte of its packet is wrong
//! +0    wired < . 1:1001(1000) ack 1  // a packet of the network layer; also: udp (100)
//! +0    air > FRAME | . 1:1001(1000) ack 1    // a frame with this packet leaves
//! +0    link sent                     // also: idle, and damaged: a frame without a right byte
//! +0    block                         // the link takes no frame until `unblock`
//! +0    silence                       // nothing has left until now
//! +0    event link_retransmits 1      // so often has this been counted
//! +0    timer tulip-reply +.002       // the next deadline; or `timer none`
//! ```
//!
//! Times are seconds since the line before, segments read as in the agents' scripts: see
//! `script/mod.rs`. Whatever leaves must be expected, in order and at its time.

use crate::common::packet::{Foreign, Tcp};
use crate::kit::{SCRIPTS, Settings, Station, parse_frame, read_frame, show};
use crate::notation::{self, Bases, Pattern, number};
use airmend_proto::agents::Limits;
use airmend_proto::{Agent, Instant, LinkSignal, LinkType, Packet, Port};
use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::Path;
use std::time::Duration;

#[test]
fn scripts() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(SCRIPTS);
    let files = fs::read_dir(folder).expect("the folder of the scripts");
    let mut paths: Vec<_> = files.map(|file| file.expect("a readable folder").path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "no scripts");
    let failed: Vec<String> = paths
        .iter()
        .filter_map(|path| {
            let text = fs::read_to_string(path).expect("a readable script");
            play(&text).err().map(|error| format!("{}:{error}", path.display()))
        })
        .collect();
    assert!(failed.is_empty(), "{} of {}:\n{}", failed.len(), paths.len(), failed.join("\n"));
}

#[derive(Default)]
struct Stage {
    settings: Settings,
    agent: Option<Station>,
    now: Instant,
    is_blocked: bool,
    left: VecDeque<(Port, Packet)>,
    counters: BTreeMap<&'static str, u64>,
    packets: u16,
}

fn play(text: &str) -> Result<(), String> {
    let mut stage = Stage::default();
    for (index, line) in text.lines().enumerate() {
        let line = line.split("//").next().unwrap_or_default().trim();
        let outcome = match line.strip_prefix('+').and_then(|timed| timed.split_once(' ')) {
            Some((time, action)) => seconds(time).and_then(|time| stage.act(time, action.trim())),
            None => stage.setting(line),
        };
        outcome.map_err(|error| format!("{}: {line}: {error}", index + 1))?;
    }
    stage.silence().map_err(|error| format!("at the end: {error}"))
}

impl Stage {
    fn setting(&mut self, line: &str) -> Result<(), String> {
        match line.split_whitespace().collect::<Vec<_>>()[..] {
            [] => Ok(()),
            ["set", name, value] => self.settings.set(name, value),
            _ => Err("neither `set NAME VALUE` nor `+TIME ACTION`".into()),
        }
    }

    fn agent(&mut self) -> &mut Station {
        let settings = &self.settings;
        self.agent.get_or_insert_with(|| Station::new(Limits::default(), settings.clone(), 1))
    }

    fn act(&mut self, after: Duration, action: &str) -> Result<(), String> {
        self.agent();
        self.advance(after)?;
        let (first, rest) = action.split_once(' ').unwrap_or((action, ""));
        let now = self.now;
        match (first, rest.trim()) {
            ("silence", "") => return self.silence(),
            ("block", "") => self.is_blocked = true,
            ("unblock", "") => self.is_blocked = false,
            ("take", "") => {
                let frame = self.agent().poll_transmit(now, Port::Air);
                self.left.extend(frame.map(|frame| (Port::Air, frame)));
            }
            ("link", "leaving") => self.agent().handle_link(now, LinkSignal::Leaving),
            ("link", "sent") => self.agent().handle_link(now, LinkSignal::Sent),
            ("link", "damaged") => {
                let frame = Packet::truncated(LinkType::Frame, Vec::new().into(), 100);
                self.agent().handle_damaged(now, &frame);
            }
            ("link", "idle") => self.agent().handle_link(now, LinkSignal::Idle),
            ("event", rest) => return self.compare_event(rest),
            ("timer", rest) => return self.compare_timer(rest),
            ("wired" | "air", rest) => {
                let side = if first == "air" { Port::Air } else { Port::Wired };
                let (direction, what) = rest.split_once(' ').ok_or("`<` or `>` is missing")?;
                if direction == ">" {
                    return self.expect(side, what.trim());
                }
                let packet = match side {
                    Port::Wired => self.packet(what, Port::Wired)?,
                    Port::Air => self.frame(what)?,
                };
                match direction {
                    "x" => self.agent().handle_damaged(now, &damage(&packet)),
                    _ => drop(self.agent().handle_packet(now, side, &packet)),
                }
            }
            _ => {
                let known = "wired, air, link, block, unblock, take, silence, event or timer";
                return Err(known.into());
            }
        }
        self.drain();
        Ok(())
    }

    fn advance(&mut self, after: Duration) -> Result<(), String> {
        let end = self.now + after;
        if !after.is_zero() {
            self.silence()?;
        }
        while let Some(deadline) = self.agent().poll_timeout().filter(|due| due.at <= end) {
            self.now = self.now.max(deadline.at);
            let now = self.now;
            self.agent().handle_timeout(now);
            self.drain();
            if self.now < end {
                self.silence()?;
            }
        }
        self.now = end;
        self.drain();
        Ok(())
    }

    fn drain(&mut self) {
        let now = self.now;
        for side in [Port::Air, Port::Wired] {
            while side == Port::Wired || !self.is_blocked {
                let Some(packet) = self.agent().poll_transmit(now, side) else {
                    break;
                };
                self.left.push_back((side, packet));
            }
        }
        while let Some(event) = self.agent().poll_event() {
            *self.counters.entry(event.counter()).or_default() += 1;
        }
    }

    fn expect(&mut self, side: Port, wanted: &str) -> Result<(), String> {
        let place = self.left.iter().position(|(to, _)| *to == side);
        let Some((_, packet)) = place.and_then(|place| self.left.remove(place)) else {
            return Err("nothing left".into());
        };
        let (head, payload) = match side {
            Port::Wired => (String::new(), Some(packet)),
            Port::Air => {
                let frame = parse_frame(&packet)?;
                (show(&frame), frame.payload)
            }
        };
        let (wanted_head, wanted_payload) = match side {
            Port::Wired => ("", Some(wanted)),
            Port::Air => match wanted.split_once('|') {
                Some((head, payload)) => (head, Some(payload)),
                None => (wanted, None),
            },
        };
        if wanted_head.split_whitespace().collect::<Vec<_>>().join(" ") != head {
            return Err(format!("actual {head}"));
        }
        self.compare_packet(wanted_payload, payload.as_ref())
    }

    fn compare_packet(&self, wanted: Option<&str>, actual: Option<&Packet>) -> Result<(), String> {
        let (wanted, actual) = match (wanted.map(str::trim), actual) {
            (None, None) => return Ok(()),
            (Some(wanted), Some(actual)) => (wanted, actual),
            _ => return Err("only one of them has a packet".into()),
        };
        let Some(tcp) = Tcp::read(actual) else {
            let len = actual.bytes().len() - 20;
            let is_right = wanted == format!("udp ({len})");
            return if is_right { Ok(()) } else { Err(format!("actual udp ({len})")) };
        };
        let pattern = Pattern::parse(wanted, tcp.sender, false, Bases::default())?;
        if pattern.matches(&tcp) {
            Ok(())
        } else {
            Err(format!("actual | {}", notation::write(&tcp, Bases::default())))
        }
    }

    fn silence(&self) -> Result<(), String> {
        match self.left.front() {
            None => Ok(()),
            Some((Port::Air, packet)) => {
                let frame = parse_frame(packet)?;
                Err(format!("unexpected air > {}", show(&frame)))
            }
            Some((Port::Wired, packet)) => {
                let tcp = Tcp::read(packet);
                let text = tcp.map_or("udp".into(), |tcp| notation::write(&tcp, Bases::default()));
                Err(format!("unexpected wired > {text}"))
            }
        }
    }

    fn compare_event(&self, text: &str) -> Result<(), String> {
        let (name, count) = text.split_once(' ').ok_or("event NAME COUNT")?;
        let actual = self.counters.get(name).copied().unwrap_or(0);
        let is_right = actual == u64::from(number(count.trim())?);
        if is_right { Ok(()) } else { Err(format!("actual {actual}")) }
    }

    fn compare_timer(&mut self, text: &str) -> Result<(), String> {
        let now = self.now;
        let actual = self.agent().poll_timeout();
        let is_right = match text.split_once(" +") {
            None if text == "none" => actual.is_none(),
            None => return Err("timer NAME +SECONDS".into()),
            Some((name, time)) => {
                let at = now + seconds(time)?;
                actual.is_some_and(|timer| timer.at == at && timer.why.to_string() == name)
            }
        };
        if is_right { Ok(()) } else { Err(format!("actual {actual:?}")) }
    }

    /// A packet between network layers; one that arrives on the air is from the air's host.
    fn packet(&mut self, text: &str, sender: Port) -> Result<Packet, String> {
        self.packets += 1;
        let text = text.trim();
        if let Some(len) = text.strip_prefix("udp (").and_then(|rest| rest.strip_suffix(')')) {
            return Ok(Foreign::Udp.packet(self.packets, number(len)? as u16));
        }
        let pattern = Pattern::parse(text, sender, false, Bases::default())?;
        Ok(pattern.tcp.packet(self.packets))
    }

    fn frame(&mut self, text: &str) -> Result<Packet, String> {
        let (head, payload) = match text.split_once('|') {
            Some((head, payload)) => (head, Some(self.packet(payload, Port::Air)?)),
            None => (text, None),
        };
        Ok(read_frame(head, payload)?.emit())
    }
}

/// The same frame with its last byte wrong.
fn damage(frame: &Packet) -> Packet {
    let mut bytes = frame.bytes().to_vec();
    bytes.iter_mut().last().into_iter().for_each(|byte| *byte ^= 1);
    Packet::new(LinkType::Frame, bytes.into())
}

fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(seconds) if (0.0..1e6).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err(format!("`{text}` is not a time in seconds")),
    }
}
