//! A world of two endpoints and a pipe that loses, delays, reorders and duplicates.

use airmend_proto::tcp::{Endpoint, Profile};
use airmend_proto::wire::seq::SeqNumber;
use airmend_proto::wire::tcp::Segment;
use airmend_proto::{Instant, Packet};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::time::Duration;

/// What the pipe does with the frame of this number: after which delays copies arrive.
pub(crate) type Fate<'a> = &'a mut dyn FnMut(u64, &Packet) -> Vec<Duration>;

/// One end and what its application wants.
pub(crate) struct Host {
    pub(crate) endpoint: Endpoint,
    /// Bytes still to be written.
    pub(crate) to_write: u64,
    /// Behind the payload that reached the host without a gap, relative to the peer's ISN.
    unbroken: u32,
    /// What reached it beyond.
    beyond: BTreeSet<(u32, u32)>,
}

/// The whole world. Host 0 connects, host 1 listens; both close when they have written all.
pub(crate) struct World {
    pub(crate) now: Instant,
    pub(crate) hosts: [Host; 2],
    frames: u64,
    flying: BinaryHeap<Reverse<(Instant, u64, usize)>>,
    packets: Vec<Option<Packet>>,
    isn: [SeqNumber; 2],
}

impl World {
    pub(crate) fn new(profiles: [Profile; 2], isn: [u32; 2], bytes: [u64; 2]) -> Self {
        let isn = isn.map(SeqNumber);
        let ends = [([10, 0, 0, 1], 5000).into(), ([10, 0, 1, 2], 80).into()];
        let endpoints = [
            Endpoint::connect(profiles[0], ends[0], ends[1], isn[0]),
            Endpoint::listen(profiles[1], ends[1], isn[1]),
        ];
        let mut bytes = bytes.into_iter();
        let hosts = endpoints.map(|endpoint| Host {
            endpoint,
            to_write: bytes.next().unwrap(),
            unbroken: 1,
            beyond: BTreeSet::new(),
        });
        let (flying, packets) = (BinaryHeap::new(), Vec::new());
        Self { now: Instant::ZERO, hosts, frames: 0, flying, packets, isn }
    }

    /// Runs until nothing more will happen, or until `limit`. Checks at every step that each host
    /// delivers exactly the unbroken beginning of what arrived, or with timestamps no more.
    pub(crate) fn run(&mut self, limit: Instant, fate: Fate<'_>) {
        loop {
            for host in 0..2 {
                self.serve(host, fate);
            }
            let arrival = self.flying.peek().map(|Reverse((at, ..))| *at);
            let timers = self.hosts.iter().filter_map(|host| host.endpoint.poll_timeout());
            let Some(next) = timers.map(|deadline| deadline.at).chain(arrival).min() else {
                return;
            };
            if next > limit {
                return;
            }
            assert!(next >= self.now, "a deadline in the past");
            self.now = next;
            while let Some(Reverse((at, frame, to))) = self.flying.peek().copied() {
                if at > self.now {
                    break;
                }
                self.flying.pop();
                let packet = self.packets[frame as usize].take().unwrap();
                self.arrive(to, &packet);
                self.serve(to, fate);
            }
            for host in &mut self.hosts {
                host.endpoint.handle_timeout(self.now);
            }
        }
    }

    /// Lets the application write and the packets leave.
    fn serve(&mut self, host: usize, fate: Fate<'_>) {
        let Host { endpoint, to_write, .. } = &mut self.hosts[host];
        *to_write -= endpoint.write(*to_write);
        if *to_write == 0 {
            endpoint.close();
        }
        while let Some(packet) = endpoint.poll_transmit(self.now) {
            for delay in fate(self.frames, &packet) {
                let copy = self.packets.len() as u64;
                self.packets.push(Some(packet.clone()));
                self.flying.push(Reverse((self.now + delay, copy, 1 - host)));
            }
            self.frames += 1;
        }
    }

    fn arrive(&mut self, to: usize, packet: &Packet) {
        let segment = Segment::parse(packet).unwrap();
        let start = segment.seq.0.wrapping_sub(self.isn[1 - to].0).max(1);
        let host = &mut self.hosts[to];
        host.endpoint.handle_packet(self.now, packet);
        host.arrived(start, segment.payload_len);
        let (delivered, arrived) = (host.endpoint.delivered(), u64::from(host.unbroken - 1));
        // PAWS refuses what is older than a retransmission that filled a gap (RFC 7323 §5.3).
        let has_paws = segment.options.timestamps.is_some();
        assert!(delivered == arrived || has_paws && delivered < arrived, "{delivered} {arrived}");
    }
}

impl Host {
    fn arrived(&mut self, start: u32, len: u32) {
        if len == 0 {
            return;
        }
        self.beyond.insert((start, start + len));
        while let Some((start, end)) = self.beyond.first().copied()
            && start <= self.unbroken
        {
            self.beyond.pop_first();
            self.unbroken = self.unbroken.max(end);
        }
    }
}
