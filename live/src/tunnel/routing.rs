//! Which peer has an address: the one with the longest prefix that matches it. What comes from a
//! peer must have an address of that peer, too (WireGuard's cryptokey routing).

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr};

/// A network, as an address and the length of its prefix.
pub type Network = (IpAddr, u8);

/// The networks of all peers, by the places of these.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Routing {
    /// The longest prefix first.
    by_prefix: BTreeMap<Reverse<u8>, HashMap<IpAddr, usize>>,
    /// The only peer, which has every address.
    only: Option<usize>,
}

impl Routing {
    /// All addresses are this peer's.
    pub(super) fn everything(place: usize) -> Self {
        Self { only: Some(place), ..Self::default() }
    }

    /// The network is the peer's in this place; of two peers with one network the later one's.
    pub(super) fn add(&mut self, (address, prefix): Network, place: usize) {
        let networks = self.by_prefix.entry(Reverse(prefix)).or_default();
        networks.insert(masked(address, prefix), place);
    }

    /// Whether one peer has everything, so that no packet needs to be read.
    pub(super) fn only(&self) -> Option<usize> {
        self.only
    }

    /// The place of the peer that has this address, IPv6 or IPv4-mapped.
    pub(super) fn place(&self, address: [u8; 16]) -> Option<usize> {
        self.place_of(Ipv6Addr::from(address).to_canonical())
    }

    /// The place of the peer that has this address.
    pub(super) fn place_of(&self, address: IpAddr) -> Option<usize> {
        let mut found = self.by_prefix.iter().filter_map(|(Reverse(prefix), networks)| {
            let is_too_long = address.is_ipv4() && *prefix > 32;
            if is_too_long { None } else { networks.get(&masked(address, *prefix)).copied() }
        });
        self.only.or_else(|| found.next())
    }
}

/// The address without the bits behind a prefix.
pub fn masked(address: IpAddr, prefix: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(prefix).min(32)).unwrap_or(0);
            IpAddr::V4((u32::from(address) & mask).into())
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(prefix).min(128)).unwrap_or(0);
            IpAddr::V6((u128::from(address) & mask).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mapped(address: IpAddr) -> [u8; 16] {
        match address {
            IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
            IpAddr::V6(address) => address.octets(),
        }
    }

    fn parse(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn the_longest_prefix_decides() {
        let mut routing = Routing::default();
        let networks = [("10.0.0.0", 8), ("10.1.0.0", 16), ("10.1.2.3", 32), ("fd00::", 8)];
        for (place, (address, prefix)) in networks.into_iter().enumerate() {
            routing.add((parse(address), prefix), place);
        }
        for (address, place) in [
            ("10.9.9.9", Some(0)),
            ("10.1.9.9", Some(1)),
            ("10.1.2.3", Some(2)),
            ("10.1.2.4", Some(1)),
            ("11.0.0.1", None),
            ("fd99::1", Some(3)),
            ("2001:db8::1", None),
            ("::a01:203", None),
        ] {
            assert_eq!(routing.place(mapped(parse(address))), place, "{address}");
        }
        assert_eq!(Routing::everything(4).place(mapped(parse("11.0.0.1"))), Some(4));
    }

    proptest! {
        /// As a walk over all networks finds it.
        #[test]
        fn agrees_with_a_list(
            networks in prop::collection::vec((any::<u32>(), 0u8..=32), 0..40),
            near in any::<prop::sample::Index>(),
            flip in 0u32..32,
        ) {
            let v4 = |bits: u32| IpAddr::V4(bits.into());
            let mut routing = Routing::default();
            for (place, (bits, prefix)) in networks.iter().enumerate() {
                routing.add((v4(*bits), *prefix), place);
            }
            let bits = if networks.is_empty() { 7 } else { near.get(&networks).0 ^ 1 << flip };
            let matching = networks.iter().enumerate().filter(|(_, (network, prefix))| {
                masked(v4(*network), *prefix) == masked(v4(bits), *prefix)
            });
            let expected = matching.max_by_key(|(place, (_, prefix))| (*prefix, *place));
            prop_assert_eq!(routing.place(mapped(v4(bits))), expected.map(|(place, _)| place));
        }
    }
}
