//! What a tunnel counts.

use serde::Serialize;
use std::ops::AddAssign;

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
    /// Packets of a peer from an address that is not among its allowed ones; they are dropped.
    pub wrong_source: u64,
    /// Packets for an address that no peer has, or whose peer is not there; they are dropped.
    pub no_peer: u64,
    /// Datagrams of a peer beyond its share of a crowded socket; they are dropped unread.
    pub crowded_out: u64,
    /// Datagrams that the kernel has dropped, since the socket was full.
    pub socket_drops: u64,
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

impl AddAssign for Counters {
    fn add_assign(&mut self, more: Self) {
        let Self {
            packets_in,
            bytes_in,
            packets_out,
            bytes_out,
            frames_sent,
            frames_received,
            send_errors,
            fragmented,
            looped,
            wrong_source,
            no_peer,
            crowded_out,
            socket_drops,
            truncated,
            forged,
            compressed,
            unreadable,
            replayed,
            reordered_too_far,
            unknown_session,
            handshakes_refused,
            challenged,
            sessions,
            peer_moves,
            device_drops,
        } = more;
        self.packets_in += packets_in;
        self.bytes_in += bytes_in;
        self.packets_out += packets_out;
        self.bytes_out += bytes_out;
        self.frames_sent += frames_sent;
        self.frames_received += frames_received;
        self.send_errors += send_errors;
        self.fragmented += fragmented;
        self.looped += looped;
        self.wrong_source += wrong_source;
        self.no_peer += no_peer;
        self.crowded_out += crowded_out;
        self.socket_drops += socket_drops;
        self.truncated += truncated;
        self.forged += forged;
        self.compressed += compressed;
        self.unreadable += unreadable;
        self.replayed += replayed;
        self.reordered_too_far += reordered_too_far;
        self.unknown_session += unknown_session;
        self.handshakes_refused += handshakes_refused;
        self.challenged += challenged;
        self.sessions += sessions;
        self.peer_moves += peer_moves;
        self.device_drops += device_drops;
    }
}
