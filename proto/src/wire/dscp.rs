//! Differentiated services codepoints (RFC 2474) and their names in IANA's registry.

use core::fmt;
use core::str::FromStr;

/// The first six bits of the traffic class of an IP packet, from 0 to 63 (RFC 2474 §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Dscp(u8);

impl Dscp {
    /// Expedited forwarding: voice, mostly (RFC 3246).
    pub const EF: Self = Self(46);
    /// Voice that was admitted before it began (RFC 5865).
    pub const VOICE_ADMIT: Self = Self(44);

    /// The codepoint in a traffic class, whose last two bits are ECN's.
    pub fn of_traffic_class(traffic_class: u8) -> Self {
        Self(traffic_class >> 2)
    }

    /// The number.
    pub fn number(self) -> u8 {
        self.0
    }
}

/// A text is no codepoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoDscp;

impl FromStr for Dscp {
    type Err = NoDscp;

    /// Reads a name, such as `ef` or `AF41`, or a number from 0 to 63.
    fn from_str(text: &str) -> Result<Self, NoDscp> {
        let named = NAMES.iter().find(|(name, _)| text.eq_ignore_ascii_case(name));
        match named.map(|(_, number)| *number).or_else(|| text.parse().ok()) {
            Some(number @ 0..=63) => Ok(Self(number)),
            _ => Err(NoDscp),
        }
    }
}

impl fmt::Display for Dscp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match NAMES.iter().find(|(_, number)| *number == self.0) {
            Some((name, _)) => f.write_str(name),
            None => self.0.fmt(f),
        }
    }
}

/// The names of the registry (RFC 2474 §4.2, RFC 2597 §6, RFC 3246, RFC 5865, RFC 8622); then
/// those that are also in use.
const NAMES: [(&str, u8); 25] = [
    ("cs0", 0),
    ("le", 1),
    ("cs1", 8),
    ("af11", 10),
    ("af12", 12),
    ("af13", 14),
    ("cs2", 16),
    ("af21", 18),
    ("af22", 20),
    ("af23", 22),
    ("cs3", 24),
    ("af31", 26),
    ("af32", 28),
    ("af33", 30),
    ("cs4", 32),
    ("af41", 34),
    ("af42", 36),
    ("af43", 38),
    ("cs5", 40),
    ("voice-admit", 44),
    ("ef", 46),
    ("cs6", 48),
    ("cs7", 56),
    ("va", 44),
    ("df", 0),
];

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn every_codepoint_is_read_back() {
        for number in 0..64 {
            let dscp = Dscp::of_traffic_class(number << 2 | 0b11);
            assert_eq!(dscp.number(), number);
            assert_eq!(dscp.to_string().parse(), Ok(dscp));
            assert_eq!(number.to_string().parse(), Ok(dscp));
        }
        for text in ["64", "-1", "", "ef1", "af51"] {
            assert_eq!(text.parse::<Dscp>(), Err(NoDscp), "{text}");
        }
    }

    #[test]
    fn the_names_are_those_of_the_documents() {
        let number = |name: &str| name.parse::<Dscp>().unwrap().number();
        // RFC 2597 §6: AFxy is 8x + 2y; RFC 2474 §4.2.2: CSx is 8x.
        for x in 1..5u8 {
            for y in 1..4u8 {
                assert_eq!(number(&alloc::format!("AF{x}{y}")), 8 * x + 2 * y);
            }
        }
        (0..8u8).for_each(|x| assert_eq!(number(&alloc::format!("cs{x}")), 8 * x));
        assert_eq!(["EF", "VA", "LE", "DF"].map(number), [46, 44, 1, 0]);
        assert_eq!([Dscp::EF, Dscp::VOICE_ADMIT].map(Dscp::number), [46, 44]);
    }
}
