//! A hub without interface and socket, and its peers.

use super::*;
use crate::tunnel::fuzzing::Hub;
use crate::tunnel::{
    CarrierConfig, Counters, DeviceConfig, Endpoint, Keys, PeerConfig, PrivateKey, PublicKey,
    Rekey, Security, TunConfig,
};
use bytes::Bytes;
use std::net::Ipv4Addr;

const STARTED: Duration = Duration::from_secs(1_000_000);
const HUB: u16 = 4433;

fn at(port: u16) -> Address {
    Address::Udp(([192, 0, 2, 1], port).into())
}

/// An IPv4 packet without payload.
fn packet(source: Ipv4Addr, destination: Ipv4Addr) -> Bytes {
    let header = [0x45, 0, 0, 20, 0, 0, 0, 0, 64, 17, 0, 0];
    [&header[..], &source.octets(), &destination.octets()].concat().into()
}

/// The hub's address, which nobody checks, and that of a peer.
const CENTER: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);

fn inner(number: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 9, 1, number as u8)
}

struct World {
    now: Instant,
    hub: Hub,
    config: TunnelConfig,
    own: PublicKey,
    ends: Vec<Endpoint>,
    /// Where each of them is.
    at: Vec<Address>,
    /// What has come out of the hub's interface.
    arrived: Vec<Bytes>,
    /// Frames that have come to each end.
    frames: Vec<Vec<Bytes>>,
}

impl World {
    fn new(peers: usize) -> Self {
        let hub = PrivateKey::generate().expect("random bytes");
        let own = hub.public();
        let (mut configs, mut ends) = (Vec::new(), Vec::new());
        for number in 0..peers {
            let private = PrivateKey::generate().expect("random bytes");
            let keys = Keys { private: hub.clone(), peer: private.public(), psk: None };
            configs.push(PeerConfig {
                name: Some(number.to_string()),
                remote: None,
                security: Security::Noise(keys, Rekey::default()),
                allowed: vec![(inner(number).into(), 32)],
            });
            let keys = Keys { private, peer: own, psk: None };
            let security = Security::Noise(keys, Rekey::default());
            ends.push(Endpoint::new(&security, Some(at(HUB)), STARTED));
        }
        let config = TunnelConfig {
            device: DeviceConfig::Tun(TunConfig::default()),
            carrier: CarrierConfig::Udp { local: ([0; 4], HUB).into() },
            peers: configs,
            padding: None,
            compression: false,
        };
        Self {
            now: Instant::from_millis(5),
            hub: Hub::new(&config, STARTED).expect("a hub"),
            config,
            own,
            ends,
            at: (0..peers).map(|number| at(1_000 + number as u16)).collect(),
            arrived: Vec::new(),
            frames: vec![Vec::new(); peers],
        }
    }

    /// Lets everybody say what they want until nobody has anything more to say.
    fn exchange(&mut self) {
        loop {
            let mut is_quiet = true;
            for (end, at) in self.ends.iter_mut().zip(&self.at) {
                end.handle_timeout(self.now);
                while let Some((_, datagram)) = end.poll_transmit() {
                    is_quiet = false;
                    self.hub.receive(self.now, *at, &datagram);
                }
            }
            let (datagrams, packets) = self.hub.turn(self.now);
            self.arrived.extend(packets);
            for (to, datagram) in datagrams {
                is_quiet = false;
                let Some(number) = self.at.iter().position(|at| *at == to) else { continue };
                let end = &mut self.ends[number];
                let frame = end.receive(self.now, at(HUB), &datagram);
                // What asks whether an end is there is no frame.
                self.frames[number].extend(frame);
            }
            if is_quiet {
                return;
            }
        }
    }

    fn wait(&mut self, time: Duration) {
        self.now += time;
        self.exchange();
    }

    /// The packet that an end sends, if it comes out of the hub.
    fn up(&mut self, number: usize, packet: &Bytes) -> bool {
        let datagram = self.ends[number].seal(self.now, packet);
        self.hub.receive(self.now, self.at[number], &datagram);
        self.exchange();
        self.arrived.drain(..).any(|arrived| arrived == *packet)
    }

    fn down(&mut self, packet: &Bytes) -> Vec<usize> {
        self.hub.take(self.now, packet.clone());
        self.exchange();
        let has = |frames: &mut Vec<Bytes>| frames.drain(..).any(|frame| frame == *packet);
        let all = self.frames.iter_mut().enumerate();
        all.filter_map(|(number, frames)| has(frames).then_some(number)).collect()
    }

    fn counters(&self, number: usize) -> Counters {
        self.hub.counters(Some(&number.to_string()))
    }
}

#[test]
fn a_hundred_peers_have_what_is_theirs_wherever_they_are() {
    let mut world = World::new(100);
    // All begin at once, and are compared with each other's keys.
    for _ in 0..3 {
        world.wait(Duration::from_millis(140));
    }
    for number in 0..100 {
        assert_eq!(world.counters(number).sessions, 1, "{number}");
        assert!(world.up(number, &packet(inner(number), CENTER)), "{number}");
        assert_eq!(world.down(&packet(CENTER, inner(number))), [number]);
    }
    // All of them move, some to where others were.
    world.at.rotate_left(1);
    for number in 0..100 {
        assert!(world.up(number, &packet(inner(number), CENTER)), "{number}");
    }
    for number in 0..100 {
        assert_eq!(world.down(&packet(CENTER, inner(number))), [number]);
        assert_eq!((world.counters(number).peer_moves, world.counters(number).sessions), (1, 1));
    }
    let Counters { forged, unknown_session, .. } = world.hub.counters(None);
    assert_eq!((forged, unknown_session), (0, 0));
}

#[test]
fn a_peer_has_no_other_address_than_its_own() {
    let mut world = World::new(3);
    world.exchange();
    for source in [inner(1), CENTER, Ipv4Addr::UNSPECIFIED] {
        assert!(!world.up(0, &packet(source, CENTER)), "{source}");
    }
    assert!(!world.up(0, &Bytes::from_static(b"no packet")));
    assert_eq!((world.counters(0).wrong_source, world.counters(1).wrong_source), (4, 0));
    assert_eq!(world.down(&packet(CENTER, inner(7))), [0; 0]);
    assert_eq!(world.hub.counters(None).no_peer, 1);
    assert!(world.up(0, &packet(inner(0), CENTER)));
}

#[test]
fn others_go_on_while_peers_come_and_go() {
    let mut world = World::new(4);
    let all = world.config.clone();
    world.config.peers.truncate(2);
    world.hub.reload(world.now, &world.config);
    world.exchange();
    assert!(world.up(0, &packet(inner(0), CENTER)) && !world.up(3, &packet(inner(3), CENTER)));
    assert!(world.hub.counters(None).forged > 0, "the third and the fourth are nobody");
    // The first goes, and its place is another's.
    let mut rest = all.clone();
    rest.peers.remove(0);
    world.hub.reload(world.now, &rest);
    for _ in 0..60 {
        world.wait(Duration::from_millis(140));
    }
    assert!(!world.up(0, &packet(inner(0), CENTER)));
    for number in 1..4 {
        assert!(world.up(number, &packet(inner(number), CENTER)), "{number}");
        assert_eq!(world.counters(number).sessions, 1, "{number}");
    }
    world.hub.reload(world.now, &all);
    for _ in 0..60 {
        world.wait(Duration::from_millis(140));
    }
    assert!((0..4).all(|number| world.up(number, &packet(inner(number), CENTER))));
}

/// Reloads that add peers one by one, take the older ones away, and change all but one: each time
/// the packets of all may take what those of one alone may, and each has an equal part.
#[test]
fn reloads_leave_the_sum_of_limits_as_it_is() {
    let mut world = World::new(40);
    let all = world.config.peers.clone();
    let ranges = (1..=40).map(|end| 0..end).chain((1..40).map(|begin| begin..40));
    let ranges = ranges.chain([0..40, 39..40, 0..2, 5..9]);
    for range in ranges.cycle().take(3 * 83) {
        let count = range.len();
        world.config.peers = all[range].to_vec();
        world.hub.reload(world.now, &world.config);
        let part = Limits::default().cache_bytes / count;
        assert_eq!(world.hub.cache_bytes(), vec![part; count]);
    }
}

/// Where the socket's buffer is crowded a peer that floods has an equal part of each read, and
/// those beside it lose nothing, however fast the machine is.
#[test]
fn one_that_crowds_the_buffer_is_dropped_early_and_no_other() {
    let mut world = World::new(10);
    for _ in 0..3 {
        world.wait(Duration::from_millis(140));
    }
    world.arrived.clear();
    for is_crowded in [false, true, true, true] {
        world.hub.begin_read(is_crowded);
        // Of a hundred datagrams 91 are the first peer's.
        for turn in 0..100 {
            let number = if turn % 10 == 9 { turn / 10 } else { 0 };
            let datagram = world.ends[number].seal(world.now, &packet(inner(number), CENTER));
            world.hub.receive(world.now, world.at[number], &datagram);
        }
        world.exchange();
    }
    let count =
        |number| world.arrived.iter().filter(|p| **p == packet(inner(number), CENTER)).count();
    assert!((1..10).all(|number| count(number) == 4 && world.counters(number).crowded_out == 0));
    // Ten of each crowded read: as many as the read before took, for each of ten peers.
    let dropped = world.counters(0).crowded_out;
    assert_eq!((count(0) as u64, dropped), (91 + 3 * 10, 3 * 81));
}

/// Strangers who know the hub's public key.
struct Flood {
    forged: Vec<Vec<u8>>,
    number: usize,
}

impl Flood {
    fn new(world: &World) -> Self {
        let private = PrivateKey::generate().expect("random bytes");
        let keys = Keys { private, peer: world.own, psk: None };
        let security = Security::Noise(keys, Rekey::default());
        let forged = (0..200).filter_map(|number| {
            let since = STARTED + Duration::from_secs(number);
            let mut end = Endpoint::new(&security, Some(at(HUB)), since);
            end.handle_timeout(Instant::ZERO);
            end.poll_transmit().map(|(_, datagram)| datagram)
        });
        Self { forged: forged.collect(), number: 0 }
    }

    /// The next millisecond, and ten initiations, each from an address of its own: before what the
    /// peers say then, or behind it.
    fn step(&mut self, world: &mut World) {
        world.now += Duration::from_millis(1);
        if self.number.is_multiple_of(20) {
            world.exchange();
        }
        for _ in 0..10 {
            self.number += 1;
            let [_, high, middle, low] = (self.number as u32).to_be_bytes();
            let from = Address::Udp(([198, high, middle, low], 7).into());
            let datagram = &self.forged[self.number % self.forged.len()];
            world.hub.receive(world.now, from, datagram);
        }
        world.exchange();
    }

    /// Goes on until a peer has had so many sessions.
    fn until(&mut self, world: &mut World, peer: usize, sessions: u64) {
        let begin = world.now;
        while world.counters(peer).sessions < sessions {
            self.step(world);
            let waited = world.now - begin;
            assert!(waited < Duration::from_secs(2), "{peer} after {waited:?}");
        }
        println!("peer {peer} after {:?}", world.now - begin);
    }
}

/// Peers of a hub that is flooded.
const PEERS: usize = 100;

/// Ten thousand initiations a second by who knows the hub's public key cost no key agreement; who
/// comes from a new address comes soon, and who is there has new keys when these are due.
#[test]
fn a_flood_with_the_public_key_keeps_nobody_out() {
    let mut world = World::new(PEERS);
    let late = world.ends.split_off(PEERS - 1);
    for _ in 0..3 {
        world.wait(Duration::from_millis(140));
    }
    let mut flood = Flood::new(&world);
    let begin = world.now;
    // What an end may compare at once is used up when the last peer begins.
    (0..300).for_each(|_| flood.step(&mut world));
    world.ends.extend(late);
    flood.until(&mut world, PEERS - 1, 1);
    let seconds = (world.now - begin).as_secs_f64();
    let strangers = world.hub.counters(None);
    // As many comparisons as the rate allows, and no answer.
    assert!(strangers.forged as f64 <= 200.0 + 1_000.0 * seconds, "{strangers:?} in {seconds} s");
    assert!(strangers.handshakes_refused > 0, "{strangers:?}");
    assert!((0..PEERS).all(|peer| world.counters(peer).forged == 0));
    world.now += Rekey::default().after;
    (0..PEERS).for_each(|peer| flood.until(&mut world, peer, 2));
}

#[test]
fn what_names_no_session_is_answered_with_that() {
    let mut world = World::new(2);
    world.exchange();
    let mut sealed = world.ends[0].seal(world.now, &packet(inner(0), CENTER));
    // The name of the session.
    sealed[1] ^= 1;
    world.hub.receive(world.now, at(9), &sealed);
    let (datagrams, packets) = world.hub.turn(world.now);
    let unknown = vec![4, sealed[1], sealed[2], sealed[3]];
    assert!(datagrams.contains(&(at(9), unknown)) && packets.is_empty(), "{datagrams:?}");
    assert_eq!(world.hub.counters(None).unknown_session, 1);
}
