//! The channel to the peer, with a key or without.

use super::carrier::Address;
use super::counters::Counters;
use super::notice::Notice;
use airmend_proto::Instant;
use bytes::BytesMut;

/// The channel to one peer: frames become datagrams, and datagrams frames. Sans-I/O.
pub(super) trait Channel: Send {
    /// Bytes that the channel adds to each frame.
    fn overhead(&self) -> usize;

    /// The peer's address, if frames can be sent there now.
    fn peer(&self) -> Option<Address>;

    /// Appends the datagram with this frame to `out`; nothing if it cannot be sent.
    fn seal(&mut self, now: Instant, frame: &[u8], out: &mut Vec<u8>);

    /// Handles a datagram from the peer. True if its frame was appended to `out`.
    fn receive(&mut self, now: Instant, from: Address, datagram: &[u8], out: &mut BytesMut)
    -> bool;

    /// Whether a datagram that names no session of this end seems to be from the peer, so far as a
    /// hash tells.
    fn is_for(&mut self, now: Instant, from: Address, datagram: &[u8]) -> bool;

    /// This end initiates, and the peer is at one of these addresses: the first one is tried first.
    fn initiate(&mut self, addresses: &[Address]);

    /// Nothing has come from the peer for too long: the operator is told, and whoever initiates
    /// begins anew.
    fn handle_silence(&mut self, now: Instant);

    /// When the newest session began, if there is one.
    fn established(&self) -> Option<Instant>;

    /// Handles the timeouts that have expired.
    fn handle_timeout(&mut self, now: Instant);

    /// The next timeout.
    fn poll_timeout(&self) -> Option<Instant>;

    /// The next datagram that the channel itself originates: a handshake or a keepalive.
    fn poll_transmit(&mut self) -> Option<(Address, Vec<u8>)>;

    /// The next notice for the operator.
    fn poll_notice(&mut self) -> Option<Notice>;

    /// Goes on counting from here.
    fn resume(&mut self, counters: Counters);

    /// The counters of the channel.
    fn counters(&self) -> &Counters;
}
