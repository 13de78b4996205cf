//! The two messages of `Noise_KKpsk2_25519_AESGCM_SHA256` (Noise Protocol Framework, revision 34).
//!
//! Both ends know each other's public key before. The first message proves who the initiator is
//! and when it was made, the second one that the responder is there now and has the same pre-shared
//! key. Without a pre-shared key that is 32 zeros, as in WireGuard.

use super::names::{Name, Names};
use super::timestamp::{TIMESTAMP_LEN, Timestamp};
use crate::tunnel::datagram::{
    INITIATION_1_LEN, INITIATION_LEN, INITIATION_PAYLOAD, RESPONSE_LEN, RESPONSE_PAYLOAD,
    SessionId, VERSION,
};
use crate::tunnel::key::{PresharedKey, PrivateKey, PublicKey};
use airmend_proto::Instant;
use snow::params::NoiseParams;
use snow::{Builder, HandshakeState, StatelessTransportState};

const PATTERN: &str = "Noise_KKpsk2_25519_AESGCM_SHA256";
/// Both ends must mean the same protocol.
const PROLOGUE: &[u8; 14] =
    &[b'a', b'i', b'r', b'm', b'e', b'n', b'd', b' ', b'l', b'i', b'n', b'k', b' ', VERSION];
/// The message whose key the pre-shared one goes into.
const PSK_AT: u8 = 2;
const PATTERN_1: &str = "Noise_KK_25519_AESGCM_SHA256";
const PROLOGUE_1: &[u8] = b"airmend link";
const NO_PSK: [u8; 32] = [0; 32];

/// The keys of this end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys {
    /// This end's own key.
    pub private: PrivateKey,
    /// The peer's key; this end's own public key where both ends share one key file.
    pub peer: PublicKey,
    /// A secret that both ends have beside their keys.
    pub psk: Option<PresharedKey>,
}

/// A handshake that waits for its response.
pub(super) struct Attempt {
    pub(super) initiation: Initiation,
    pub(super) begun: Instant,
    pub(super) next: Instant,
}

/// The initiator between its message and the response.
pub(super) struct Initiation {
    state: HandshakeState,
    /// Of the session, as the response will name it.
    name: Name,
    /// The Noise message.
    pub(super) message: Vec<u8>,
}

impl Initiation {
    /// A new handshake; `None` if the system has no random numbers left.
    pub(super) fn new(keys: &Keys, names: &Names, timestamp: Timestamp) -> Option<Self> {
        Self::begin(builder(keys)?.build_initiator().ok()?, names.draw()?, timestamp)
    }

    fn begin(mut state: HandshakeState, name: Name, timestamp: Timestamp) -> Option<Self> {
        let [a, b, c] = name.id();
        let payload = [&timestamp[..], &[0, a, b, c]].concat();
        let mut message = vec![0; INITIATION_LEN];
        let length = state.write_message(&payload, &mut message).ok()?;
        message.truncate(length);
        Some(Self { state, name, message })
    }

    /// The session that the response will name.
    pub(super) fn id(&self) -> SessionId {
        self.name.id()
    }

    /// The responder's session, if the response is genuine. A forged one changes nothing.
    pub(super) fn accept(&mut self, response: &[u8; RESPONSE_LEN]) -> Option<SessionId> {
        let mut buffer = [0; RESPONSE_LEN];
        let length = self.state.read_message(response, &mut buffer).ok()?;
        match *buffer.get(..length)? {
            [_, a, b, c] => Some([a, b, c]),
            _ => None,
        }
    }

    /// The session's name and keys, after a response was accepted.
    pub(super) fn into_transport(self) -> Option<(Name, StatelessTransportState)> {
        Some((self.name, self.state.into_stateless_transport_mode().ok()?))
    }
}

/// An initiation that is authentic.
pub(super) struct Request {
    state: HandshakeState,
    peer_id: SessionId,
    /// When the initiator made it.
    pub(super) timestamp: Timestamp,
}

/// The response to an initiation.
pub(super) struct Response {
    /// The initiator's session.
    pub(super) peer_id: SessionId,
    /// Of this end's session.
    pub(super) name: Name,
    /// The Noise message for the initiator.
    pub(super) message: Vec<u8>,
    /// The keys.
    pub(super) transport: StatelessTransportState,
}

impl Request {
    /// Reads an initiation; `None` if it is forged.
    pub(super) fn read(keys: &Keys, initiation: &[u8; INITIATION_LEN]) -> Option<Self> {
        Self::take(builder(keys)?.build_responder().ok()?, initiation)
    }

    fn take(mut state: HandshakeState, initiation: &[u8; INITIATION_LEN]) -> Option<Self> {
        let mut buffer = [0; INITIATION_LEN];
        let length = state.read_message(initiation, &mut buffer).ok()?;
        let payload: [u8; INITIATION_PAYLOAD] = buffer.get(..length)?.try_into().ok()?;
        let (timestamp, session) = payload.split_first_chunk::<TIMESTAMP_LEN>()?;
        let [_, a, b, c] = *session else { return None };
        Some(Self { state, peer_id: [a, b, c], timestamp: *timestamp })
    }

    /// The response; `None` if the system has no random numbers left.
    pub(super) fn answer(self, names: &Names) -> Option<Response> {
        self.answer_as(names.draw()?)
    }

    fn answer_as(mut self, name: Name) -> Option<Response> {
        let [a, b, c] = name.id();
        let payload: [u8; RESPONSE_PAYLOAD] = [0, a, b, c];
        let mut message = vec![0; RESPONSE_LEN];
        let length = self.state.write_message(&payload, &mut message).ok()?;
        message.truncate(length);
        let transport = self.state.into_stateless_transport_mode().ok()?;
        Some(Response { peer_id: self.peer_id, name, message, transport })
    }
}

/// Whether this is the peer's initiation in version 1 of the protocol.
pub(super) fn is_version_1(keys: &Keys, initiation: &[u8; INITIATION_1_LEN]) -> bool {
    let state =
        with(keys, PATTERN_1, PROLOGUE_1).and_then(|builder| builder.build_responder().ok());
    let read = |mut state: HandshakeState| {
        state.read_message(initiation, &mut [0; INITIATION_1_LEN]).is_ok()
    };
    state.is_some_and(read)
}

fn builder(keys: &Keys) -> Option<Builder<'_>> {
    let psk = keys.psk.as_ref().map_or(&NO_PSK, PresharedKey::bytes);
    with(keys, PATTERN, PROLOGUE)?.psk(PSK_AT, psk).ok()
}

fn with<'a>(keys: &'a Keys, pattern: &str, prologue: &'a [u8]) -> Option<Builder<'a>> {
    let parameters: NoiseParams = pattern.parse().ok()?;
    Builder::new(parameters)
        .prologue(prologue)
        .and_then(|builder| builder.local_private_key(keys.private.bytes()))
        .and_then(|builder| builder.remote_public_key(keys.peer.bytes()))
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tunnel::datagram::{self, Datagram};
    use crate::tunnel::noise::macs::{PairKey, Stamp};
    use crate::tunnel::noise::session::Session;
    use airmend_proto::Instant;

    const DOCS: &str = include_str!("../../../../docs/link.md");

    /// The bytes with this name in the documentation.
    fn documented(name: &str) -> Vec<u8> {
        let (_, vectors) = DOCS.split_once("**Test vectors.**").expect("vectors");
        let (_, vectors) = vectors.split_once("```\n").expect("a block");
        let (vectors, _) = vectors.split_once("```").expect("its end");
        let named =
            |line: &&str| line.rsplit_once("  ").is_some_and(|(found, _)| found.trim() == name);
        let line = vectors.lines().find(named).unwrap_or_else(|| panic!("no {name}"));
        let digits = line.split_whitespace().next_back().expect("bytes").as_bytes();
        let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
        digits.chunks(2).map(byte).collect()
    }

    fn array<const N: usize>(name: &str) -> [u8; N] {
        documented(name).try_into().unwrap_or_else(|bytes| panic!("{name}: {bytes:?}"))
    }

    /// What the documentation says that each message is, with a pre-shared key and without one.
    /// The vectors were computed by another implementation of Noise, from its specification.
    #[test]
    fn a_handshake_is_that_of_the_documentation() {
        for (psk, suffix) in [(true, ""), (false, " without psk")] {
            let private = ["initiator private key", "responder private key"]
                .map(|name| PrivateKey::from(array(name)));
            let public = private.clone().map(|key| key.public());
            let shown = ["initiator public key", "responder public key"].map(documented);
            assert_eq!(public.map(|key| key.bytes().to_vec()), shown);
            let psk = psk.then(|| PresharedKey::from(array("psk")));
            let ends = [0, 1].map(|end| Keys {
                private: private[end].clone(),
                peer: public[1 - end],
                psk: psk.clone(),
            });
            let ephemeral = ["initiator ephemeral", "responder ephemeral"].map(array::<32>);
            assert_eq!(PROLOGUE[..], documented("prologue"));
            let fixed = |end: usize| {
                let builder = builder(&ends[end]).expect("keys");
                builder.fixed_ephemeral_key_for_testing_only(&ephemeral[end])
            };
            let sessions = ["initiator session", "responder session"].map(array::<3>);
            let name = |end: usize| Names::default().take(sessions[end]).expect("it is free");
            let stamped = |end: usize, mut message: Vec<u8>| {
                let pair = PairKey::new(&private[end], &public[1 - end]);
                Stamp::new(&public[1 - end], Some(pair)).close(Instant::ZERO, &mut message);
                message
            };

            let state = fixed(0).build_initiator().expect("keys");
            let mut begun =
                Initiation::begin(state, name(0), array("timestamp")).expect("a message");
            let initiation = stamped(0, datagram::initiation(&begun.message));
            assert_eq!(initiation, documented("initiation"));
            let Some(Datagram::Initiation(message)) = Datagram::parse(&initiation) else {
                panic!("no initiation");
            };
            let state = fixed(1).build_responder().expect("keys");
            let request = Request::take(state, message).expect("it is genuine");
            assert_eq!(request.timestamp, array("timestamp"));
            let answer = request.answer_as(name(1)).expect("a message");
            let response = stamped(1, datagram::response(answer.peer_id, &answer.message));
            assert_eq!(response, documented(&format!("response{suffix}")));
            let Some(Datagram::Response(id, message)) = Datagram::parse(&response) else {
                panic!("no response");
            };
            assert_eq!((id, begun.accept(message)), (sessions[0], Some(sessions[1])));
            let (name, transport) = begun.into_transport().expect("keys");
            let mut session = Session::new(name, sessions[1], transport, Instant::ZERO);
            let mut sealed = Vec::new();
            session.seal(b"frame", &mut sealed);
            assert_eq!(sealed, documented(&format!("sealed{suffix}")));
        }
    }
}
