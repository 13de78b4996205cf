//! Strangers, replays, and a peer that is not as it should be.

use super::*;
use crate::tunnel::datagram::{INITIATION_LEN, VERSION};
use crate::tunnel::key::PresharedKey;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// A stranger at this host.
fn stranger(host: u16, port: u16) -> Address {
    let [high, low] = host.to_be_bytes();
    Address::Udp(([198, 18, high, low], port).into())
}

/// Initiations by somebody who knows the listener's public key, and no more.
struct Forger {
    stamp: Stamp,
    number: u32,
}

impl Forger {
    fn new(pair: &Pair) -> Self {
        Self { stamp: Stamp::new(&pair.dialer.keys.peer, None), number: 0 }
    }

    fn initiation(&mut self, now: Instant) -> Vec<u8> {
        self.number += 1;
        let mut message = [9; INITIATION_LEN];
        message[..4].copy_from_slice(&self.number.to_be_bytes());
        let mut message = datagram::initiation(&message);
        self.stamp.close(now, &mut message);
        message
    }
}

/// The peer shows its key and is answered at once; an older end needs a cookie.
#[test]
fn strangers_who_know_the_key_do_not_keep_the_peer_out() {
    for is_old in [false, true] {
        let mut pair = Pair::new(Rekey::default());
        if is_old {
            pair.dialer.stamp = Stamp::new(&pair.dialer.keys.peer, None);
        }
        let mut forger = Forger::new(&pair);
        let mut flood = |pair: &mut Pair| {
            for host in 0..10 {
                let message = forger.initiation(pair.now);
                pair.give(stranger(host, 7), &message);
            }
            pair.drain_listener().len()
        };
        let mut cookies: usize = (0..20).map(|_| flood(&mut pair)).sum();
        let begin = pair.now;
        while !pair.listener.is_open() && pair.now - begin < Duration::from_secs(2) {
            pair.wait(Duration::from_millis(1));
            cookies += flood(&mut pair);
        }
        let within = if is_old { 2 * RETRIED } else { Duration::from_millis(1) };
        assert!(pair.now - begin <= within, "{is_old}: {:?}", pair.now - begin);
        assert!(cookies > 0 && pair.listener.counters.challenged > 0);
        assert!(pair.listener.counters.forged <= 20, "{:?}", pair.listener.counters);
        pair.assert_carries();
    }
}

#[test]
fn what_lacks_mac1_costs_nothing() {
    let mut pair = Pair::open();
    pair.wait(Duration::from_secs(1));
    for number in 0..1_000u32 {
        let mut message = Forger::new(&pair).initiation(pair.now);
        message[5] ^= 1;
        pair.give(stranger(number as u16, 7), &message);
    }
    assert_eq!((pair.listener.counters.forged, pair.drain_listener().len()), (1_000, 0));
    // Even so many have not used up what is admitted without a cookie.
    pair.restart_dialer(RESTARTED);
    pair.exchange();
    pair.assert_carries();
    assert_eq!(pair.listener.counters.challenged, 0);
}

#[test]
fn a_recorded_initiation_opens_nothing_and_an_older_one_is_reported() {
    let mut pair = Pair::new(Rekey::default());
    pair.dialer.handle_timeout(pair.now);
    let recorded = pair.drain_dialer().remove(0);
    pair.wait(RETRIED);
    pair.restart_listener();
    // It remembers nothing now: the first replay is answered, the next ones are known.
    for port in 0..1_000 {
        pair.give(stranger(1, port), &recorded);
    }
    let answers = pair.drain_listener();
    assert!(answers.len() <= 51, "{} answers", answers.len());
    assert!(!pair.listener.is_open());
    pair.wait(KEEPALIVE);
    pair.assert_carries();
    // An older end whose clock was set back cannot show that it is no replay; the operator is told
    // once.
    pair.restart_dialer(STARTED - HOURS);
    pair.dialer.stamp = Stamp::new(&pair.dialer.keys.peer, None);
    for _ in 0..80 {
        pair.wait(RETRIED);
    }
    assert!(!pair.dialer.is_open());
    let notices: Vec<_> = std::iter::from_fn(|| pair.listener.poll_notice()).collect();
    let is_old = |notice: &&Notice| matches!(notice, Notice::OldInitiation(_));
    assert_eq!(notices.iter().filter(is_old).count(), 1, "{notices:?}");
}

#[test]
fn replays_of_a_pending_initiation_reflect_little() {
    let mut pair = Pair::new(Rekey::default());
    pair.dialer.handle_timeout(pair.now);
    let initiation = pair.drain_dialer().remove(0);
    let mut answers = 0;
    for millisecond in 0..1_000u16 {
        pair.now += Duration::from_millis(1);
        for port in 0..10 {
            pair.give(stranger(millisecond, port), &initiation);
        }
        answers += pair.drain_listener().len();
    }
    assert!((100..=600).contains(&answers), "{answers}");
}

/// Ten datagrams in a millisecond of sessions that nobody has: what is answered in a second, and
/// what waits where nothing can be sent.
#[test]
fn what_names_no_session_reflects_little_and_leaves_room() {
    for can_send in [true, false] {
        let mut pair = Pair::open();
        let mut answers = 0;
        for number in 0..10_000u32 {
            pair.now += Duration::from_micros(100);
            let datagram = [&[3][..], &[0xee; 3], &number.to_be_bytes(), &[0; 40]].concat();
            assert_eq!(pair.give(stranger(1, number as u16), &datagram), None);
            answers += if can_send { pair.drain_listener().len() } else { 0 };
        }
        let waiting = pair.drain_listener().len();
        match can_send {
            true => assert!((2_000..=2_200).contains(&answers), "{answers}"),
            false => assert_eq!(waiting, OUTBOX_STRANGERS),
        }
    }
}

#[test]
fn one_psk_works_and_two_are_reported_at_both_ends() {
    let [one, two] = [(); 2].map(|()| PresharedKey::generate().expect("random bytes"));
    for (left, right, is_right) in [
        (Some(&one), Some(&one), true),
        (Some(&one), Some(&two), false),
        (Some(&one), None, false),
        (None, Some(&two), false),
    ] {
        let (mut a, mut b) = keys();
        (a.psk, b.psk) = (left.cloned(), right.cloned());
        let mut pair = Pair::new(Rekey::default());
        pair.dialer =
            NoiseChannel::new(a, Names::default(), Rekey::default(), Some(at(LISTENER)), STARTED);
        pair.listener = NoiseChannel::new(b, Names::default(), Rekey::default(), None, STARTED);
        pair.exchange();
        assert_eq!(pair.dialer.is_open(), is_right);
        if is_right {
            pair.assert_carries();
            continue;
        }
        for _ in 0..120 {
            pair.wait(RETRIED);
        }
        assert_eq!(pair.dialer.poll_notice(), Some(Notice::BadAnswer(at(LISTENER))));
        assert_eq!(pair.dialer.poll_notice(), Some(Notice::NoAnswer(at(LISTENER))));
        assert_eq!(pair.dialer.poll_notice(), None);
        assert_eq!(pair.listener.poll_notice(), Some(Notice::NoUse(pair.dialer_at)));
        assert_eq!(pair.listener.poll_notice(), None);
        assert!(!pair.dialer.is_open() && !pair.listener.is_open());
    }
}

#[test]
fn another_version_is_refused_in_one_sentence() {
    let mut pair = Pair::new(Rekey::default());
    // Of version 1: only if it is the peer's.
    let old = |keys: &Keys| {
        let pattern = "Noise_KK_25519_AESGCM_SHA256".parse().expect("a pattern");
        let mut state = snow::Builder::new(pattern)
            .prologue(b"airmend link")
            .and_then(|builder| builder.local_private_key(keys.private.bytes()))
            .and_then(|builder| builder.remote_public_key(keys.peer.bytes()))
            .and_then(|builder| builder.build_initiator())
            .expect("a handshake");
        let mut message = [0; 52];
        state.write_message(&[1, 2, 3, 4], &mut message).expect("a message");
        [&[1][..], &message].concat()
    };
    let foreign = old(&keys().0);
    assert_eq!(pair.give(at(66), &foreign), None);
    assert_eq!(pair.listener.poll_notice(), None);
    pair.now += Duration::from_secs(1);
    for _ in 0..100 {
        let genuine = old(&pair.dialer.keys);
        assert_eq!(pair.give(at(66), &genuine), None);
        pair.now += Duration::from_secs(1);
    }
    assert_eq!(pair.listener.poll_notice(), Some(Notice::OtherVersion(at(66), 1)));
    assert_eq!((pair.listener.poll_notice(), pair.drain_listener().len()), (None, 0));

    // Of a later one: it is told which one is spoken here.
    let mut pair = Pair::new(Rekey::default());
    pair.dialer.handle_timeout(pair.now);
    pair.drain_dialer();
    let mut later = [&[1, VERSION + 1, 0, 0][..], &[9; 200]].concat();
    pair.give(pair.dialer_at, &[&later[..], &[0; 32]].concat());
    assert_eq!(pair.listener.poll_notice(), None, "a stranger's");
    pair.dialer.stamp.close(pair.now, &mut later);
    pair.give(pair.dialer_at, &later);
    let notice = pair.listener.poll_notice();
    assert_eq!(notice, Some(Notice::OtherVersion(pair.dialer_at, VERSION + 1)));
    let reply = pair.drain_listener().remove(0);
    pair.dialer.receive(pair.now, at(LISTENER), &reply, &mut BytesMut::new());
    let notice = pair.dialer.poll_notice();
    assert_eq!(notice, Some(Notice::OtherVersion(at(LISTENER), VERSION)));
}

#[test]
fn retries_are_spread() {
    let mut pair = Pair::new(Rekey::default());
    let (mut sent, begin) = (Vec::new(), pair.now);
    for _ in 0..4_900 {
        pair.dialer.handle_timeout(pair.now);
        sent.extend(pair.drain_dialer().iter().map(|_| pair.now));
        pair.now += Duration::from_millis(1);
    }
    let intervals: BTreeSet<_> = sent.windows(2).map(|two| two[1] - two[0]).collect();
    assert!(intervals.len() > 5, "{intervals:?}");
    assert!(intervals.iter().all(|interval| (RETRY..=RETRIED).contains(interval)));
    assert!(sent[0] == begin && sent.len() > 4_900 / 140);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Bytes of any kind, and genuine messages with some changed, from anywhere and to both ends:
    /// the session goes on, and new ones begin.
    #[test]
    fn a_session_survives_whatever_arrives(
        junk in prop::collection::vec(
            (0u8..9, prop::collection::vec(any::<u8>(), 0..140), any::<u16>()),
            0..60,
        ),
        changes in prop::collection::vec((any::<prop::sample::Index>(), 1u8..), 40),
    ) {
        let mut pair = Pair::new(Rekey::default());
        pair.dialer.handle_timeout(pair.now);
        let initiation = pair.drain_dialer().remove(0);
        pair.give(pair.dialer_at, &initiation);
        let response = pair.drain_listener().remove(0);
        let genuine = [initiation, response];
        let mut hostile: Vec<_> = junk
            .into_iter()
            .map(|(kind, bytes, port)| ([&[kind][..], &bytes].concat(), port))
            .collect();
        for (number, (at, change)) in changes.iter().enumerate() {
            let mut bytes = genuine[number % 2].clone();
            *at.get_mut(&mut bytes) ^= change;
            hostile.push((bytes, number as u16));
        }
        let mut nothing = BytesMut::new();
        for (bytes, port) in &hostile {
            prop_assert_eq!(pair.give(stranger(3, *port), bytes), None);
            pair.dialer.receive(pair.now, at(LISTENER), bytes, &mut nothing);
        }
        prop_assert!(nothing.is_empty());
        pair.drain_listener();
        pair.drain_dialer();
        pair.wait(RETRIED);
        pair.wait(RETRIED);
        pair.assert_carries();
        for (bytes, port) in &hostile {
            prop_assert_eq!(pair.give(stranger(3, *port), bytes), None);
            pair.dialer.receive(pair.now, at(LISTENER), bytes, &mut nothing);
        }
        prop_assert!(nothing.is_empty());
        pair.assert_carries();
        prop_assert_eq!(pair.listener.peer(), Some(pair.dialer_at));
    }
}
