//! Which flows are mended: prefixes, ports and DSCP of a flow, decided once when it is first seen.

use airmend_proto::wire::dscp::Dscp;
use airmend_proto::wire::flow::{Endpoint, FlowKey};
use ipnet::IpNet;
use std::fmt;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// More rules than a gateway needs; each costs a comparison, once a flow.
pub const MAX_RULES: usize = 256;

/// All flows, or those that rules choose.
///
/// ```
/// use airmend_live::gateway::rules::FlowRules;
///
/// let rules = FlowRules::parse(["mobile:10.1.0.0/16,port:443", "!fixed:192.0.2.7"]).unwrap();
/// assert_eq!(rules.to_string(), "mobile:10.1.0.0/16,port:443 !fixed:192.0.2.7");
/// assert!(FlowRules::default().is_all() && !rules.is_all());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowRules(Vec<FlowRule>);

impl FlowRules {
    /// These rules: a flow is mended that one of them chooses and none excludes. If none chooses
    /// but some exclude, all others are mended; without any rule, all are.
    pub fn new(rules: Vec<FlowRule>) -> Result<Self, String> {
        match rules.len() {
            ..=MAX_RULES => Ok(Self(rules)),
            count => Err(format!("{count} flow rules are too many; give at most {MAX_RULES}")),
        }
    }

    /// Parses rules from text, one rule each.
    pub fn parse<'a>(rules: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        Self::new(rules.into_iter().map(str::parse).collect::<Result<_, _>>()?)
    }

    /// Whether a flow whose first packet bears this DSCP is mended.
    pub fn chooses(&self, key: &FlowKey, dscp: u8) -> bool {
        let matching = |excludes: bool| {
            self.0.iter().any(|rule| rule.excludes == excludes && rule.matches(key, dscp))
        };
        let chooses_some = self.0.iter().any(|rule| !rule.excludes);
        (matching(false) || !chooses_some) && !matching(true)
    }

    /// Whether every flow is mended.
    pub fn is_all(&self) -> bool {
        self.0.is_empty()
    }
}

/// The rules with a blank between them, or `all`.
impl fmt::Display for FlowRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_all() {
            return f.write_str("all");
        }
        for (index, rule) in self.0.iter().enumerate() {
            let blank = if index == 0 { "" } else { " " };
            write!(f, "{blank}{rule}")?;
        }
        Ok(())
    }
}

/// One rule: `[!]CONDITION[,CONDITION…]`, all of which must hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowRule {
    excludes: bool,
    conditions: Vec<Condition>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Condition {
    /// `10.0.0.0/8`, `mobile:10.0.0.0/8` or `fixed:2001:db8::/32`.
    Prefix(End, IpNet),
    /// `port:443` or `port:8000-8999`: of either end.
    Port(RangeInclusive<u16>),
    /// `dscp:af41` or `dscp:34`.
    Dscp(Dscp),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Either,
    Mobile,
    Fixed,
}

impl FlowRule {
    fn matches(&self, key: &FlowKey, dscp: u8) -> bool {
        self.conditions.iter().all(|condition| condition.holds(key, dscp))
    }
}

impl Condition {
    fn holds(&self, key: &FlowKey, dscp: u8) -> bool {
        let lies_in = |end: Endpoint, prefix: &IpNet| prefix.contains(&end.ip());
        match self {
            Self::Prefix(End::Either, prefix) => {
                lies_in(key.air, prefix) || lies_in(key.wired, prefix)
            }
            Self::Prefix(End::Mobile, prefix) => lies_in(key.air, prefix),
            Self::Prefix(End::Fixed, prefix) => lies_in(key.wired, prefix),
            Self::Port(ports) => ports.contains(&key.air.port) || ports.contains(&key.wired.port),
            Self::Dscp(codepoint) => codepoint.number() == dscp,
        }
    }
}

impl FromStr for FlowRule {
    type Err = String;

    /// Parses one rule; the error is a sentence that names a valid form.
    fn from_str(text: &str) -> Result<Self, String> {
        let (excludes, conditions) = match text.trim().strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let conditions = conditions.split(',').map(|condition| condition.trim().parse());
        let conditions = conditions.collect::<Result<_, String>>();
        let conditions = conditions.map_err(|why| format!("flow rule {text:?}: {why}"))?;
        Ok(Self { excludes, conditions })
    }
}

impl FromStr for Condition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("port", ports)) => parse_ports(ports).map(Self::Port),
            Some(("dscp", codepoint)) => parse_dscp(codepoint).map(Self::Dscp),
            Some(("mobile", rest)) => Ok(Self::Prefix(End::Mobile, parse_prefix(rest)?)),
            Some(("fixed", rest)) => Ok(Self::Prefix(End::Fixed, parse_prefix(rest)?)),
            _ => Ok(Self::Prefix(End::Either, parse_prefix(text)?)),
        }
    }
}

fn parse_prefix(text: &str) -> Result<IpNet, String> {
    let alone = || text.parse::<IpAddr>().ok().map(IpNet::from);
    let Some(prefix) = text.parse::<IpNet>().ok().or_else(alone) else {
        return Err(format!(
            "{text:?} is no condition; write a prefix such as 10.0.0.0/8, mobile:10.1.0.0/16 or \
             fixed:2001:db8::/32, or port:443, port:8000-8999 or dscp:af41"
        ));
    };
    if prefix != prefix.trunc() {
        let (right, host) = (prefix.trunc(), prefix.addr());
        return Err(format!("{text:?} has bits beyond its length; write {right}, or {host}"));
    }
    Ok(prefix)
}

fn parse_ports(text: &str) -> Result<RangeInclusive<u16>, String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (first.parse::<u16>(), last.parse::<u16>()) {
        (Ok(first), Ok(last)) if first <= last => Ok(first..=last),
        _ => Err(format!("{text:?} is no port; write port:443 or port:8000-8999")),
    }
}

fn parse_dscp(text: &str) -> Result<Dscp, String> {
    let sentence = || format!("{text:?} is no DSCP; write a name such as dscp:af41, or 0 to 63");
    text.parse().map_err(|_| sentence())
}

impl fmt::Display for FlowRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.excludes { "!" } else { "" })?;
        for (index, condition) in self.conditions.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{condition}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prefix(end, prefix) => {
                f.write_str(match end {
                    End::Either => "",
                    End::Mobile => "mobile:",
                    End::Fixed => "fixed:",
                })?;
                match prefix.prefix_len() == prefix.max_prefix_len() {
                    true => prefix.addr().fmt(f),
                    false => prefix.fmt(f),
                }
            }
            Self::Port(ports) if ports.start() == ports.end() => {
                write!(f, "port:{}", ports.start())
            }
            Self::Port(ports) => write!(f, "port:{}-{}", ports.start(), ports.end()),
            Self::Dscp(codepoint) => write!(f, "dscp:{codepoint}"),
        }
    }
}

#[cfg(test)]
mod tests;
