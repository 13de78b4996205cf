//! The two messages of `Noise_KK_25519_AESGCM_SHA256` (Noise Protocol Framework, revision 34).
//!
//! Both ends know each other's public key before. The first message proves who the initiator is,
//! the second one that the responder is there now.

use super::super::datagram::{HANDSHAKE_LEN, PAYLOAD_LEN, SessionId};
use super::super::key::{PrivateKey, PublicKey};
use super::super::random::random;
use snow::params::NoiseParams;
use snow::{Builder, HandshakeState, StatelessTransportState};

const PATTERN: &str = "Noise_KK_25519_AESGCM_SHA256";
/// Both ends must mean the same protocol.
const PROLOGUE: &[u8] = b"airmend link";
const VERSION: u8 = 1;

/// The keys of this end.
#[derive(Clone, Debug)]
pub struct Keys {
    /// This end's own key.
    pub private: PrivateKey,
    /// The peer's key; this end's own public key where both ends share one key file.
    pub peer: PublicKey,
}

/// The initiator between its message and the response.
pub(super) struct Initiation {
    state: HandshakeState,
    /// The session that the response will name.
    pub(super) id: SessionId,
    /// The Noise message.
    pub(super) message: Vec<u8>,
}

impl Initiation {
    /// A new handshake; `None` if the system has no random numbers left.
    pub(super) fn new(keys: &Keys) -> Option<Self> {
        let mut state = builder(keys)?.build_initiator().ok()?;
        let id = random_session()?;
        let mut message = vec![0; HANDSHAKE_LEN];
        let length = state.write_message(&payload(id), &mut message).ok()?;
        message.truncate(length);
        Some(Self { state, id, message })
    }

    /// The responder's session, if the response is genuine. A forged one changes nothing.
    pub(super) fn accept(&mut self, response: &[u8]) -> Option<SessionId> {
        let mut buffer = [0; HANDSHAKE_LEN];
        let length = self.state.read_message(response, &mut buffer).ok()?;
        parse_payload(buffer.get(..length)?)
    }

    /// The keys, after a response was accepted.
    pub(super) fn into_transport(self) -> Option<StatelessTransportState> {
        self.state.into_stateless_transport_mode().ok()
    }
}

/// The response to an initiation.
pub(super) struct Response {
    /// The initiator's session.
    pub(super) peer_id: SessionId,
    /// This end's session.
    pub(super) id: SessionId,
    /// The Noise message for the initiator.
    pub(super) message: Vec<u8>,
    /// The keys.
    pub(super) transport: StatelessTransportState,
}

/// Answers an initiation; `None` if it is forged.
pub(super) fn respond(keys: &Keys, initiation: &[u8]) -> Option<Response> {
    let mut state = builder(keys)?.build_responder().ok()?;
    let mut buffer = [0; HANDSHAKE_LEN];
    let length = state.read_message(initiation, &mut buffer).ok()?;
    let peer_id = parse_payload(buffer.get(..length)?)?;
    let id = random_session()?;
    let mut message = vec![0; HANDSHAKE_LEN];
    let length = state.write_message(&payload(id), &mut message).ok()?;
    message.truncate(length);
    let transport = state.into_stateless_transport_mode().ok()?;
    Some(Response { peer_id, id, message, transport })
}

fn builder(keys: &Keys) -> Option<Builder<'_>> {
    let parameters: NoiseParams = PATTERN.parse().ok()?;
    Builder::new(parameters)
        .prologue(PROLOGUE)
        .and_then(|builder| builder.local_private_key(keys.private.bytes()))
        .and_then(|builder| builder.remote_public_key(keys.peer.bytes()))
        .ok()
}

fn payload([a, b, c]: SessionId) -> [u8; PAYLOAD_LEN] {
    [VERSION, a, b, c]
}

fn parse_payload(payload: &[u8]) -> Option<SessionId> {
    match *payload {
        [VERSION, a, b, c] => Some([a, b, c]),
        _ => None,
    }
}

fn random_session() -> Option<SessionId> {
    let mut id = [0; 3];
    random(&mut id).ok()?;
    Some(id)
}
