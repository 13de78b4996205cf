//! From the text of a script to its lines.

use super::notation::{Pattern, number};
use super::{Action, Content, Line, Script};
use crate::common::packet::Foreign;
use airmend_proto::Port;
use std::time::Duration;

impl Script {
    /// Reads a script; an error begins with the number of its line.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut script = Self::default();
        for (index, line) in text.lines().enumerate() {
            let line = line.split("//").next().unwrap_or_default().trim();
            let number = index + 1;
            script.parse_line(number, line).map_err(|error| format!("{number}: {error}"))?;
        }
        if script.lines.is_empty() {
            return Err("1: the script says nothing".into());
        }
        Ok(script)
    }

    fn parse_line(&mut self, line_number: usize, line: &str) -> Result<(), String> {
        if let Some(timed) = line.strip_prefix('+') {
            let (time, rest) = timed.split_once(' ').ok_or("a time without an action")?;
            let (from, to) = time.split_once("~+").unwrap_or((time, time));
            let (after, latest) = (seconds(from)?, seconds(to)?);
            let within = latest.saturating_sub(after);
            let action = self.parse_action(rest.trim())?;
            if !within.is_zero() && !matches!(action, Action::Leave(..)) {
                return Err(format!("`+{time}` is for a packet that leaves only"));
            }
            let text = line.into();
            self.lines.push(Line { number: line_number, text, after, within, action });
            return Ok(());
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        if !words.is_empty() && !self.lines.is_empty() {
            return Err(
                "a setting after the first timed line, or a line without its `+time`".into()
            );
        }
        match words[..] {
            [] => {}
            ["set", name, value] => self.settings.push((name.into(), value.into())),
            ["limit", name, value] => self.parse_limit(name, number(value)? as usize)?,
            ["ipv6"] => self.ipv6 = true,
            ["isn", "wired", base] => self.bases.wired = number(base)?,
            ["isn", "air", base] => self.bases.air = number(base)?,
            _ => return Err(format!("`{line}` is none of: set, limit, ipv6, isn, +time action")),
        }
        Ok(())
    }

    fn parse_limit(&mut self, name: &str, value: usize) -> Result<(), String> {
        let limit = match name {
            "flows" => &mut self.limits.flows,
            "cache_bytes" => &mut self.limits.cache_bytes,
            "air_queue" => &mut self.limits.egress.air,
            "wired_queue" => &mut self.limits.egress.wired,
            _ => return Err(format!("`{name}`: flows, cache_bytes, air_queue or wired_queue")),
        };
        *limit = value;
        Ok(())
    }

    fn parse_action(&self, text: &str) -> Result<Action, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        Ok(match words[..] {
            ["silence"] => Action::Silence,
            ["block", name] => Action::Block(side(name)?),
            ["unblock", name] => Action::Unblock(side(name)?),
            ["event", name, count] => Action::Event(name.into(), number(count)?.into()),
            ["report", ref sentence @ ..] => Action::Report(sentence.join(" ")),
            ["timer", "none"] => Action::Timer(None),
            ["timer", ref why @ .., time] => {
                let time = time.strip_prefix('+').ok_or("a timer ends with `+seconds`")?;
                Action::Timer(Some((why.join(" "), seconds(time)?)))
            }
            [name, direction @ ("<" | ">"), ..] => {
                let side = side(name)?;
                let rest = text.split_once(direction).map_or("", |(_, rest)| rest).trim();
                if direction == "<" {
                    Action::Arrive(side, self.parse_content(rest, side)?)
                } else {
                    Action::Leave(side, self.parse_content(rest, side.opposite())?)
                }
            }
            _ => {
                return Err(format!(
                    "`{text}` is none of: SIDE < SEGMENT, SIDE > SEGMENT, silence, block, \
                     unblock, event, report, timer"
                ));
            }
        })
    }

    fn parse_content(&self, text: &str, sender: Port) -> Result<Content, String> {
        let (first, rest) = text.split_once(' ').unwrap_or((text, ""));
        let foreign = match first {
            "udp" => Foreign::Udp,
            "fragment" => Foreign::Fragment,
            "malformed" => Foreign::Malformed,
            "not-ip" => Foreign::NotIp,
            _ => {
                let pattern = Pattern::parse(text, sender, self.ipv6, self.bases)?;
                return Ok(Content::Tcp(pattern));
            }
        };
        let len = rest.trim().strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
        let len = number(len.ok_or(format!("`{first}` is followed by `(length)`"))?)?;
        Ok(Content::Foreign(foreign, len as u16))
    }
}

fn side(name: &str) -> Result<Port, String> {
    match name {
        "wired" => Ok(Port::Wired),
        "air" => Ok(Port::Air),
        _ => Err(format!("`{name}` is not a side: wired or air")),
    }
}

/// Decimal seconds, exactly: `0.04` and `.04` are 40 ms.
fn seconds(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a time in seconds with at most nine decimals");
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if fraction.len() > 9 || (whole.is_empty() && fraction.is_empty()) {
        return Err(wrong());
    }
    let digits = |text: &str| if text.is_empty() { Ok(0) } else { text.parse::<u64>() };
    let nanos = digits(&format!("{fraction:0<9}")).map_err(|_| wrong())?;
    Ok(Duration::from_secs(digits(whole).map_err(|_| wrong())?) + Duration::from_nanos(nanos))
}
