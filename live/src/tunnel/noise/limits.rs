//! Work that strangers can cause, bounded in each second.

use crate::rate::{Bucket, Rate};
use crate::tunnel::carrier::Address;
use airmend_proto::Instant;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Sources that are remembered at a time.
const SOURCES: usize = 1024;
/// The interval at which sources are forgotten that owe nothing.
const SWEEP: Duration = Duration::from_millis(250);

/// A bucket for each source: an IPv4 address, a /64 of IPv6 or a station.
#[derive(Debug, Default)]
pub(super) struct Sources {
    buckets: HashMap<[u8; 9], Bucket>,
    next_sweep: Instant,
}

impl Sources {
    /// Whether one more event of this source is within the rate. What comes from more sources than
    /// are remembered is not.
    pub(super) fn take(&mut self, rate: Rate, now: Instant, from: Address) -> bool {
        let source = source(from);
        if !self.buckets.contains_key(&source) && self.buckets.len() >= SOURCES {
            if self.next_sweep <= now {
                self.next_sweep = now + SWEEP;
                self.buckets.retain(|_, bucket| bucket.owes(now));
            }
            if self.buckets.len() >= SOURCES {
                return false;
            }
        }
        self.buckets.entry(source).or_default().take(rate, now)
    }
}

fn source(address: Address) -> [u8; 9] {
    let (family, bytes): (u8, &[u8]) = match &address {
        Address::Udp(SocketAddr::V4(address)) => (4, &address.ip().octets()),
        Address::Udp(SocketAddr::V6(address)) => (6, &address.ip().octets()[..8]),
        Address::Mac(address) => (0, address),
    };
    let mut source = [family; 9];
    source[1..=bytes.len()].copy_from_slice(bytes);
    source
}

/// The bytes of an address with its port, for cookies.
pub(super) fn address_bytes(address: Address) -> [u8; 19] {
    let mut all = [0; 19];
    match address {
        Address::Udp(address) => {
            let ip = match address.ip() {
                IpAddr::V4(ip) => ip.to_ipv6_mapped(),
                IpAddr::V6(ip) => ip,
            };
            all[..16].copy_from_slice(&ip.octets());
            all[16..18].copy_from_slice(&address.port().to_be_bytes());
        }
        Address::Mac(address) => {
            all[..6].copy_from_slice(&address);
            all[18] = 1;
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_gives_its_burst_and_then_its_rate() {
        let (rate, mut bucket) = (Rate::per_second(20, 5), Bucket::default());
        let mut taken = [0; 4];
        for millisecond in 0..4_000u64 {
            let now = Instant::from_millis(7_000 + millisecond);
            taken[millisecond as usize / 1_000] += u32::from(bucket.take(rate, now));
        }
        assert_eq!(taken, [24, 20, 20, 20]);
        assert!((0..5).all(|_| bucket.take(rate, Instant::from_millis(60_000))));
        assert!(!bucket.take(rate, Instant::from_millis(60_000)));
    }

    #[test]
    fn sources_have_buckets_of_their_own_and_are_forgotten() {
        let (rate, mut sources) = (Rate::per_second(20, 1), Sources::default());
        let at = |number: u32, port| Address::Udp((number.to_be_bytes(), port).into());
        let now = Instant::from_millis(1_000);
        for number in 0..2 * SOURCES as u32 {
            assert_eq!(sources.take(rate, now, at(number, 1)), number < SOURCES as u32);
        }
        assert!(!sources.take(rate, now, at(0, 2)), "another port is no other source");
        assert_eq!(sources.buckets.len(), SOURCES);
        let later = now + SWEEP;
        assert!(sources.take(rate, later, at(5_000, 1)), "the others owe nothing any more");
        assert_eq!(sources.buckets.len(), 1);
        let wide = |last: u16| Address::Udp(([0x2001, 0xdb8, 0, 0, 0, 0, 0, last], 1).into());
        assert!(sources.take(rate, later, wide(1)) && !sources.take(rate, later, wide(2)));
    }
}
