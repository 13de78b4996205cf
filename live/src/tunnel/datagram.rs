//! What crosses between the two ends of a tunnel, before and after encryption.
//!
//! ```text
//! initiation   1 | version (1) | 0 (2) | Noise message (64) | mac1 (16) | mac2 (16)
//!                                              payload: TAI64N (12), 0 (1), session (3)
//! response     2 | session (3) | Noise message (52) | mac1 (16) | mac2 (16)
//!                                              payload: 0 (1), session of the responder (3)
//! sealed       3 | session (3) | counter (8) | ciphertext | tag (16)
//! unknown      4 | session (3)                 the session that the sender does not know
//! open         5 | 0 (3) | frame               without a key
//! cookie       6 | knows pairs (1) | 0 (2) | nonce (24) | ciphertext (16) | tag (16)
//! version      7 | version (1) | 0 (2) | mac1 (16)      the version that the sender speaks
//! ```
//!
//! A session is named by the number that its receiver chose. All numbers are big-endian. A sealed
//! or open datagram without a frame keeps the path alive. In every version from 2 on an initiation
//! begins with its version and ends in mac1 and mac2; in version 1 it was 53 bytes without either.

/// The version of the protocol between the two ends.
pub(super) const VERSION: u8 = 2;
/// Bytes that encryption adds to a frame.
pub(super) const SEALED_OVERHEAD: usize = SEALED_HEADER + TAG_LEN;
/// Bytes before the ciphertext.
pub(super) const SEALED_HEADER: usize = 12;
/// Bytes of a Noise tag.
pub(super) const TAG_LEN: usize = 16;
/// Bytes before an open frame.
pub(super) const OPEN_HEADER: usize = 4;
/// Bytes of mac1, mac2 and a cookie.
pub(super) const MAC_LEN: usize = 16;
/// Bytes of the nonce of a cookie.
pub(super) const NONCE_LEN: usize = 24;
/// Bytes of an encrypted cookie.
pub(super) const SEALED_COOKIE_LEN: usize = MAC_LEN + TAG_LEN;
/// The payload of an initiation: a time and a session.
pub(super) const INITIATION_PAYLOAD: usize = 16;
/// The payload of a response: a session.
pub(super) const RESPONSE_PAYLOAD: usize = 4;
/// A Noise key, the payload of an initiation, and a tag.
pub(super) const INITIATION_LEN: usize = 32 + INITIATION_PAYLOAD + TAG_LEN;
/// A Noise key, the payload of a response, and a tag.
pub(super) const RESPONSE_LEN: usize = 32 + RESPONSE_PAYLOAD + TAG_LEN;
/// The Noise message of an initiation of version 1.
pub(super) const INITIATION_1_LEN: usize = 52;

const MACS: usize = 2 * MAC_LEN;

/// Names a session to the end that chose it.
pub(super) type SessionId = [u8; 3];

/// One datagram, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Datagram<'a> {
    /// The first message of a handshake.
    Initiation(&'a [u8; INITIATION_LEN]),
    /// The first message of a handshake of version 1.
    Initiation1(&'a [u8; INITIATION_1_LEN]),
    /// The first message of a handshake of a later version, which ends in mac1 and mac2.
    OtherInitiation(u8),
    /// The second message, for the initiator that chose this session.
    Response(SessionId, &'a [u8; RESPONSE_LEN]),
    /// A frame under a session's key.
    Sealed(SessionId, u64, &'a [u8]),
    /// The answer to what was sealed for a session that has ended.
    Unknown(SessionId),
    /// A frame without encryption.
    Open(&'a [u8]),
    /// Whether its sender knows the key of a pair of ends, a nonce and an encrypted cookie.
    Cookie(bool, &'a [u8; NONCE_LEN], &'a [u8; SEALED_COOKIE_LEN]),
    /// The version of the peer; the datagram ends in mac1.
    Version(u8),
}

impl<'a> Datagram<'a> {
    /// Takes a datagram apart; `None` if it is too short or of no known kind.
    pub(super) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        if let (1, Ok(message)) = (kind, rest.try_into()) {
            return Some(Datagram::Initiation1(message));
        }
        let (session, rest) = rest.split_first_chunk::<3>()?;
        match (kind, *session) {
            (1, [VERSION, 0, 0]) => {
                let (message, macs) = rest.split_first_chunk()?;
                (macs.len() == MACS).then_some(Datagram::Initiation(message))
            }
            (1, [version, ..]) => {
                let is_later = version > VERSION && rest.len() >= MACS;
                is_later.then_some(Datagram::OtherInitiation(version))
            }
            (2, session) => {
                let (message, macs) = rest.split_first_chunk()?;
                (macs.len() == MACS).then_some(Datagram::Response(session, message))
            }
            (3, session) => {
                let (counter, ciphertext) = rest.split_first_chunk::<8>()?;
                let counter = u64::from_be_bytes(*counter);
                (ciphertext.len() >= TAG_LEN)
                    .then_some(Datagram::Sealed(session, counter, ciphertext))
            }
            (4, session) => rest.is_empty().then_some(Datagram::Unknown(session)),
            (5, _) => Some(Datagram::Open(rest)),
            (6, [knows_pairs, ..]) => {
                let (nonce, cookie) = rest.split_first_chunk()?;
                let cookie = cookie.try_into().ok()?;
                Some(Datagram::Cookie(knows_pairs != 0, nonce, cookie))
            }
            (7, [version, ..]) => (rest.len() == MAC_LEN).then_some(Datagram::Version(version)),
            _ => None,
        }
    }
}

/// An initiation around a Noise message, before its MACs.
pub(super) fn initiation(message: &[u8]) -> Vec<u8> {
    [&[1, VERSION, 0, 0], message].concat()
}

/// A response for the initiator's session, before its MACs.
pub(super) fn response([a, b, c]: SessionId, message: &[u8]) -> Vec<u8> {
    [&[2, a, b, c], message].concat()
}

/// The header of a sealed datagram.
pub(super) fn sealed_header([a, b, c]: SessionId, counter: u64) -> [u8; SEALED_HEADER] {
    let [c0, c1, c2, c3, c4, c5, c6, c7] = counter.to_be_bytes();
    [3, a, b, c, c0, c1, c2, c3, c4, c5, c6, c7]
}

/// Tells the other end that this session is not known here.
pub(super) fn unknown([a, b, c]: SessionId) -> Vec<u8> {
    vec![4, a, b, c]
}

/// The header of an open datagram.
pub(super) const fn open_header() -> [u8; OPEN_HEADER] {
    [5, 0, 0, 0]
}

/// A cookie for the sender of a handshake message.
pub(super) fn cookie_reply(nonce: &[u8; NONCE_LEN], cookie: &[u8], tag: &[u8]) -> Vec<u8> {
    [&[6, 1, 0, 0], &nonce[..], cookie, tag].concat()
}

/// Tells the other end which version is spoken here, before its mac1.
pub(super) fn version() -> Vec<u8> {
    vec![7, VERSION, 0, 0]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A datagram of each kind, as it is written, and how it is read.
    fn kinds() -> Vec<(Vec<u8>, Datagram<'static>)> {
        let session = [1, 2, 3];
        let macs = [7; MACS];
        vec![
            (
                [initiation(&[9; INITIATION_LEN]), macs.to_vec()].concat(),
                Datagram::Initiation(&[9; INITIATION_LEN]),
            ),
            (
                [response(session, &[9; RESPONSE_LEN]), macs.to_vec()].concat(),
                Datagram::Response(session, &[9; RESPONSE_LEN]),
            ),
            (
                [&sealed_header(session, 77)[..], &[8; 20]].concat(),
                Datagram::Sealed(session, 77, &[8; 20]),
            ),
            (unknown(session), Datagram::Unknown(session)),
            ([&open_header()[..], b"frame"].concat(), Datagram::Open(b"frame")),
            (
                cookie_reply(&[4; NONCE_LEN], &[5; MAC_LEN], &[5; TAG_LEN]),
                Datagram::Cookie(true, &[4; NONCE_LEN], &[5; SEALED_COOKIE_LEN]),
            ),
            ([version(), vec![7; MAC_LEN]].concat(), Datagram::Version(VERSION)),
        ]
    }

    #[test]
    fn every_kind_is_read_as_it_was_written() {
        for (bytes, datagram) in kinds() {
            assert_eq!(Datagram::parse(&bytes), Some(datagram));
        }
        let old = [&[1][..], &[9; INITIATION_1_LEN]].concat();
        assert_eq!(Datagram::parse(&old), Some(Datagram::Initiation1(&[9; INITIATION_1_LEN])));
        let later = [&[1, 3, 9, 9][..], &[9; 200]].concat();
        assert_eq!(Datagram::parse(&later), Some(Datagram::OtherInitiation(3)));
    }

    #[test]
    fn what_is_cut_or_unknown_is_nothing() {
        for (bytes, datagram) in kinds() {
            let least = match datagram {
                Datagram::Open(_) => OPEN_HEADER,
                Datagram::Sealed(..) => SEALED_OVERHEAD,
                _ => bytes.len(),
            };
            for cut in (0..least).filter(|cut| bytes[0] != 1 || *cut != 1 + INITIATION_1_LEN) {
                assert_eq!(Datagram::parse(&bytes[..cut]), None, "{datagram:?} of {cut} bytes");
            }
            if !matches!(datagram, Datagram::Open(_) | Datagram::Sealed(..)) {
                assert_eq!(Datagram::parse(&[&bytes[..], &[0]].concat()), None, "{datagram:?}");
            }
        }
        assert_eq!(Datagram::parse(&[8; 100]), None);
        assert_eq!(Datagram::parse(&[0; 100]), None);
    }

    #[test]
    fn no_reply_to_a_stranger_is_longer_than_what_it_answers() {
        let of = |at: usize| kinds()[at].0.len();
        let [initiation, response, cookie, version] = [0, 1, 5, 6].map(of);
        assert!(response <= initiation && cookie <= response && version <= 4 + MACS);
    }
}
