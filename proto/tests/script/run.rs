//! Plays a script against an agent, and logs the events up to the difference.

use super::notation::{self, Bases, Pattern};
use super::{Action, Content, Script};
use crate::common::packet::Tcp;
use airmend_proto::{Event, Forwarder, Instant, Packet, Port, Ports, drain};
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;
use std::time::Duration;

/// Plays the script; an error begins with the number of the line that was not met.
pub(crate) fn run(script: &Script, agent: Forwarder) -> Result<(), String> {
    let mut runner = Runner::new(agent, script.bases);
    for line in &script.lines {
        let at = runner.now + line.after;
        let step = runner
            .advance(at)
            .and_then(|()| runner.wait_for(&line.action, at + line.within))
            .and_then(|()| runner.act(&line.action));
        step.map_err(|difference| {
            format!("{}: {}\n{difference}\n{}", line.number, line.text, runner.story())
        })?;
    }
    let end = script.lines.last().map_or(0, |line| line.number);
    runner.nothing_left().and_then(|()| runner.no_rule_broken()).map_err(|difference| {
        format!("{end}: after the last line\n{difference}\n{}", runner.story())
    })
}

struct Runner {
    agent: Forwarder,
    now: Instant,
    wires: Wires,
    counters: BTreeMap<&'static str, u64>,
    arrived: Vec<(Port, Packet)>,
    bases: Bases,
    /// The events of each moment, in words.
    reported: Vec<(Instant, String)>,
    story: Vec<String>,
}

/// Both sides as the agent sees them: what left and was not yet expected.
#[derive(Default)]
struct Wires {
    left: VecDeque<(Instant, Port, Packet)>,
    blocked: Vec<Port>,
}

impl Ports for Wires {
    fn can_send(&self, _now: Instant, side: Port) -> bool {
        !self.blocked.contains(&side)
    }

    fn send(&mut self, now: Instant, side: Port, packet: Packet) {
        self.left.push_back((now, side, packet));
    }
}

impl Runner {
    fn new(agent: Forwarder, bases: Bases) -> Self {
        Self {
            agent,
            now: Instant::ZERO,
            wires: Wires::default(),
            counters: BTreeMap::new(),
            arrived: Vec::new(),
            bases,
            reported: Vec::new(),
            story: Vec::new(),
        }
    }

    /// Moves the clock to `at`, stopping at every deadline on the way; nothing may leave before
    /// `at`, and nothing may be left unexpected from before.
    fn advance(&mut self, at: Instant) -> Result<(), String> {
        if at > self.now {
            self.nothing_left()?;
        }
        for _ in 0..10_000 {
            match self.agent.poll_timeout() {
                Some(deadline) if deadline.at <= at => {
                    self.now = self.now.max(deadline.at);
                    self.log(&format!("deadline: {}", deadline.why));
                    self.drain();
                    if self.now < at {
                        self.nothing_left()?;
                    }
                }
                _ => {
                    self.now = at;
                    return Ok(());
                }
            }
        }
        Err("  the agent's deadline does not move: handle_timeout makes no progress".into())
    }

    /// Stops at deadlines until `end`, or until a packet leaves to the side that is meant.
    fn wait_for(&mut self, action: &Action, end: Instant) -> Result<(), String> {
        let Action::Leave(side, _) = action else { return Ok(()) };
        while self.now < end && !self.wires.left.iter().any(|(_, to, _)| to == side) {
            let due = self.agent.poll_timeout().map_or(end, |deadline| deadline.at.min(end));
            self.advance(due)?;
        }
        Ok(())
    }

    fn act(&mut self, action: &Action) -> Result<(), String> {
        match action {
            Action::Arrive(side, content) => self.arrive(*side, content),
            Action::Leave(side, content) => return self.expect(*side, content),
            Action::Silence => return self.nothing_left(),
            Action::Block(side) => self.wires.blocked.push(*side),
            Action::Unblock(side) => {
                self.wires.blocked.retain(|blocked| blocked != side);
                self.drain();
            }
            Action::Event(name, count) => {
                let actual = self.counters.get(name.as_str()).copied().unwrap_or(0);
                if actual != *count {
                    return Err(format!("  expected  {name} {count}\n  actual    {name} {actual}"));
                }
            }
            Action::Report(sentence) => {
                let reported = self
                    .reported
                    .iter()
                    .any(|(at, reported)| *at == self.now && reported == sentence);
                if !reported {
                    return Err(format!("  expected  event: {sentence}"));
                }
            }
            Action::Timer(expected) => return self.compare_timer(expected.as_ref()),
        }
        Ok(())
    }

    fn compare_timer(&self, expected: Option<&(String, Duration)>) -> Result<(), String> {
        let show = |(why, at): (String, Instant)| format!("{why} at {at}");
        let none = || "none".to_string();
        let expected = expected.map(|(why, time)| (why.clone(), self.now + *time));
        let armed = self.agent.poll_timeout();
        let actual = armed.map(|deadline| (deadline.why.to_string(), deadline.at));
        if actual == expected {
            return Ok(());
        }
        let (expected, actual) = (expected.map_or_else(none, show), actual.map_or_else(none, show));
        Err(format!("  expected  timer {expected}\n  actual    timer {actual}"))
    }

    fn arrive(&mut self, side: Port, content: &Content) {
        let id = u16::try_from(self.arrived.len() + 1).expect("a script is short");
        let packet = match content {
            Content::Tcp(pattern) => pattern.tcp.packet(id),
            Content::Foreign(foreign, len) => foreign.packet(id, *len),
        };
        self.log(&format!("{} < {}", side, self.show(&packet)));
        self.arrived.push((side, packet.clone()));
        self.agent.handle_packet(self.now, side, packet);
        self.drain();
    }

    fn drain(&mut self) {
        let before = self.wires.left.len();
        let mut events = Vec::new();
        drain(&mut self.agent, self.now, &mut self.wires, &mut |event: Event| {
            events.push(event);
        });
        for event in events {
            *self.counters.entry(event.counter()).or_default() += 1;
            self.reported.push((self.now, event.to_string()));
            self.log(&format!("event: {event}"));
        }
        let left: Vec<_> = self.wires.left.iter().skip(before).cloned().collect();
        for (_, side, packet) in left {
            self.log(&format!("{} > {}", side, self.show(&packet)));
        }
    }

    /// Takes the first packet that left to `side`, and compares.
    fn expect(&mut self, side: Port, content: &Content) -> Result<(), String> {
        let next = self.wires.left.iter().position(|(_, to, _)| *to == side);
        let actual = next.and_then(|index| self.wires.left.remove(index));
        let wanted = match content {
            Content::Tcp(pattern) => notation::write(&pattern.tcp, self.bases),
            Content::Foreign(foreign, len) => show_foreign(&foreign.packet(0, *len)),
        };
        let Some((_, _, packet)) = actual else {
            return Err(format!("  expected  {} > {wanted}\n  actual    nothing", side));
        };
        let right = match (content, Tcp::read(&packet)) {
            (Content::Tcp(pattern), Some(tcp)) => pattern.matches(&tcp),
            (Content::Foreign(..), None) => wanted == show_foreign(&packet),
            _ => false,
        };
        if !right {
            let actual = self.show(&packet);
            return Err(format!("  expected  {side} > {wanted}\n  actual    {side} > {actual}"));
        }
        let copied = |(from, original): &(Port, Packet)| *from != side && *original == packet;
        let is_copy = self.arrived.iter().any(copied);
        let problem = match content {
            Content::Tcp(Pattern { edited: true, .. }) if is_copy => "came in like this, unedited",
            Content::Tcp(Pattern { edited: true, .. }) if Tcp::is_intact(&packet) => return Ok(()),
            Content::Tcp(Pattern { edited: true, .. }) => {
                "a length, a checksum or the payload is wrong"
            }
            _ if is_copy => return Ok(()),
            _ => "not a copy of any packet that came in",
        };
        Err(format!("  {problem}: {} > {}", side, self.show(&packet)))
    }

    fn no_rule_broken(&self) -> Result<(), String> {
        let broken = self.reported.iter().find(|(_, event)| event.starts_with("broken rule"));
        broken.map_or(Ok(()), |(at, event)| Err(format!("  at {at}  {event}")))
    }

    fn nothing_left(&mut self) -> Result<(), String> {
        if self.wires.left.is_empty() {
            return Ok(());
        }
        let mut difference = String::from("  expected  silence");
        for (at, side, packet) in &self.wires.left {
            let packet = self.show(packet);
            let _ = write!(difference, "\n  actual    {at} {} > {packet}", side);
        }
        Err(difference)
    }

    fn show(&self, packet: &Packet) -> String {
        match Tcp::read(packet) {
            Some(tcp) => notation::write(&tcp, self.bases),
            None => show_foreign(packet),
        }
    }

    fn log(&mut self, what: &str) {
        self.story.push(format!("    {} {what}", self.now));
    }

    fn story(&self) -> String {
        format!("  what happened:\n{}", self.story.join("\n"))
    }
}

fn show_foreign(packet: &Packet) -> String {
    let bytes = packet.bytes();
    format!("{} bytes, first {:02x}, protocol {}", bytes.len(), bytes[0], bytes[9])
}
