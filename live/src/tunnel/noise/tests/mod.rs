mod clocks;
mod hostile;

use super::*;
use crate::tunnel::PrivateKey;
use initiator::RETRY;
use std::net::SocketAddr;

/// Both ends with the clock between them; what one sends is what the other is given.
struct Pair {
    now: Instant,
    dialer: NoiseChannel,
    listener: NoiseChannel,
    dialer_at: Address,
    /// For so long each end has been suspended, the dialer and the listener: its clock stood still.
    slept: [Duration; 2],
}

/// When the first ends start, and how much later one that is restarted.
const STARTED: Duration = Duration::from_secs(1_000_000);
const RESTARTED: Duration = Duration::from_millis(1_000_000_001);
/// Longer than any interval between retries.
const RETRIED: Duration = Duration::from_millis(140);
/// By which clocks jump.
const HOURS: Duration = Duration::from_secs(5 * 3_600);
const LISTENER: u16 = 4433;

fn at(port: u16) -> Address {
    Address::Udp(SocketAddr::from(([192, 0, 2, 1], port)))
}

fn keys() -> (Keys, Keys) {
    let [a, b] = [(); 2].map(|()| PrivateKey::generate().expect("random bytes"));
    let (to_a, to_b) = (a.public(), b.public());
    (Keys { private: a, peer: to_b, psk: None }, Keys { private: b, peer: to_a, psk: None })
}

impl Pair {
    fn new(rekey: Rekey) -> Self {
        let (a, b) = keys();
        Self {
            now: Instant::from_millis(5),
            dialer: NoiseChannel::new(a, Names::default(), rekey, Some(at(LISTENER)), STARTED),
            listener: NoiseChannel::new(b, Names::default(), rekey, None, STARTED),
            dialer_at: at(1000),
            slept: [Duration::ZERO; 2],
        }
    }

    fn open() -> Self {
        let mut pair = Self::new(Rekey::default());
        pair.exchange();
        assert!(pair.dialer.is_open() && pair.listener.is_open());
        pair
    }

    /// The time at the dialer and at the listener.
    fn clocks(&self) -> [Instant; 2] {
        self.slept.map(|slept| Instant::ZERO + (self.now - Instant::ZERO).saturating_sub(slept))
    }

    /// Lets both ends say what they want until they have nothing more to say.
    fn exchange(&mut self) {
        loop {
            let [dialer_now, listener_now] = self.clocks();
            self.dialer.handle_timeout(dialer_now);
            self.listener.handle_timeout(listener_now);
            let (from_dialer, from_listener) = (self.drain_dialer(), self.drain_listener());
            if from_dialer.is_empty() && from_listener.is_empty() {
                return;
            }
            let mut nothing = BytesMut::new();
            for message in from_dialer {
                self.listener.receive(listener_now, self.dialer_at, &message, &mut nothing);
            }
            for message in from_listener {
                self.dialer.receive(dialer_now, at(LISTENER), &message, &mut nothing);
            }
            assert!(nothing.is_empty(), "no frames without packets");
        }
    }

    fn restart_dialer(&mut self, since_1970: Duration) {
        let keys = self.dialer.keys.clone();
        let rekey = Rekey::default();
        self.dialer =
            NoiseChannel::new(keys, Names::default(), rekey, Some(at(LISTENER)), since_1970);
        self.dialer_at = at(1001);
    }

    fn restart_listener(&mut self) {
        let keys = self.listener.keys.clone();
        self.listener =
            NoiseChannel::new(keys, Names::default(), Rekey::default(), None, RESTARTED);
    }

    fn drain_dialer(&mut self) -> Vec<Vec<u8>> {
        std::iter::from_fn(|| self.dialer.poll_transmit().map(|(_, message)| message)).collect()
    }

    fn drain_listener(&mut self) -> Vec<Vec<u8>> {
        std::iter::from_fn(|| self.listener.poll_transmit().map(|(_, message)| message)).collect()
    }

    fn wait(&mut self, time: Duration) {
        self.now += time;
        self.exchange();
    }

    fn seal(&mut self, frame: &[u8]) -> Vec<u8> {
        let mut datagram = Vec::new();
        self.dialer.seal(self.clocks()[0], frame, &mut datagram);
        datagram
    }

    /// The frame that the listener decrypts from a datagram from this address.
    fn give(&mut self, from: Address, datagram: &[u8]) -> Option<Vec<u8>> {
        let mut out = BytesMut::new();
        self.listener.receive(self.clocks()[1], from, datagram, &mut out).then(|| out.to_vec())
    }

    fn assert_carries(&mut self) {
        let datagram = self.seal(b"up");
        assert_eq!(self.give(self.dialer_at, &datagram).as_deref(), Some(&b"up"[..]));
        let (mut back, mut out) = (Vec::new(), BytesMut::new());
        let [dialer_now, listener_now] = self.clocks();
        self.listener.seal(listener_now, b"down", &mut back);
        assert!(self.dialer.receive(dialer_now, at(LISTENER), &back, &mut out));
        assert_eq!(&out[..], b"down");
    }
}

#[test]
fn one_exchange_opens_the_channel_both_ways() {
    let mut pair = Pair::open();
    pair.assert_carries();
    assert_eq!(pair.listener.peer(), Some(pair.dialer_at));
    assert_eq!(pair.listener.poll_notice(), Some(Notice::PeerFound(pair.dialer_at)));
    assert_eq!(pair.listener.poll_notice(), None);
    assert_eq!((pair.dialer.counters.sessions, pair.listener.counters.sessions), (1, 1));
}

#[test]
fn both_ends_may_share_one_key() {
    let private = PrivateKey::generate().expect("random bytes");
    let keys = Keys { peer: private.public(), private, psk: None };
    let mut pair = Pair::new(Rekey::default());
    pair.dialer = NoiseChannel::new(
        keys.clone(),
        Names::default(),
        Rekey::default(),
        Some(at(LISTENER)),
        STARTED,
    );
    pair.listener = NoiseChannel::new(keys, Names::default(), Rekey::default(), None, STARTED);
    pair.dialer.handle_timeout(pair.now);
    // The own initiation, sent back, opens nothing.
    let initiation = pair.drain_dialer().remove(0);
    pair.dialer.receive(pair.now, at(LISTENER), &initiation, &mut BytesMut::new());
    assert_eq!((pair.dialer.counters.forged, pair.dialer.is_open()), (1, false));
    pair.wait(RETRIED);
    pair.assert_carries();
    // Nor does an own frame come back.
    let (datagram, mut out) = (pair.seal(b"mine"), BytesMut::new());
    assert!(!pair.dialer.receive(pair.now, at(LISTENER), &datagram, &mut out) && out.is_empty());
}

#[test]
fn other_keys_open_nothing() {
    let mut pair = Pair::new(Rekey::default());
    pair.listener = NoiseChannel::new(keys().1, Names::default(), Rekey::default(), None, STARTED);
    for _ in 0..60 {
        pair.wait(RETRIED);
    }
    assert!(!pair.dialer.is_open() && !pair.listener.is_open());
    assert!(pair.listener.counters.forged > 0);
    assert_eq!(pair.dialer.poll_notice(), Some(Notice::NoAnswer(at(LISTENER))));
    assert_eq!(pair.dialer.poll_notice(), None, "reported once");
}

#[test]
fn every_lost_message_of_the_handshake_is_made_good() {
    for lost in 0..3 {
        let mut pair = Pair::new(Rekey::default());
        pair.dialer.handle_timeout(pair.now);
        let initiation = pair.drain_dialer().remove(0);
        if lost > 0 {
            pair.give(pair.dialer_at, &initiation);
            let response = pair.drain_listener().remove(0);
            if lost > 1 {
                let mut nothing = BytesMut::new();
                pair.dialer.receive(pair.now, at(LISTENER), &response, &mut nothing);
                pair.drain_dialer();
            }
        }
        pair.wait(RETRIED);
        pair.assert_carries();
        assert_eq!(pair.listener.counters.sessions, 1, "message {lost} lost");
    }
}

#[test]
fn replayed_datagrams_are_dropped_and_counted() {
    let mut pair = Pair::open();
    let datagrams: Vec<_> = (0..100u8).map(|i| pair.seal(&[i; 3])).collect();
    for datagram in datagrams.iter().rev() {
        assert!(pair.give(pair.dialer_at, datagram).is_some(), "any order will do");
    }
    for datagram in &datagrams {
        assert_eq!(pair.give(pair.dialer_at, datagram), None);
    }
    assert_eq!(pair.listener.counters.replayed, 100);
    let late = pair.seal(b"late");
    for _ in 0..5000 {
        let datagram = pair.seal(b"x");
        pair.give(pair.dialer_at, &datagram);
    }
    assert_eq!(pair.give(pair.dialer_at, &late), None);
    assert_eq!(pair.listener.counters.reordered_too_far, 1);
}

#[test]
fn forged_and_cut_datagrams_are_dropped_and_counted() {
    let mut pair = Pair::open();
    let genuine = pair.seal(b"genuine");
    for byte in 0..genuine.len() {
        for bit in 0..8 {
            let mut forged = genuine.clone();
            forged[byte] ^= 1 << bit;
            assert_eq!(pair.give(at(66), &forged), None, "byte {byte}, bit {bit}");
        }
    }
    for length in 0..genuine.len() {
        assert_eq!(pair.give(at(66), &genuine[..length]), None, "{length} bytes");
    }
    let counters = pair.listener.counters;
    let [forged, truncated] = [counters.forged, counters.truncated];
    // The session's name is 3 bytes of the datagram, the kind one of them.
    assert!(forged >= 8 * (8 + 7 + 16) && truncated >= 28, "{counters:?}");
    assert_eq!(pair.listener.peer(), Some(pair.dialer_at), "a forger does not move the peer");
    assert_eq!(pair.give(pair.dialer_at, &genuine).as_deref(), Some(&b"genuine"[..]));
}

#[test]
fn the_newest_frame_moves_the_peer_and_an_old_one_does_not() {
    let mut pair = Pair::open();
    let (old, new) = (pair.seal(b"old"), pair.seal(b"new"));
    pair.give(at(2000), &new);
    assert_eq!(pair.listener.peer(), Some(at(2000)));
    pair.give(pair.dialer_at, &old);
    assert_eq!(pair.listener.peer(), Some(at(2000)));
    assert_eq!(pair.listener.counters.peer_moves, 1);
    while let Some(notice) = pair.listener.poll_notice() {
        assert_ne!(notice, Notice::PeerMoved(pair.dialer_at));
    }
}

#[test]
fn a_restarted_listener_is_found_by_the_next_keepalive() {
    let mut pair = Pair::open();
    pair.wait(Duration::from_secs(1));
    pair.restart_listener();
    pair.wait(KEEPALIVE);
    pair.assert_carries();
    assert_eq!(pair.dialer.counters.sessions, 2);
}

#[test]
fn a_restarted_dialer_takes_over_at_once() {
    let mut pair = Pair::open();
    pair.restart_dialer(RESTARTED);
    pair.exchange();
    pair.assert_carries();
    assert_eq!(pair.listener.peer(), Some(at(1001)));
}

#[test]
fn anybody_may_claim_that_a_session_is_unknown() {
    let mut pair = Pair::open();
    pair.wait(Duration::from_secs(1));
    let session = pair.dialer.current.as_ref().map(|session| session.peer_id).expect("a session");
    for _ in 0..100 {
        let mut nothing = BytesMut::new();
        pair.dialer.receive(pair.now, at(66), &datagram::unknown(session), &mut nothing);
    }
    pair.assert_carries();
    pair.dialer.handle_timeout(pair.now);
    assert_eq!(pair.drain_dialer().len(), 1, "one handshake, whatever is claimed");
}

#[test]
fn keys_change_by_time_and_by_bytes_without_a_gap() {
    let rekey = Rekey { after_bytes: 10_000, ..Rekey::default() };
    let mut pair = Pair::new(rekey);
    pair.exchange();
    let before = pair.seal(b"on its way");
    for _ in 0..3 {
        pair.wait(rekey.after);
        pair.assert_carries();
        pair.wait(Duration::from_secs(1));
    }
    assert_eq!(pair.listener.counters.sessions, 4);
    assert_eq!(pair.give(pair.dialer_at, &before), None, "too old to be used");
    let before = pair.seal(&[7; 10_000]);
    pair.wait(Duration::from_millis(1));
    assert_eq!(pair.dialer.counters.sessions, 5);
    assert!(pair.give(pair.dialer_at, &before).is_some(), "the previous session is open still");
}

#[test]
fn no_session_outlives_its_time() {
    let mut pair = Pair::open();
    let (dialer_at, listener) = (pair.dialer_at, Rekey::default().reject_after);
    let late = pair.seal(b"late");
    pair.now += listener + Duration::from_millis(1);
    pair.listener.handle_timeout(pair.now);
    assert!(!pair.listener.is_open());
    assert_eq!(pair.give(dialer_at, &late), None);
    assert_eq!(pair.listener.counters.unknown_session, 1);
}

#[test]
fn a_replayed_initiation_changes_nothing() {
    let mut pair = Pair::new(Rekey::default());
    pair.dialer.handle_timeout(pair.now);
    let initiation = pair.drain_dialer().remove(0);
    pair.wait(RETRIED);
    pair.assert_carries();
    let (moves, sessions) = (pair.listener.counters.peer_moves, pair.listener.counters.sessions);
    for _ in 0..100 {
        pair.give(at(66), &initiation);
    }
    assert_eq!(pair.drain_listener().len(), 0);
    assert_eq!(pair.listener.counters.replayed, 100);
    assert_eq!(
        (pair.listener.counters.peer_moves, pair.listener.counters.sessions),
        (moves, sessions)
    );
    pair.assert_carries();
}
