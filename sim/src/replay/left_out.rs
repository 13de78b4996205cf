//! Packets of a capture that a replay leaves out, by reason.

use super::encapsulation::Encapsulation;
use super::unread::Unread;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;

/// Reasons in a sentence at most.
const MOST_REASONS: usize = 6;

/// Why a packet of a capture takes no part in its replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// Its link type is unknown (`LINKTYPE_` of libpcap).
    LinkType(u16),
    /// The file describes no such interface.
    NoInterface,
    /// The file does not say when it was captured.
    NoTime,
    /// It was captured a second time within a millisecond.
    Copy,
    /// Its direction of the connection is taken from another interface, or from the other way
    /// through this one.
    Again,
    /// Neither of its hosts is a mobile host.
    OtherHosts,
    /// Its TCP header cannot be read, within what.
    Unread(Option<Encapsulation>, Unread),
}

/// Numbers of packets that were left out, by reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftOut(BTreeMap<Reason, u64>);

impl LeftOut {
    /// Counts a packet.
    pub(super) fn count(&mut self, reason: Reason) {
        *self.0.entry(reason).or_default() += 1;
    }

    /// Each reason with its number of packets.
    pub fn iter(&self) -> impl Iterator<Item = (Reason, u64)> + '_ {
        self.0.iter().map(|(reason, packets)| (*reason, *packets))
    }

    /// The reasons with most packets, those first, and the number of packets of all others: what
    /// a sentence holds.
    pub fn commonest(&self) -> (Vec<(Reason, u64)>, u64) {
        let mut most: Vec<_> = self.iter().collect();
        most.sort_by_key(|(_, packets)| Reverse(*packets));
        let others = most.split_off(MOST_REASONS.min(most.len()));
        (most, others.iter().map(|(_, packets)| packets).sum())
    }

    /// The bytes of each packet that should have been captured, where headers were cut; more for
    /// tunnels.
    pub fn snap_length(&self) -> Option<u32> {
        let short = self.iter().filter_map(|(reason, _)| match reason {
            Reason::Unread(within, Unread::Truncated) => Some(within.map_or(128, |_| 256)),
            _ => None,
        });
        short.max()
    }

    /// Whether no packet was left out.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Reason {
    /// The name of the reason in JSON lines; stable.
    pub fn name(self) -> String {
        match self {
            Self::LinkType(number) => format!("link_type_{number}"),
            Self::NoInterface => "no_interface".to_owned(),
            Self::NoTime => "no_time".to_owned(),
            Self::Copy => "copies".to_owned(),
            Self::Again => "seen_again".to_owned(),
            Self::OtherHosts => "other_hosts".to_owned(),
            Self::Unread(None, unread) => unread.name().to_owned(),
            Self::Unread(Some(within), unread) => format!("{}_{}", within.name(), unread.name()),
        }
    }
}

/// The commonest link types that are not read.
fn link_name(number: u16) -> Option<&'static str> {
    Some(match number {
        105 | 119 | 127 | 163 | 192 => "802.11 in monitor mode",
        187 | 201 | 251 | 256 => "Bluetooth",
        189 | 220 | 249 => "USB",
        195 | 215 | 230 => "IEEE 802.15.4",
        227 => "CAN",
        239 => "netfilter's log",
        253 => "netlink",
        _ => return None,
    })
}

/// `12 packets not TCP, 1 packet without a time`: the commonest reasons.
impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (reason, packets)) in self.commonest().0.into_iter().enumerate() {
            let separator = if at == 0 { "" } else { ", " };
            let plural = if packets == 1 { "" } else { "s" };
            write!(f, "{separator}{packets} packet{plural} {reason}")?;
        }
        Ok(())
    }
}

/// What follows a number of packets.
impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LinkType(number) => {
                write!(f, "of link type {number}")?;
                link_name(*number).map_or(Ok(()), |name| write!(f, " ({name})"))
            }
            Self::NoInterface => f.write_str("of an interface that the file does not describe"),
            Self::NoTime => f.write_str("without a time"),
            Self::Copy => f.write_str("captured twice at once, as by mirror ports"),
            Self::Again => f.write_str("seen again at another interface"),
            Self::OtherHosts => f.write_str("of other hosts"),
            Self::Unread(None, unread) => unread.fmt(f),
            Self::Unread(Some(within), unread) => write!(f, "in {within} {unread}"),
        }
    }
}
