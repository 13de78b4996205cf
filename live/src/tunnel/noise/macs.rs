//! What is checked before anything expensive: mac1, mac2 and cookies, as in WireGuard (§5.4.4,
//! §5.4.7 of its paper), with its primitives.
//!
//! ```text
//! mac1    BLAKE2s-128 under the hash of the receiver's public key, over all before it
//! mac2    BLAKE2s-128 under the cookie, over all before it; zeros without a cookie
//! cookie  BLAKE2s-128 of the source's address and port under a secret of the receiver
//! ```
//!
//! A cookie crosses the path under XChaCha20-Poly1305 with the mac1 that it answers as associated
//! data: only who has seen a handshake message can make its sender believe a cookie.

use super::limits::address_bytes;
use crate::tunnel::carrier::Address;
use crate::tunnel::datagram::{MAC_LEN, NONCE_LEN, SEALED_COOKIE_LEN, cookie_reply};
use crate::tunnel::key::PublicKey;
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
struct ReceiverKeys {
    mac1: Secret,
    cookie: Secret,
}

impl ReceiverKeys {
    fn new(receiver: &PublicKey) -> Self {
        let derive = |label: &[u8]| {
            Blake2s256::new().chain_update(label).chain_update(receiver.bytes()).finalize().into()
        };
        Self { mac1: derive(b"mac1----"), cookie: derive(b"cookie--") }
    }
}

/// Writes the MACs of one end's handshake messages.
pub(super) struct Stamp {
    keys: ReceiverKeys,
    /// Of the last message, until a cookie has answered it.
    last_mac1: Option<Mac>,
    cookie: Option<(Mac, Instant)>,
}

impl Stamp {
    /// For messages to the peer with this key.
    pub(super) fn new(peer: &PublicKey) -> Self {
        Self { keys: ReceiverKeys::new(peer), last_mac1: None, cookie: None }
    }

    /// Appends mac1 and mac2 to a handshake message.
    pub(super) fn close(&mut self, now: Instant, message: &mut Vec<u8>) {
        let mac1 = self.append_mac1(message);
        self.last_mac1 = Some(mac1);
        self.cookie.take_if(|(_, since)| now - *since >= COOKIE_LIFE - COOKIE_MARGIN);
        let mac2 = self.cookie.map_or([0; MAC_LEN], |(cookie, _)| mac(&cookie, message));
        message.extend_from_slice(&mac2);
    }

    /// Appends mac1 alone.
    pub(super) fn append_mac1(&self, message: &mut Vec<u8>) -> Mac {
        let mac1 = mac(&self.keys.mac1, message);
        message.extend_from_slice(&mac1);
        mac1
    }

    /// Takes the cookie of a reply to the last message; false if it is not one.
    pub(super) fn take_cookie(
        &mut self,
        now: Instant,
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
        self.cookie = Some((cookie, now));
        true
    }
}

/// Checks the MACs of handshake messages to this end.
pub(super) struct Check {
    keys: ReceiverKeys,
    secret: Option<(Secret, Instant)>,
}

impl Check {
    /// For the end with this key.
    pub(super) fn new(own: &PublicKey) -> Self {
        Self { keys: ReceiverKeys::new(own), secret: None }
    }

    /// Whether the sender knows this end's public key; in constant time.
    pub(super) fn has_mac1(&self, handshake: &[u8]) -> bool {
        let Some((rest, _)) = handshake.split_last_chunk::<MAC_LEN>() else { return false };
        self.ends_in_mac1(rest)
    }

    /// The same for a message without mac2.
    pub(super) fn ends_in_mac1(&self, message: &[u8]) -> bool {
        message
            .split_last_chunk::<MAC_LEN>()
            .is_some_and(|(rest, mac1)| verify(&self.keys.mac1, rest, mac1))
    }

    /// Whether the sender has received a cookie at this address; in constant time.
    pub(super) fn has_mac2(&mut self, now: Instant, from: Address, handshake: &[u8]) -> bool {
        let Some((rest, mac2)) = handshake.split_last_chunk::<MAC_LEN>() else { return false };
        self.cookie(now, from).is_some_and(|cookie| verify(&cookie, rest, mac2))
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

    fn pair() -> (Stamp, Check) {
        let key = PrivateKey::generate().expect("random bytes").public();
        (Stamp::new(&key), Check::new(&key))
    }

    fn stamped(stamp: &mut Stamp, now: Instant) -> Vec<u8> {
        let mut message = b"a handshake".to_vec();
        stamp.close(now, &mut message);
        message
    }

    fn answer(stamp: &mut Stamp, check: &mut Check, now: Instant, message: &[u8]) -> bool {
        let reply = check.reply(now, at(1), message).expect("random bytes");
        match Datagram::parse(&reply) {
            Some(Datagram::Cookie(nonce, sealed)) => stamp.take_cookie(now, nonce, sealed),
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
    fn a_cookie_proves_an_address_for_two_minutes() {
        let ((mut stamp, mut check), now) = (pair(), Instant::from_millis(1_000));
        let message = stamped(&mut stamp, now);
        assert!(!check.has_mac2(now, at(1), &message), "no cookie yet");
        assert!(answer(&mut stamp, &mut check, now, &message));
        let message = stamped(&mut stamp, now);
        assert!(check.has_mac2(now, at(1), &message));
        assert!(!check.has_mac2(now, at(2), &message), "another port");
        assert!(!check.has_mac2(now + COOKIE_LIFE, at(1), &message), "another secret");
        let late = stamped(&mut stamp, now + COOKIE_LIFE);
        assert_eq!(late[late.len() - MAC_LEN..], [0; MAC_LEN], "an old cookie is not used");
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
