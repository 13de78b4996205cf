//! The channel to the peer, with a key or without.

use super::carrier::Address;
use super::counters::Counters;
use super::noise::{Keys, NoiseChannel, Rekey};
use super::notice::Notice;
use super::plain::PlainChannel;
use airmend_proto::Instant;
use bytes::BytesMut;

/// How frames are protected.
#[derive(Clone, Debug)]
pub enum Security {
    /// Authenticated and encrypted.
    Noise(Keys, Rekey),
    /// Not at all.
    Insecure,
}

/// The channel to one peer: frames become datagrams, and datagrams frames. Sans-I/O.
pub(super) trait Channel: Send {
    /// Bytes that the channel adds to each frame.
    fn overhead(&self) -> usize;

    /// The peer's address, if frames can be sent there now.
    fn peer(&self) -> Option<Address>;

    /// Appends the datagram with this frame to `out`; nothing if it cannot be sent.
    fn seal(&mut self, now: Instant, frame: &[u8], out: &mut Vec<u8>);

    /// Takes a datagram. True if its frame was appended to `out`.
    fn receive(&mut self, now: Instant, from: Address, datagram: &[u8], out: &mut BytesMut)
    -> bool;

    /// Acts on what is due.
    fn handle_timeout(&mut self, now: Instant);

    /// When `handle_timeout` has something to do.
    fn poll_timeout(&self) -> Option<Instant>;

    /// The next datagram of the channel's own.
    fn poll_transmit(&mut self) -> Option<(Address, Vec<u8>)>;

    /// The next thing that an operator should know.
    fn poll_notice(&mut self) -> Option<Notice>;

    /// What the channel counts.
    fn counters(&self) -> &Counters;
}

/// A channel; with a peer's address it speaks first.
pub(super) fn open(security: &Security, peer: Option<Address>) -> Box<dyn Channel> {
    match security {
        Security::Noise(keys, rekey) => Box::new(NoiseChannel::new(keys.clone(), *rekey, peer)),
        Security::Insecure => Box::new(PlainChannel::new(peer)),
    }
}
