//! Prefixes of addresses, which name the mobile hosts of a capture.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// An address, or all that begin like it: `10.0.0.2`, `10.0.0.0/24`, `2001:db8::/32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    address: IpAddr,
    length: u8,
}

impl Prefix {
    /// Whether an address begins like this one.
    pub fn contains(&self, address: IpAddr) -> bool {
        let (ours, theirs, width) = match (self.address, address) {
            (IpAddr::V4(a), IpAddr::V4(b)) => {
                (u128::from(a.to_bits()), u128::from(b.to_bits()), 32)
            }
            (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits(), b.to_bits(), 128),
            _ => return false,
        };
        (ours ^ theirs).checked_shr(width - u32::from(self.length)).unwrap_or(0) == 0
    }
}

impl FromStr for Prefix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (address, length) = text.split_once('/').map_or((text, None), |(a, l)| (a, Some(l)));
        let parsed = address.parse::<IpAddr>().ok().and_then(|address| {
            let width = if address.is_ipv4() { 32 } else { 128 };
            let length = length.map_or(Some(width), |length| length.parse().ok())?;
            (length <= width).then_some(Self { address, length })
        });
        parsed.ok_or_else(|| {
            format!("{text:?} is no address; write 10.0.0.2, 10.0.0.0/24 or 2001:db8::/32")
        })
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}
