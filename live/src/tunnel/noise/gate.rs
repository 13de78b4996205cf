//! Decides which handshake messages are worth a key agreement.
//!
//! A message must have mac1. One whose mac2 shows the peer's key is admitted within the peer's own
//! rate, whatever strangers send. Of others, which are an older peer's or of somebody who knows
//! this end's public key, the first few in a second need no more; beyond them a sender must prove
//! its address by a cookie, and then has a rate of its own.

use super::limits::Sources;
use super::macs::{Check, PairKey, Proof};
use crate::rate::{Bucket, Rate};
use crate::tunnel::carrier::Address;
use crate::tunnel::key::PublicKey;
use airmend_proto::Instant;

/// Key agreements for senders without a cookie: more than that is load.
const UNPROVEN: Rate = Rate::per_second(10, 10);
/// Key agreements for the peer, and for one source with a cookie; a peer that retries needs 10 a
/// second.
const PER_SOURCE: Rate = Rate::per_second(20, 5);
/// Key agreements for all sources with a cookie: about a twentieth of a core.
const PROVEN: Rate = Rate::per_second(500, 50);
/// Cookies sent, each of which costs a system call: older peers need them, and one whose recorded
/// messages somebody repeats.
const CHALLENGES: Rate = Rate::per_second(1_000, 100);

/// What is to be done with a handshake message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is worth a key agreement.
    Admit,
    /// The sender must prove its address with what this reply holds.
    Challenge(Vec<u8>),
    /// There are too many.
    Refuse,
}

/// The limits of one end.
pub(super) struct Gate {
    check: Check,
    peer: Bucket,
    unproven: Bucket,
    proven: Bucket,
    challenges: Bucket,
    sources: Sources,
}

impl Gate {
    /// For the end with this key, and what it has in common with the peer.
    pub(super) fn new(own: &PublicKey, pair: PairKey) -> Self {
        Self {
            check: Check::new(own, pair),
            peer: Bucket::default(),
            unproven: Bucket::default(),
            proven: Bucket::default(),
            challenges: Bucket::default(),
            sources: Sources::default(),
        }
    }

    /// Whether the sender of a handshake message knows this end's public key.
    pub(super) fn has_mac1(&self, handshake: &[u8]) -> bool {
        self.check.has_mac1(handshake)
    }

    /// The same for a message that ends in mac1.
    pub(super) fn ends_in_mac1(&self, message: &[u8]) -> bool {
        self.check.ends_in_mac1(message)
    }

    /// What its mac2 shows of its sender.
    pub(super) fn proof(&mut self, now: Instant, from: Address, handshake: &[u8]) -> Proof {
        self.check.proof(now, from, handshake)
    }

    /// Decides about a handshake message that has mac1.
    pub(super) fn admit(&mut self, now: Instant, from: Address, handshake: &[u8]) -> Verdict {
        let proof = self.check.proof(now, from, handshake);
        let may_begin = match proof.key {
            true => self.peer.take(PER_SOURCE, now),
            false => self.unproven.take(UNPROVEN, now),
        };
        if may_begin {
            return Verdict::Admit;
        }
        if proof.address {
            let is_within =
                self.sources.take(PER_SOURCE, now, from) && self.proven.take(PROVEN, now);
            return if is_within { Verdict::Admit } else { Verdict::Refuse };
        }
        self.challenge(now, from, handshake)
    }

    /// Asks the sender of a handshake message for a cookie, if there are not too many.
    pub(super) fn challenge(&mut self, now: Instant, from: Address, handshake: &[u8]) -> Verdict {
        let may_reply = self.challenges.take(CHALLENGES, now);
        let reply = may_reply.then(|| self.check.reply(now, from, handshake)).flatten();
        reply.map_or(Verdict::Refuse, Verdict::Challenge)
    }
}

#[cfg(test)]
mod tests {
    use super::super::macs::Stamp;
    use super::*;
    use crate::tunnel::datagram::Datagram;
    use crate::tunnel::key::PrivateKey;
    use proptest::prelude::*;

    fn at(host: u16, port: u16) -> Address {
        let [high, low] = host.to_be_bytes();
        Address::Udp(([198, 18, high, low], port).into())
    }

    /// The listener's key, what the peer has in common with it, and its gate.
    fn ends() -> (PublicKey, PairKey, Gate) {
        let [peer, own] = [(); 2].map(|()| PrivateKey::generate().expect("random bytes"));
        let key = own.public();
        let gate = Gate::new(&key, PairKey::new(&own, &peer.public()));
        (key, PairKey::new(&peer, &key), gate)
    }

    fn take(stamp: &mut Stamp, now: Instant, reply: &[u8]) -> bool {
        match Datagram::parse(reply) {
            Some(Datagram::Cookie(knows_pairs, nonce, sealed)) => {
                stamp.take_cookie(now, knows_pairs, nonce, sealed)
            }
            other => panic!("{other:?}"),
        }
    }

    fn message(stamp: &mut Stamp, now: Instant) -> Vec<u8> {
        let mut message = b"a handshake".to_vec();
        stamp.close(now, &mut message);
        message
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]

        /// Whatever strangers send, who know the public key: their key agreements are bounded, and
        /// the peer is admitted at once, an older one as soon as it has a cookie.
        #[test]
        fn a_flood_costs_little_and_the_peer_is_admitted(
            hosts in 1u16..2_000,
            per_millisecond in 1usize..20,
            peer_at in 1u64..900,
            is_old: bool,
        ) {
            let (key, pair, mut gate) = ends();
            let mut strangers = Stamp::new(&key, None);
            let mut peer = Stamp::new(&key, (!is_old).then_some(pair));
            // Cookies are for one in so many of them.
            let per_millisecond = if is_old { 1 } else { per_millisecond };
            let (mut agreements, mut number, mut admitted) = (0, 0u16, None);
            for millisecond in 0..2_000 {
                let now = Instant::from_millis(10_000 + millisecond);
                for _ in 0..per_millisecond {
                    number = number.wrapping_add(1);
                    let flood = message(&mut strangers, now);
                    let verdict = gate.admit(now, at(number % hosts, number), &flood);
                    agreements += usize::from(verdict == Verdict::Admit);
                }
                if millisecond >= peer_at && (millisecond - peer_at) % 100 == 0 {
                    let mine = message(&mut peer, now);
                    match gate.admit(now, at(60_000, 1), &mine) {
                        Verdict::Admit => admitted = admitted.or(Some(millisecond - peer_at)),
                        Verdict::Challenge(reply) => prop_assert!(take(&mut peer, now, &reply)),
                        Verdict::Refuse => {}
                    }
                }
            }
            prop_assert!(agreements <= 10 + 2 * 10, "{agreements}");
            let within = if is_old { 200 } else { 0 };
            prop_assert!(admitted.is_some_and(|after| after <= within), "{admitted:?}");
        }
    }

    #[test]
    fn a_source_with_a_cookie_has_its_own_rate() {
        let (key, _, mut gate) = ends();
        let mut stamp = Stamp::new(&key, None);
        let mut admitted = [0; 2];
        for millisecond in 0..1_000u64 {
            let now = Instant::from_millis(5_000 + millisecond);
            let bytes = message(&mut stamp, now);
            match gate.admit(now, at(1, 1), &bytes) {
                Verdict::Admit => admitted[0] += 1,
                Verdict::Challenge(reply) => {
                    assert!(take(&mut stamp, now, &reply));
                    admitted[1] += 1;
                }
                Verdict::Refuse => {}
            }
        }
        // 19 without a cookie, 24 with one.
        assert!((40..=45).contains(&admitted[0]) && admitted[1] == 1, "{admitted:?}");
    }

    /// Ten messages in a millisecond, of many addresses: what they cost in a second.
    #[test]
    fn all_sources_together_have_a_rate_and_so_have_cookies() {
        for has_cookies in [false, true] {
            let (key, _, mut gate) = ends();
            let mut stamps: Vec<_> = (0..100).map(|_| Stamp::new(&key, None)).collect();
            let (mut admitted, mut cookies) = (0, 0);
            for number in 0..10_000u64 {
                let now = Instant::from_millis(5_000 + number / 10);
                let source = (number % 100) as usize;
                let bytes = message(&mut stamps[source], now);
                match gate.admit(now, at(source as u16, 1), &bytes) {
                    Verdict::Admit => admitted += 1,
                    Verdict::Challenge(reply) => {
                        cookies += 1;
                        assert!(!has_cookies || take(&mut stamps[source], now, &reply));
                    }
                    Verdict::Refuse => {}
                }
            }
            let most = if has_cookies { 20 + 550 } else { 20 };
            assert!(admitted <= most && admitted > most / 2, "{admitted}");
            assert!(cookies <= 1_100 && has_cookies == (cookies < 500), "{cookies}");
        }
    }

    /// Somebody repeats what the peer has sent: more than the peer's rate needs cookies, which only
    /// the peer can use.
    #[test]
    fn recorded_messages_do_not_keep_the_peer_out() {
        let (key, pair, mut gate) = ends();
        let mut peer = Stamp::new(&key, Some(pair));
        let recorded = message(&mut peer, Instant::ZERO);
        let (mut repeated, mut admitted) = (0, None);
        for millisecond in 0..1_000u64 {
            let now = Instant::from_millis(5_000 + millisecond);
            let verdict = gate.admit(now, at(7, 7), &recorded);
            repeated += usize::from(verdict == Verdict::Admit);
            if millisecond % 100 == 50 {
                let mine = message(&mut peer, now);
                match gate.admit(now, at(1, 1), &mine) {
                    Verdict::Admit => admitted = admitted.or(Some(millisecond)),
                    Verdict::Challenge(reply) => assert!(take(&mut peer, now, &reply)),
                    Verdict::Refuse => {}
                }
            }
        }
        assert!(repeated <= 25, "{repeated}");
        assert!(admitted.is_some_and(|after| after <= 250), "{admitted:?}");
    }
}
