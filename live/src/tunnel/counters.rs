//! What a tunnel counts.

use serde::Serialize;

/// What has happened since the tunnel began; names are stable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Packets read from the TUN device or the LAN, of wire size.
    pub packets_in: u64,
    /// Their bytes.
    pub bytes_in: u64,
    /// Packets written to the TUN device or the LAN.
    pub packets_out: u64,
    /// Their bytes.
    pub bytes_out: u64,
    /// Frames sent to the peer.
    pub frames_sent: u64,
    /// Frames received from the peer, authenticated where there is a key.
    pub frames_received: u64,
    /// Frames that could not be sent: no route, a full queue, or too long.
    pub send_errors: u64,
    /// Frames that were longer than the path carries, and left in fragments.
    pub fragmented: u64,
    /// Datagrams of the link itself that a route led back into it; they are dropped.
    pub looped: u64,
    /// Datagrams that were too short for their kind, or of no known kind.
    pub truncated: u64,
    /// Datagrams that failed authentication.
    pub forged: u64,
    /// Frames that left in short form.
    pub compressed: u64,
    /// Frames that crossed in short form and cannot be read: malformed, or of a run that has ended.
    pub unreadable: u64,
    /// Datagrams that had been received before.
    pub replayed: u64,
    /// Datagrams that came too late for the anti-replay window.
    pub reordered_too_far: u64,
    /// Datagrams under the key of a session that has ended.
    pub unknown_session: u64,
    /// Handshake messages beyond what this end answers in a second.
    pub handshakes_refused: u64,
    /// Handshake messages answered with a cookie, since there were many.
    pub challenged: u64,
    /// Sessions begun: the first one, new keys, restarts of the peer.
    pub sessions: u64,
    /// Times that the peer's address changed.
    pub peer_moves: u64,
    /// Packets lost between the kernel and the device, in both directions.
    pub device_drops: u64,
}
