//! The packet error generator: drops packets between IP and the MAC of a station
//! [snoop-opnet §3.2].

use super::counters::LinkCounters;
use super::medium::{Medium, Output};
use crate::packet::Packet;
use crate::random::{Purpose, Stream};
use crate::time::Instant;
use crate::wire::tcp::{Flags, Segment};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// The rates at which packets from one station to another are dropped, 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DropRates {
    /// Above the MAC of the sending station: the packet takes no airtime.
    pub send: f64,
    /// Above the MAC of the receiving station: the packet has taken its airtime.
    pub receive: f64,
}

/// A medium with generators at its stations. Each packet is dropped with a uniform probability; SYN
/// and FIN always pass [snoop-opnet §3.4; S3-02].
pub struct PacketErrorGenerator {
    medium: Box<dyn Medium + Send>,
    ways: Vec<Way>,
}

/// A generator for the packets from one station to another.
pub struct Way {
    stations: [usize; 2],
    rates: DropRates,
    random: Stream,
    /// Packets dropped before and after the medium.
    dropped: [u64; 2],
}

impl Way {
    /// The generator of packets from `stations[0]` to `stations[1]`: way 0 or 1 of the pair with
    /// number `link` under `seed`.
    pub fn new(stations: [usize; 2], rates: DropRates, seed: u64, link: u32, way: u8) -> Self {
        let random = Stream::new(seed, link, way, Purpose::Generator);
        Self { stations, rates, random, dropped: [0; 2] }
    }

    fn drops(&mut self, rate: f64, packet: &Packet) -> bool {
        let is_spared = || {
            Segment::parse(packet)
                .is_ok_and(|segment| segment.flags.intersects(Flags::SYN.union(Flags::FIN)))
        };
        rate > 0.0 && !is_spared() && self.random.happens(rate)
    }
}

impl PacketErrorGenerator {
    /// The medium with these generators.
    pub fn new(medium: Box<dyn Medium + Send>, ways: Vec<Way>) -> Self {
        Self { medium, ways }
    }

    fn way(&mut self, from: usize, to: usize) -> Option<&mut Way> {
        self.ways.iter_mut().find(|way| way.stations == [from, to])
    }
}

impl Medium for PacketErrorGenerator {
    fn can_send(&self, now: Instant, from: usize) -> bool {
        self.medium.can_send(now, from)
    }

    fn free_at(&self, from: usize) -> Option<Instant> {
        self.medium.free_at(from)
    }

    fn send(&mut self, now: Instant, from: usize, to: usize, packet: Packet) -> bool {
        if let Some(way) = self.way(from, to)
            && way.drops(way.rates.send, &packet)
        {
            way.dropped[0] += 1;
            return true;
        }
        self.medium.send(now, from, to, packet)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.medium.poll_timeout()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.medium.handle_timeout(now);
    }

    fn poll_output(&mut self) -> Option<Output> {
        loop {
            let output = self.medium.poll_output()?;
            if let Output::Delivery { from, to, packet } = &output
                && let Some(way) = self.way(*from, *to)
                && way.drops(way.rates.receive, packet)
            {
                way.dropped[1] += 1;
                continue;
            }
            return Some(output);
        }
    }

    /// A packet that is dropped before the medium counts as a lost frame without bytes.
    fn counters(&self, from: usize, to: usize) -> LinkCounters {
        let mut counters = self.medium.counters(from, to);
        if let Some(Way { dropped: [before, after], .. }) =
            self.ways.iter().find(|way| way.stations == [from, to])
        {
            counters.frames += before;
            counters.lost += before + after;
        }
        counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::{ErrorModel, FullDuplex, LinkParams, Pair};
    use crate::packet::LinkType;
    use crate::wire::build::SegmentBuilder;
    use alloc::vec;
    use core::time::Duration;

    const PARAMS: LinkParams = LinkParams {
        rate_bps: 1_000_000,
        delay: Duration::ZERO,
        queue_frames: 10_000,
        lookahead: Duration::ZERO,
    };

    /// Sends so many packets with these flags; returns how many arrive, and the counters.
    fn arrive(rates: DropRates, flags: Flags, packets: u32) -> (usize, LinkCounters) {
        let pair = Pair::new([0, 1], [Duration::ZERO; 2], [ErrorModel::None; 2], 1, 0);
        let medium = FullDuplex::new([PARAMS; 2], vec![pair]);
        let way = Way::new([0, 1], rates, 1, 0, 0);
        let mut medium = PacketErrorGenerator::new(Box::new(medium), vec![way]);
        for _ in 0..packets {
            let ends = (([10, 0, 0, 1], 80), ([10, 0, 1, 2], 5000));
            let packet = SegmentBuilder::new(ends.0, ends.1).flags(flags).build(LinkType::Ip);
            assert!(medium.send(Instant::ZERO, 0, 1, packet));
        }
        medium.handle_timeout(Instant::from_millis(100_000));
        (core::iter::from_fn(|| medium.poll_output()).count(), medium.counters(0, 1))
    }

    #[test]
    fn packets_are_dropped_at_their_rates_and_where_they_are_dropped_shows_in_the_bytes() {
        let (arrived, sent) = arrive(DropRates { send: 0.3, receive: 0.0 }, Flags::ACK, 4000);
        assert!((2700..2900).contains(&arrived), "{arrived}");
        assert_eq!((sent.frames, sent.lost), (4000, 4000 - arrived as u64));
        assert_eq!(sent.bytes, 40 * arrived as u64);
        let (arrived, sent) = arrive(DropRates { send: 0.0, receive: 0.3 }, Flags::ACK, 4000);
        assert!((2700..2900).contains(&arrived), "{arrived}");
        assert_eq!((sent.frames, sent.lost), (4000, 4000 - arrived as u64));
        assert_eq!(sent.bytes, 40 * 4000);
    }

    #[test]
    fn syn_and_fin_pass() {
        for flags in [Flags::SYN, Flags::SYN.union(Flags::ACK), Flags::FIN.union(Flags::ACK)] {
            assert_eq!(arrive(DropRates { send: 1.0, receive: 1.0 }, flags, 100).0, 100);
        }
        assert_eq!(arrive(DropRates { send: 1.0, receive: 0.0 }, Flags::ACK, 100).0, 0);
    }
}
