//! An end with several peers, with the path, the hosts and the configuration in the input's hands:
//! datagrams are lost, repeated, changed, invented, and come from elsewhere; peers lie about where
//! their packets come from, are taken away and come back. What comes out of the interface was sent
//! by the peer that has its source, once; and when the path is good again, all peers are there.

use airmend_live::tunnel::fuzzing::Hub;
use airmend_live::tunnel::{
    Address, CarrierConfig, DeviceConfig, Endpoint, Keys, PeerConfig, PrivateKey, Rekey, Security,
    TunConfig, TunnelConfig,
};
use airmend_proto::Instant;
use bytes::Bytes;
use core::time::Duration;
use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;

const PEERS: usize = 3;
/// Datagrams of each peer on their way at most.
const ON_THE_WAY: usize = 64;
const MAX_STEPS: usize = 200;
/// How long it may take until all peers are there again, in steps of 100 ms.
const SOON: u32 = 100;
const HUB: u16 = 4433;

pub(crate) fn fuzz(data: &[u8]) {
    let mut world = World::new();
    let mut input = data.iter().copied();
    for _ in 0..MAX_STEPS {
        let Some(choice) = input.next() else { break };
        world.step(choice, &mut input);
    }
    world.recovers();
}

struct World {
    now: Instant,
    hub: Hub,
    all: TunnelConfig,
    ends: Vec<Endpoint>,
    at: Vec<Address>,
    /// What each end has sent, and has not arrived.
    sent: Vec<VecDeque<Vec<u8>>>,
    /// Packets on their way, by number; those with another peer's source never arrive.
    honest: BTreeSet<u32>,
    next: u32,
}

fn address(port: u16) -> Address {
    Address::Udp(SocketAddr::from(([192, 0, 2, 1], port)))
}

/// An IPv4 packet of a peer with a number.
fn packet(source: usize, number: u32) -> Vec<u8> {
    let header = [0x45, 0, 0, 24, 0, 0, 0, 0, 64, 17, 0, 0];
    let addresses = [10, 9, 1, source as u8, 10, 9, 0, 1];
    [&header[..], &addresses, &number.to_be_bytes()].concat()
}

impl World {
    fn new() -> Self {
        let hub = PrivateKey::generate().expect("random bytes");
        let rekey = Rekey { after_bytes: 4_000, ..Rekey::default() };
        let (mut peers, mut ends) = (Vec::new(), Vec::new());
        for number in 0..PEERS {
            let private = PrivateKey::generate().expect("random bytes");
            let keys = Keys { private: hub.clone(), peer: private.public(), psk: None };
            peers.push(PeerConfig {
                name: None,
                remote: None,
                security: Security::Noise(keys, rekey),
                allowed: vec![([10, 9, 1, number as u8].into(), 32)],
            });
            let keys = Keys { private, peer: hub.public(), psk: None };
            let security = Security::Noise(keys, rekey);
            ends.push(Endpoint::new(&security, Some(address(HUB)), Duration::from_secs(1 << 30)));
        }
        let all = TunnelConfig {
            device: DeviceConfig::Tun(TunConfig::default()),
            carrier: CarrierConfig::Udp { local: ([0; 4], HUB).into() },
            peers,
            padding: None,
            compression: false,
        };
        let hub = Hub::new(&all, Duration::from_secs(1 << 30)).expect("a loopback interface");
        let mut world = Self {
            now: Instant::from_millis(5),
            hub,
            all,
            ends,
            at: (0..PEERS).map(|number| address(1_000 + number as u16)).collect(),
            sent: vec![VecDeque::new(); PEERS],
            honest: BTreeSet::new(),
            next: 0,
        };
        world.exchange();
        world
    }

    fn step(&mut self, choice: u8, input: &mut impl Iterator<Item = u8>) {
        let mut byte = || input.next().unwrap_or(0);
        let peer = usize::from(choice) % PEERS;
        match choice / PEERS as u8 % 10 {
            0 | 1 => self.send(peer, peer),
            2 => self.send(peer, usize::from(byte()) % (PEERS + 1)),
            3 => drop(self.sent[peer].pop_front()),
            4 => {
                let copy = self.sent[peer].front().cloned();
                copy.into_iter().for_each(|copy| self.hub.receive(self.now, self.at[peer], &copy));
            }
            5 => {
                let Some(mut changed) = self.sent[peer].front().cloned() else { return };
                let place = usize::from(byte()) % changed.len();
                changed[place] ^= byte().max(1);
                self.hub.receive(self.now, self.at[usize::from(byte()) % PEERS], &changed);
            }
            6 => {
                let invented: Vec<u8> = (0..byte()).map(|_| byte()).collect();
                self.hub.receive(self.now, address(u16::from(choice)), &invented);
                self.hub.take(self.now, Bytes::from(invented));
            }
            7 => self.at[peer] = address(1_000 + u16::from(byte() % 4)),
            8 => {
                let mut some = self.all.clone();
                let kept = byte();
                let mut number = 0;
                some.peers.retain(|_| {
                    number += 1;
                    kept >> number & 1 == 1
                });
                // A peer alone may send from any address.
                if some.peers.len() > 1 {
                    self.hub.reload(self.now, &some);
                }
            }
            _ => self.now += Duration::from_millis(1 << (byte() & 15)),
        }
        if choice & 0x80 != 0 {
            self.originate();
        }
        if choice & 0x40 != 0
            && let Some(datagram) = self.sent[peer].pop_front()
        {
            self.hub.receive(self.now, self.at[peer], &datagram);
        }
        self.turn();
    }

    /// A peer sends a packet that has this peer's source.
    fn send(&mut self, peer: usize, source: usize) {
        self.next += 1;
        let datagram = self.ends[peer].seal(self.now, &packet(source, self.next));
        if !datagram.is_empty() && self.sent[peer].len() < ON_THE_WAY {
            self.honest.extend((source == peer).then_some(self.next));
            self.sent[peer].push_back(datagram);
        }
    }

    fn originate(&mut self) -> bool {
        let mut is_any = false;
        for (end, sent) in self.ends.iter_mut().zip(&mut self.sent) {
            end.handle_timeout(self.now);
            while end.poll_notice().is_some() {}
            while let Some((_, datagram)) = end.poll_transmit() {
                is_any = true;
                if sent.len() < ON_THE_WAY {
                    sent.push_back(datagram);
                }
            }
        }
        is_any
    }

    /// The hub's turn: what it sends arrives at whoever is there now.
    fn turn(&mut self) -> bool {
        let (datagrams, packets) = self.hub.turn(self.now);
        for packet in packets {
            let number = packet.get(20..24).and_then(|bytes| bytes.try_into().ok());
            let number = u32::from_be_bytes(number.expect("a packet as it was sent"));
            assert!(self.honest.remove(&number), "packet {number} is a lie, or arrived twice");
        }
        for (to, datagram) in &datagrams {
            for (end, at) in self.ends.iter_mut().zip(&self.at) {
                if at == to {
                    end.receive(self.now, address(HUB), datagram);
                }
            }
        }
        !datagrams.is_empty()
    }

    /// Everything arrives until nobody has anything more to say.
    fn exchange(&mut self) {
        for _ in 0..ON_THE_WAY {
            let mut is_any = self.originate();
            for peer in 0..PEERS {
                while let Some(datagram) = self.sent[peer].pop_front() {
                    self.hub.receive(self.now, self.at[peer], &datagram);
                }
            }
            is_any |= self.turn();
            if !is_any {
                return;
            }
        }
        panic!("the ends never stop talking");
    }

    fn recovers(&mut self) {
        let all = self.all.clone();
        self.hub.reload(self.now, &all);
        self.at = (0..PEERS).map(|number| address(1_000 + number as u16)).collect();
        for _ in 0..SOON {
            self.exchange();
            let before = self.next;
            (0..PEERS).for_each(|peer| self.send(peer, peer));
            let is_sealed = (0..PEERS).all(|peer| !self.sent[peer].is_empty());
            self.exchange();
            if is_sealed && (before + 1..=self.next).all(|number| !self.honest.contains(&number)) {
                return;
            }
            self.now += Duration::from_millis(100);
        }
        panic!("no packets over a good path");
    }
}
