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
    // All at one source, as behind one translator of addresses: not all are compared at once.
    for _ in 0..30 {
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

/// Ten thousand initiations a second by who knows the hub's public key cost no key agreement; who
/// is there stays, with new keys, and who comes from a new address comes soon.
#[test]
fn a_flood_with_the_public_key_keeps_nobody_out() {
    let mut world = World::new(20);
    let late = world.ends.split_off(19);
    world.exchange();
    let stranger = PrivateKey::generate().expect("random bytes");
    let keys = Keys { private: stranger, peer: world.own, psk: None };
    let security = Security::Noise(keys, Rekey::default());
    let mut forged = Vec::new();
    for number in 0..200u64 {
        let mut end =
            Endpoint::new(&security, Some(at(HUB)), STARTED + Duration::from_secs(number));
        end.handle_timeout(Instant::ZERO);
        forged.extend(end.poll_transmit().map(|(_, datagram)| datagram));
    }
    // Beside the flood keys change, and the last peer begins.
    world.now += Rekey::default().after;
    world.ends.extend(late);
    let begin = world.now;
    let mut number = 0usize;
    while (0..20).any(|peer| world.counters(peer).sessions < if peer < 19 { 2 } else { 1 }) {
        for _ in 0..10 {
            number += 1;
            let [_, high, middle, low] = (number as u32).to_be_bytes();
            let from = Address::Udp(([198, high, middle, low], 7).into());
            world.hub.receive(world.now, from, &forged[number % forged.len()]);
        }
        world.wait(Duration::from_millis(1));
        assert!(world.now - begin < Duration::from_secs(5), "after {:?}", world.now - begin);
    }
    let strangers = world.hub.counters(None);
    let seconds = (world.now - begin).as_secs_f64();
    // As many comparisons as the rate allows, and no answer.
    assert!(strangers.forged as f64 <= 200.0 + 1_000.0 * seconds, "{strangers:?} in {seconds} s");
    assert!((0..20).all(|peer| world.counters(peer).forged == 0));
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
