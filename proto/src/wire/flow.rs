//! The ends of a connection, and the key under which an agent finds a flow.

use crate::agent::Port;
use crate::wire::tcp::Segment;
use core::fmt;
use core::hash::{Hash, Hasher};
use core::net::{IpAddr, Ipv6Addr, SocketAddr};

/// One end of a connection. IPv4 addresses are held IPv4-mapped (RFC 4291 §2.5.5.2), so that a
/// flow key is plain bytes that hash and compare fast.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Endpoint {
    /// The address, IPv6 or IPv4-mapped.
    pub address: [u8; 16],
    /// The port.
    pub port: u16,
}

impl Endpoint {
    /// The address, un-mapped if it is an IPv4 one.
    pub fn ip(self) -> IpAddr {
        Ipv6Addr::from(self.address).to_canonical()
    }
}

impl<A: Into<IpAddr>> From<(A, u16)> for Endpoint {
    fn from((address, port): (A, u16)) -> Self {
        let address = match address.into() {
            IpAddr::V4(address) => address.to_ipv6_mapped(),
            IpAddr::V6(address) => address,
        };
        Self { address: address.octets(), port }
    }
}

impl From<SocketAddr> for Endpoint {
    fn from(address: SocketAddr) -> Self {
        Self::from((address.ip(), address.port()))
    }
}

/// `10.0.0.1:80` or `[2001:db8::1]:80`.
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        SocketAddr::new(self.ip(), self.port).fmt(f)
    }
}

/// A connection as a gateway sees it, the same for both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowKey {
    /// The end on the wired side: the fixed host.
    pub wired: Endpoint,
    /// The end on the air side: the mobile host.
    pub air: Endpoint,
}

impl FlowKey {
    /// The flow of a segment that arrived from `from`.
    pub fn of(segment: &Segment, from: Port) -> Self {
        match from {
            Port::Wired => Self { wired: segment.source, air: segment.destination },
            Port::Air => Self { wired: segment.destination, air: segment.source },
        }
    }
}

/// Three writes of plain numbers; the derived code would also hash lengths.
impl Hash for FlowKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u128(u128::from_be_bytes(self.wired.address));
        state.write_u128(u128::from_be_bytes(self.air.address));
        state.write_u32(u32::from(self.wired.port) << 16 | u32::from(self.air.port));
    }
}

/// The wired end first: `10.0.0.1:80 <-> 10.0.1.2:5000`.
impl fmt::Display for FlowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} <-> {}", self.wired, self.air)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::build::SegmentBuilder;
    use alloc::string::ToString;

    #[test]
    fn endpoints_print_as_people_write_them() {
        let four: SocketAddr = "10.0.0.1:80".parse().unwrap();
        let six: SocketAddr = "[2001:db8::1]:443".parse().unwrap();
        assert_eq!(Endpoint::from(four).to_string(), "10.0.0.1:80");
        assert_eq!(Endpoint::from(six).to_string(), "[2001:db8::1]:443");
        assert_eq!(Endpoint::from(([10, 0, 0, 1], 80)), Endpoint::from(four));
    }

    #[test]
    fn both_directions_have_one_key() {
        let (fixed, mobile) = (([10, 0, 0, 1], 80), ([10, 0, 1, 2], 5000));
        let parse = |builder: SegmentBuilder<'_>| {
            Segment::parse(&builder.build(crate::LinkType::Ip)).unwrap()
        };
        let down = FlowKey::of(&parse(SegmentBuilder::new(fixed, mobile)), Port::Wired);
        let up = FlowKey::of(&parse(SegmentBuilder::new(mobile, fixed)), Port::Air);
        assert_eq!(down, up);
        assert_eq!(down.to_string(), "10.0.0.1:80 <-> 10.0.1.2:5000");
        assert_ne!(down, FlowKey::of(&parse(SegmentBuilder::new(mobile, fixed)), Port::Wired));
    }
}
