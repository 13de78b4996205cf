//! What crosses between the two ends of a tunnel, before and after encryption.
//!
//! ```text
//! initiation   1 | Noise message (52)          payload: version, session of the initiator
//! response     2 | session (3) | Noise message payload: version, session of the responder
//! sealed       3 | session (3) | counter (8) | ciphertext | tag (16)
//! unknown      4 | session (3)                 the session that the sender does not know
//! open         5 | 0 (3) | frame               without a key
//! ```
//!
//! A session is named by the number that its receiver chose. All numbers are big-endian. A sealed
//! or open datagram without a frame keeps the path alive.

/// Bytes that encryption adds to a frame.
pub(super) const SEALED_OVERHEAD: usize = SEALED_HEADER + TAG_LEN;
/// Bytes before the ciphertext.
pub(super) const SEALED_HEADER: usize = 12;
/// Bytes of a Noise tag.
pub(super) const TAG_LEN: usize = 16;
/// Bytes before an open frame.
pub(super) const OPEN_HEADER: usize = 4;
/// A Noise key, a tag, and the payload of either handshake message.
pub(super) const HANDSHAKE_LEN: usize = 32 + PAYLOAD_LEN + TAG_LEN;
/// The payload of a handshake message: the version and a session.
pub(super) const PAYLOAD_LEN: usize = 4;

/// Names a session to the end that chose it.
pub(super) type SessionId = [u8; 3];

/// One datagram, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Datagram<'a> {
    /// The first message of a handshake.
    Initiation(&'a [u8; HANDSHAKE_LEN]),
    /// The second message, for the initiator that chose this session.
    Response(SessionId, &'a [u8; HANDSHAKE_LEN]),
    /// A frame under a session's key.
    Sealed(SessionId, u64, &'a [u8]),
    /// The answer to what was sealed for a session that has ended.
    Unknown(SessionId),
    /// A frame without encryption.
    Open(&'a [u8]),
}

impl<'a> Datagram<'a> {
    /// Takes a datagram apart; `None` if it is too short or of no known kind.
    pub(super) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        if *kind == 1 {
            return rest.try_into().ok().map(Datagram::Initiation);
        }
        let (session, rest) = rest.split_first_chunk::<3>()?;
        match kind {
            2 => rest.try_into().ok().map(|message| Datagram::Response(*session, message)),
            3 => {
                let (counter, ciphertext) = rest.split_first_chunk::<8>()?;
                let counter = u64::from_be_bytes(*counter);
                (ciphertext.len() >= TAG_LEN)
                    .then_some(Datagram::Sealed(*session, counter, ciphertext))
            }
            4 => rest.is_empty().then_some(Datagram::Unknown(*session)),
            5 => Some(Datagram::Open(rest)),
            _ => None,
        }
    }
}

/// An initiation around a Noise message.
pub(super) fn initiation(message: &[u8]) -> Vec<u8> {
    [&[1], message].concat()
}

/// A response for the initiator's session.
pub(super) fn response(session: SessionId, message: &[u8]) -> Vec<u8> {
    [&[2], &session[..], message].concat()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_read_as_it_was_written() {
        let message = [9; HANDSHAKE_LEN];
        let read = |bytes: &[u8]| Datagram::parse(bytes).map(|datagram| format!("{datagram:?}"));
        let expect = |datagram: Datagram<'_>| Some(format!("{datagram:?}"));
        assert_eq!(read(&initiation(&message)), expect(Datagram::Initiation(&message)));
        let session = [1, 2, 3];
        let written = response(session, &message);
        assert_eq!(read(&written), expect(Datagram::Response(session, &message)));
        let sealed = [&sealed_header(session, 77)[..], &[8; 20]].concat();
        assert_eq!(read(&sealed), expect(Datagram::Sealed(session, 77, &[8; 20])));
        assert_eq!(read(&unknown(session)), expect(Datagram::Unknown(session)));
        let open = [&open_header()[..], b"frame"].concat();
        assert_eq!(read(&open), expect(Datagram::Open(b"frame")));
    }

    #[test]
    fn what_is_cut_or_unknown_is_nothing() {
        let sealed = [&sealed_header([1, 2, 3], 77)[..], &[8; TAG_LEN]].concat();
        for cut in 0..sealed.len() {
            assert_eq!(Datagram::parse(&sealed[..cut]), None, "{cut}");
        }
        let initiation = initiation(&[0; HANDSHAKE_LEN]);
        assert_eq!(Datagram::parse(&initiation[..initiation.len() - 1]), None);
        assert_eq!(Datagram::parse(&[&initiation[..], &[0]].concat()), None);
        assert_eq!(Datagram::parse(&[6; 100]), None);
        assert_eq!(Datagram::parse(&[0; 100]), None);
    }
}
