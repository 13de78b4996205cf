//! Decides which handshake messages are worth a key agreement.
//!
//! A message must have mac1. The first few in a second need no more; beyond them a sender must
//! prove its address by a cookie, and then has a rate of its own.

use super::limits::Sources;
use super::macs::Check;
use crate::rate::{Bucket, Rate};
use crate::tunnel::carrier::Address;
use crate::tunnel::key::PublicKey;
use airmend_proto::Instant;

/// Key agreements for senders without a cookie: more than that is load.
const UNPROVEN: Rate = Rate::per_second(10, 10);
/// Key agreements for one source with a cookie; a peer that retries needs 10 a second.
const PER_SOURCE: Rate = Rate::per_second(20, 5);
/// Key agreements for all sources with a cookie: about a twentieth of a core.
const PROVEN: Rate = Rate::per_second(500, 50);
/// Cookies sent.
const CHALLENGES: Rate = Rate::per_second(20_000, 1_000);

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
    unproven: Bucket,
    proven: Bucket,
    challenges: Bucket,
    sources: Sources,
}

impl Gate {
    /// For the end with this key.
    pub(super) fn new(own: &PublicKey) -> Self {
        Self {
            check: Check::new(own),
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

    /// Decides about a handshake message that has mac1.
    pub(super) fn admit(&mut self, now: Instant, from: Address, handshake: &[u8]) -> Verdict {
        if self.unproven.take(UNPROVEN, now) {
            return Verdict::Admit;
        }
        if self.check.has_mac2(now, from, handshake) {
            let is_within =
                self.sources.take(PER_SOURCE, now, from) && self.proven.take(PROVEN, now);
            return if is_within { Verdict::Admit } else { Verdict::Refuse };
        }
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

    fn message(stamp: &mut Stamp, now: Instant) -> Vec<u8> {
        let mut message = b"a handshake".to_vec();
        stamp.close(now, &mut message);
        message
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]

        /// Whatever strangers send, who know the public key: their key agreements are bounded, and
        /// the peer is admitted as soon as it has a cookie.
        #[test]
        fn a_flood_costs_little_and_the_peer_is_admitted(
            hosts in 1u16..2_000,
            per_millisecond in 1usize..20,
            peer_at in 1u64..900,
        ) {
            let key = PrivateKey::generate().expect("random bytes").public();
            let (mut gate, mut strangers, mut peer) =
                (Gate::new(&key), Stamp::new(&key), Stamp::new(&key));
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
                        Verdict::Challenge(reply) => match Datagram::parse(&reply) {
                            Some(Datagram::Cookie(nonce, sealed)) => {
                                prop_assert!(peer.take_cookie(now, nonce, sealed));
                            }
                            other => prop_assert!(false, "{other:?}"),
                        },
                        Verdict::Refuse => {}
                    }
                }
            }
            prop_assert!(agreements <= 10 + 2 * 10, "{agreements}");
            prop_assert!(admitted.is_some_and(|after| after <= 100), "{admitted:?}");
        }
    }

    #[test]
    fn a_source_with_a_cookie_has_its_own_rate() {
        let key = PrivateKey::generate().expect("random bytes").public();
        let (mut gate, mut stamp) = (Gate::new(&key), Stamp::new(&key));
        let mut admitted = [0; 2];
        for millisecond in 0..1_000u64 {
            let now = Instant::from_millis(5_000 + millisecond);
            let bytes = message(&mut stamp, now);
            match gate.admit(now, at(1, 1), &bytes) {
                Verdict::Admit => admitted[0] += 1,
                Verdict::Challenge(reply) => {
                    let Some(Datagram::Cookie(nonce, sealed)) = Datagram::parse(&reply) else {
                        panic!("no cookie");
                    };
                    assert!(stamp.take_cookie(now, nonce, sealed));
                    admitted[1] += 1;
                }
                Verdict::Refuse => {}
            }
        }
        // 19 without a cookie, 24 with one.
        assert!((40..=45).contains(&admitted[0]) && admitted[1] == 1, "{admitted:?}");
    }
}
