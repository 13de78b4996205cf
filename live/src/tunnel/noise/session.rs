//! One session: a pair of keys, a counter to send with, a window to receive with.

use super::names::Name;
use super::replay::{ReplayWindow, Stale};
use crate::tunnel::datagram::{self, SEALED_HEADER, SessionId, TAG_LEN};
use airmend_proto::Instant;
use bytes::BytesMut;
use snow::StatelessTransportState;

/// Why a sealed datagram was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// The datagram failed authentication.
    Forged,
    /// The counter of the datagram is stale.
    Stale(Stale),
}

/// The keys that one handshake has made.
pub(super) struct Session {
    /// The identifier that the peer uses.
    name: Name,
    /// The identifier that this end uses.
    pub(super) peer_id: SessionId,
    /// The start of the session.
    pub(super) since: Instant,
    /// Bytes under its keys, in both directions.
    pub(super) bytes: u64,
    transport: StatelessTransportState,
    next_counter: u64,
    window: ReplayWindow,
}

impl Session {
    /// A session with the keys of a finished handshake.
    pub(super) fn new(
        name: Name,
        peer_id: SessionId,
        transport: StatelessTransportState,
        since: Instant,
    ) -> Self {
        let window = ReplayWindow::new();
        Self { name, peer_id, since, bytes: 0, transport, next_counter: 0, window }
    }

    /// The identifier that the peer uses.
    pub(super) fn id(&self) -> SessionId {
        self.name.id()
    }

    /// Appends a sealed datagram with this frame to `out`.
    pub(super) fn seal(&mut self, frame: &[u8], out: &mut Vec<u8>) {
        let counter = self.next_counter;
        self.next_counter += 1;
        self.bytes += frame.len() as u64;
        out.extend_from_slice(&datagram::sealed_header(self.peer_id, counter));
        let begin = out.len();
        out.resize(begin + frame.len() + TAG_LEN, 0);
        let result = self.transport.write_message(counter, frame, &mut out[begin..]);
        // Frames are shorter than what Noise allows; a longer one is not sent.
        if result.is_err() {
            out.truncate(begin - SEALED_HEADER);
        }
    }

    /// Appends the frame of a sealed datagram to `out`. `Ok(true)` if no datagram with a
    /// higher counter has come before.
    pub(super) fn open(
        &mut self,
        counter: u64,
        ciphertext: &[u8],
        out: &mut BytesMut,
    ) -> Result<bool, Refused> {
        self.window.check(counter).map_err(Refused::Stale)?;
        let begin = out.len();
        out.resize(begin + ciphertext.len(), 0);
        let Ok(length) = self.transport.read_message(counter, ciphertext, &mut out[begin..]) else {
            out.truncate(begin);
            return Err(Refused::Forged);
        };
        out.truncate(begin + length);
        self.bytes += length as u64;
        Ok(self.window.mark(counter))
    }
}
