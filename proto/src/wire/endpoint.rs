//! The ends of a connection.

use core::fmt;
use core::net::{IpAddr, Ipv6Addr, SocketAddr};

/// One end of a connection. IPv4 addresses are held IPv4-mapped (RFC 4291 §2.5.5.2), so that a
/// flow key is plain bytes that hash and compare fast.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn endpoints_print_as_people_write_them() {
        let four: SocketAddr = "10.0.0.1:80".parse().unwrap();
        let six: SocketAddr = "[2001:db8::1]:443".parse().unwrap();
        assert_eq!(Endpoint::from(four).to_string(), "10.0.0.1:80");
        assert_eq!(Endpoint::from(six).to_string(), "[2001:db8::1]:443");
        assert_eq!(Endpoint::from(([10, 0, 0, 1], 80)), Endpoint::from(four));
    }
}
