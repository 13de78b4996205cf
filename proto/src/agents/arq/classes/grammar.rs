//! Class rules as text: `PROTOCOL[:PORT][@DSCP][>BYTES]=CLASS`, separated by commas, or a word that
//! stands for several.

use super::{Class, ESP, Rule, Rules, UDP};
use crate::units;
use crate::wire::ip::TCP;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

/// The most rules of a link.
const MAX_RULES: usize = 64;
const NAMED: [(&str, u8); 5] =
    [("icmp", 1), ("tcp", TCP), ("udp", UDP), ("esp", ESP), ("icmpv6", 58)];

impl fmt::Display for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, rule) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{rule}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = NAMED.iter().find(|(_, number)| Some(*number) == self.protocol);
        match (named, self.protocol) {
            (Some((name, _)), _) => f.write_str(name)?,
            (None, Some(number)) => write!(f, "{number}")?,
            (None, None) => f.write_str("any")?,
        }
        if let Some(port) = self.port {
            write!(f, ":{port}")?;
        }
        if let Some(dscp) = self.dscp {
            write!(f, "@{dscp}")?;
        }
        if let Some(bytes) = self.longer_than {
            write!(f, ">{bytes}")?;
        }
        match self.class {
            Class::Reliable => f.write_str("=reliable"),
            Class::Unreliable => f.write_str("=unreliable"),
            Class::Bounded(time) => write!(f, "={time:?}"),
        }
    }
}

impl FromStr for Rules {
    type Err = String;

    /// Reads rules; an empty text has none. `default` stands for the default rules, `encrypted` for
    /// those of [`Rules::encrypted`].
    fn from_str(text: &str) -> Result<Self, String> {
        let rules = text.split(',').map(str::trim).filter(|rule| !rule.is_empty());
        let rules: Vec<Vec<Rule>> = rules
            .map(|rule| match rule {
                "default" => Ok(Self::default().0),
                "encrypted" => Ok(Self::encrypted().0),
                _ => rule.parse().map(|rule| vec![rule]),
            })
            .collect::<Result<_, _>>()?;
        let rules = rules.concat();
        if rules.len() > MAX_RULES {
            return Err(format!("{} class rules are too many: at most {MAX_RULES}", rules.len()));
        }
        Ok(Self(rules))
    }
}

impl FromStr for Rule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |what: &str| format!("class rule {text:?} {what}, such as udp:443>0=100ms");
        let (packets, class) = text
            .split_once('=')
            .ok_or_else(|| wrong("must be default, encrypted or PACKETS=CLASS"))?;
        let (packets, bytes) = split_at(packets, '>');
        let (packets, dscp) = split_at(packets, '@');
        let (protocol, port) = split_at(packets, ':');
        let longer_than = bytes.map(str::parse).transpose();
        let longer_than = longer_than.map_err(|_| wrong("needs a whole number after >"))?;
        let dscp = dscp.map(str::parse).transpose();
        let dscp = dscp.map_err(|_| wrong("needs a DSCP after @, a name like ef or 0 to 63"))?;
        let port = port.map(str::parse).transpose();
        let port = port.map_err(|_| wrong("needs a port from 0 to 65535"))?;
        let named = NAMED.iter().find(|(name, _)| *name == protocol).map(|(_, number)| *number);
        let protocol = match (named.or_else(|| protocol.parse().ok()), protocol) {
            (None, "any") => None,
            (None, "default" | "encrypted") => {
                return Err(wrong("gives a class to a word that stands for rules with their own"));
            }
            (None, _) => {
                return Err(wrong("must begin with tcp, udp, icmp, icmpv6, esp, any or a number"));
            }
            (known, _) => known,
        };
        if port.is_some() && !matches!(protocol, Some(TCP | UDP)) {
            return Err(wrong("has a port, so its protocol must be tcp or udp"));
        }
        let class = match class.trim() {
            "reliable" => Class::Reliable,
            "unreliable" => Class::Unreliable,
            time => match units::parse_duration(time) {
                Ok(time) if !time.is_zero() => Class::Bounded(time),
                _ => return Err(wrong("needs reliable, unreliable or a time after =")),
            },
        };
        Ok(Self { protocol, port, dscp, longer_than, class })
    }
}

/// What stands before and behind the first of this character.
fn split_at(text: &str, at: char) -> (&str, Option<&str>) {
    match text.split_once(at) {
        Some((before, behind)) => (before.trim(), Some(behind.trim())),
        None => (text.trim(), None),
    }
}
