//! What is checked before anything expensive: mac1, mac2 and cookies, as in WireGuard (§5.4.4,
//! §5.4.7 of its paper), with its primitives, but that mac2 also shows who the sender is.
//!
//! ```text
//! mac1    BLAKE2s-128 under the hash of the receiver's public key, over all before it
//! pair    BLAKE2s-256 of `pair----` and the X25519 product of both ends' static keys
//! mac2    BLAKE2s-128 under the pair's key, over all before it; with a cookie, under
//!         BLAKE2s-128 of the cookie under the pair's key
//! cookie  BLAKE2s-128 of the source's address and port under a secret of the receiver
//! ```
//!
//! So a receiver knows by one hash for each of its peers which one a message is from, and that it
//! is none of a stranger's, who cannot tell whose it is. An older end has zeros in mac2, and under
//! load WireGuard's mac2, under the cookie itself.
//!
//! A cookie crosses the path under XChaCha20-Poly1305 with the mac1 that it answers as associated
//! data: only who has seen a handshake message can make its sender believe a cookie.

use super::limits::address_bytes;
use crate::tunnel::carrier::Address;
use crate::tunnel::datagram::{MAC_LEN, NONCE_LEN, SEALED_COOKIE_LEN, cookie_reply};
use crate::tunnel::key::{PrivateKey, PublicKey};
use crate::tunnel::random::random;
use airmend_proto::Instant;
use blake2::digest::consts::U16;
use blake2::digest::{Digest, Mac as _};
use blake2::{Blake2s256, Blake2sMac};
use chacha20poly1305::{AeadInPlace, Key, KeyInit, Tag, XChaCha20Poly1305, XNonce};
use std::time::Duration;

/// A secret, and so a cookie, is used for this time.
const COOKIE_LIFE: Duration = Duration::from_secs(120);
/// A cookie is not used in its last seconds, since its secret may be older than it.
const COOKIE_MARGIN: Duration = Duration::from_secs(5);

type Mac = [u8; MAC_LEN];
type Secret = [u8; 32];

/// The two keys that follow from a receiver's public key.
#[derive(Clone)]
pub(super) struct ReceiverKeys {
    mac1: Secret,
    cookie: Secret,
}

impl ReceiverKeys {
    pub(super) fn new(receiver: &PublicKey) -> Self {
        let derive = |label: &[u8]| {
            Blake2s256::new().chain_update(label).chain_update(receiver.bytes()).finalize().into()
        };
        Self { mac1: derive(b"mac1----"), cookie: derive(b"cookie--") }
    }

    /// Whether the sender of a handshake message knows the public key; in constant time.
    pub(super) fn has_mac1(&self, handshake: &[u8]) -> bool {
        let Some((rest, _)) = handshake.split_last_chunk::<MAC_LEN>() else { return false };
        self.ends_in_mac1(rest)
    }

    /// The same for a message without mac2.
    fn ends_in_mac1(&self, message: &[u8]) -> bool {
        message
            .split_last_chunk::<MAC_LEN>()
            .is_some_and(|(rest, mac1)| verify(&self.mac1, rest, mac1))
    }
}

/// The key that two ends have in common, and nobody else.
#[derive(Clone)]
pub(super) struct PairKey(Secret);

impl PairKey {
    /// Of this end and its peer.
    pub(super) fn new(own: &PrivateKey, peer: &PublicKey) -> Self {
        let common = own.agree(peer);
        Self(Blake2s256::new().chain_update(b"pair----").chain_update(common).finalize().into())
    }

    /// What mac2 is under where the sender has been given a cookie.
    fn with(&self, cookie: &Mac) -> Mac {
        mac(&self.0, cookie)
    }
}

/// Writes the MACs of one end's handshake messages.
pub(super) struct Stamp {
    keys: ReceiverKeys,
    /// None as an older end has none, and whoever knows no more than the receiver's public key.
    pair: Option<PairKey>,
    /// Of the last message, until a cookie has answered it.
    last_mac1: Option<Mac>,
    /// What mac2 is under, since the cookie came.
    cookie: Option<(Mac, Instant)>,
}

impl Stamp {
    /// For messages to the peer with this key.
    pub(super) fn new(peer: &PublicKey, pair: Option<PairKey>) -> Self {
        Self { keys: ReceiverKeys::new(peer), pair, last_mac1: None, cookie: None }
    }

    /// Appends mac1 and mac2 to a handshake message.
    pub(super) fn close(&mut self, now: Instant, message: &mut Vec<u8>) {
        let mac1 = self.append_mac1(message);
        self.last_mac1 = Some(mac1);
        self.cookie.take_if(|(_, since)| now - *since >= COOKIE_LIFE - COOKIE_MARGIN);
        let mac2 = match (&self.cookie, &self.pair) {
            (Some((key, _)), _) => mac(key, message),
            (None, Some(pair)) => mac(&pair.0, message),
            (None, None) => [0; MAC_LEN],
        };
        message.extend_from_slice(&mac2);
    }

    /// Appends mac1 alone.
    pub(super) fn append_mac1(&self, message: &mut Vec<u8>) -> Mac {
        let mac1 = mac(&self.keys.mac1, message);
        message.extend_from_slice(&mac1);
        mac1
    }

    /// Takes the cookie of a reply to the last message; false if it is not one. An older end
    /// `knows_pairs` not.
    pub(super) fn take_cookie(
        &mut self,
        now: Instant,
        knows_pairs: bool,
        nonce: &[u8; NONCE_LEN],
        sealed: &[u8; SEALED_COOKIE_LEN],
    ) -> bool {
        let Some(mac1) = self.last_mac1 else { return false };
        let (mut cookie, mut tag) = ([0; MAC_LEN], Tag::default());
        let (ciphertext, rest) = sealed.split_at(MAC_LEN);
        cookie.copy_from_slice(ciphertext);
        tag.copy_from_slice(rest);
        let cipher = XChaCha20Poly1305::new(Key::from_slice(&self.keys.cookie));
        let nonce = XNonce::from_slice(nonce);
        if cipher.decrypt_in_place_detached(nonce, &mac1, &mut cookie, &tag).is_err() {
            return false;
        }
        self.last_mac1 = None;
        let pair = self.pair.as_ref().filter(|_| knows_pairs);
        self.cookie = Some((pair.map_or(cookie, |pair| pair.with(&cookie)), now));
        true
    }
}

/// What the sender of a handshake message has shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Proof {
    /// It has the peer's private key, or has recorded a message of the peer.
    pub(super) key: bool,
    /// It receives what is sent to its address.
    pub(super) address: bool,
}

impl Proof {
    /// Whether the peer itself has sent the message within the life of a cookie.
    pub(super) fn is_fresh(self) -> bool {
        self.key && self.address
    }
}

/// Checks the MACs of a peer's handshake messages to this end.
pub(super) struct Check {
    keys: ReceiverKeys,
    pair: PairKey,
    secret: Option<(Secret, Instant)>,
}

impl Check {
    /// For the end with this key, and what it has in common with the peer.
    pub(super) fn new(own: &PublicKey, pair: PairKey) -> Self {
        Self { keys: ReceiverKeys::new(own), pair, secret: None }
    }

    /// Whether the sender knows this end's public key; in constant time.
    pub(super) fn has_mac1(&self, handshake: &[u8]) -> bool {
        self.keys.has_mac1(handshake)
    }

    /// The same for a message without mac2.
    pub(super) fn ends_in_mac1(&self, message: &[u8]) -> bool {
        self.keys.ends_in_mac1(message)
    }

    /// What mac2 shows of the sender at this address; each comparison is in constant time.
    pub(super) fn proof(&mut self, now: Instant, from: Address, handshake: &[u8]) -> Proof {
        let Some((rest, mac2)) = handshake.split_last_chunk::<MAC_LEN>() else {
            return Proof::default();
        };
        if verify(&self.pair.0, rest, mac2) {
            return Proof { key: true, address: false };
        }
        // Before the first cookie there is nothing that it could be.
        let cookie = if self.secret.is_some() { self.cookie(now, from) } else { None };
        cookie.map_or(Proof::default(), |cookie| {
            let key = verify(&self.pair.with(&cookie), rest, mac2);
            Proof { key, address: key || verify(&cookie, rest, mac2) }
        })
    }

    /// The reply to a handshake message, by which its sender can prove its address.
    pub(super) fn reply(
        &mut self,
        now: Instant,
        from: Address,
        handshake: &[u8],
    ) -> Option<Vec<u8>> {
        let (rest, _) = handshake.split_last_chunk::<MAC_LEN>()?;
        let (_, mac1) = rest.split_last_chunk::<MAC_LEN>()?;
        let mut cookie = self.cookie(now, from)?;
        let mut nonce = [0; NONCE_LEN];
        random(&mut nonce).ok()?;
        let cipher = XChaCha20Poly1305::new(Key::from_slice(&self.keys.cookie));
        let nonce_ref = XNonce::from_slice(&nonce);
        let tag = cipher.encrypt_in_place_detached(nonce_ref, mac1, &mut cookie).ok()?;
        Some(cookie_reply(&nonce, &cookie, &tag))
    }

    /// The cookie of an address; none if the system gives no random numbers.
    fn cookie(&mut self, now: Instant, from: Address) -> Option<Mac> {
        self.secret.take_if(|(_, since)| now - *since >= COOKIE_LIFE);
        if self.secret.is_none() {
            let mut secret = [0; 32];
            random(&mut secret).ok()?;
            self.secret = Some((secret, now));
        }
        self.secret.map(|(secret, _)| mac(&secret, &address_bytes(from)))
    }
}

fn keyed(key: &[u8], message: &[u8]) -> Option<Blake2sMac<U16>> {
    // The keys here are neither empty nor longer than 32 bytes.
    let keyed: Blake2sMac<U16> = blake2::digest::Mac::new_from_slice(key).ok()?;
    Some(keyed.chain_update(message))
}

fn mac(key: &[u8], message: &[u8]) -> Mac {
    keyed(key, message).map_or([0; MAC_LEN], |mac| mac.finalize().into_bytes().into())
}

fn verify(key: &[u8], message: &[u8], expected: &Mac) -> bool {
    keyed(key, message).is_some_and(|mac| mac.verify_slice(expected).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tunnel::datagram::Datagram;
    use crate::tunnel::key::PrivateKey;

    fn at(port: u16) -> Address {
        Address::Udp(([192, 0, 2, 1], port).into())
    }

    /// Of a dialer and its listener; `is_old` if the dialer is an older end.
    fn ends(is_old: bool) -> (Stamp, Check) {
        let [dialer, listener] = [(); 2].map(|()| PrivateKey::generate().expect("random bytes"));
        let (to, from) = (listener.public(), dialer.public());
        let pair = PairKey::new(&dialer, &to);
        let stamp = Stamp::new(&to, (!is_old).then_some(pair));
        (stamp, Check::new(&to, PairKey::new(&listener, &from)))
    }

    fn pair() -> (Stamp, Check) {
        ends(false)
    }

    fn stamped(stamp: &mut Stamp, now: Instant) -> Vec<u8> {
        let mut message = b"a handshake".to_vec();
        stamp.close(now, &mut message);
        message
    }

    fn answer(stamp: &mut Stamp, check: &mut Check, now: Instant, message: &[u8]) -> bool {
        let reply = check.reply(now, at(1), message).expect("random bytes");
        match Datagram::parse(&reply) {
            Some(Datagram::Cookie(knows_pairs, nonce, sealed)) => {
                stamp.take_cookie(now, knows_pairs, nonce, sealed)
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_mac_is_that_of_blake2s() {
        // Computed with another implementation: hashlib.blake2s(b"abc", key=bytes(range(32)),
        // digest_size=16).
        let key: Secret = std::array::from_fn(|at| at as u8);
        let text = mac(&key, b"abc").map(|byte| format!("{byte:02x}")).concat();
        assert_eq!(text, "61ba5f165c194692e09d12520cc4c74a");
    }

    #[test]
    fn only_who_knows_the_key_makes_mac1_and_every_bit_counts() {
        let (mut stamp, check) = pair();
        let message = stamped(&mut stamp, Instant::ZERO);
        assert!(check.has_mac1(&message) && !pair().1.has_mac1(&message));
        for bit in 0..8 * (message.len() - MAC_LEN) {
            let mut forged = message.clone();
            forged[bit / 8] ^= 1 << (bit % 8);
            assert!(!check.has_mac1(&forged), "bit {bit}");
        }
        for length in 0..message.len() {
            assert!(!check.has_mac1(&message[..length]), "{length} bytes");
        }
    }

    #[test]
    fn a_cookie_proves_an_address_for_two_minutes_and_mac2_the_key() {
        for is_old in [false, true] {
            let ((mut stamp, mut check), now) = (ends(is_old), Instant::from_millis(1_000));
            let key = !is_old;
            let message = stamped(&mut stamp, now);
            let proof = |check: &mut Check, now, port, message: &[u8]| {
                let Proof { key, address } = check.proof(now, at(port), message);
                (key, address)
            };
            assert_eq!(proof(&mut check, now, 1, &message), (key, false), "no cookie yet");
            let nobody = &mut pair().1;
            assert_eq!(proof(nobody, now, 1, &message), (false, false), "another peer");
            assert!(answer(&mut stamp, &mut check, now, &message));
            let message = stamped(&mut stamp, now);
            assert_eq!(proof(&mut check, now, 1, &message), (key, true));
            let moved = proof(&mut check, now, 2, &message);
            assert_eq!(moved, (false, false), "another port");
            let late = proof(&mut check, now + COOKIE_LIFE, 1, &message);
            assert_eq!(late, (false, false), "another secret");
            let late = stamped(&mut stamp, now + COOKIE_LIFE);
            let proof = proof(&mut check, now + COOKIE_LIFE, 1, &late);
            assert_eq!(proof, (key, false), "an old cookie is not used");
            for bit in 0..8 * late.len() {
                let mut forged = late.clone();
                forged[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(check.proof(now, at(1), &forged), Proof::default(), "bit {bit}");
            }
        }
    }

    #[test]
    fn a_cookie_is_believed_once_and_only_for_the_last_message() {
        let ((mut stamp, mut check), now) = (pair(), Instant::from_millis(1_000));
        let other = stamped(&mut pair().0, now);
        let message = stamped(&mut stamp, now);
        assert!(!answer(&mut stamp, &mut check, now, &other), "it answers another message");
        assert!(!answer(&mut stamp, &mut pair().1, now, &message), "another key");
        assert!(answer(&mut stamp, &mut check, now, &message));
        assert!(!answer(&mut stamp, &mut check, now, &message), "once");
    }
}
