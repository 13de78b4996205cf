//! What fuzz targets call of the tunnel, which this crate keeps to itself.

use super::channel::Channel;
use super::datagram::Datagram;
use super::message::Message;
use super::noise::NoiseChannel;
use super::parts::{self, Parts};
use super::{Address, Counters, Keys, Rekey};
use airmend_proto::Instant;
use bytes::{Bytes, BytesMut};

/// Takes a datagram apart, and what a frame in it may be, without a key. The message that the
/// bytes are, written again.
pub fn read_datagram(bytes: &[u8]) -> Option<Vec<u8>> {
    // It only points into the bytes.
    let _ = Datagram::parse(bytes);
    Message::parse(bytes).map(|message| message.bytes(bytes.len()))
}

/// Cuts a frame into parts of at most `room` bytes; `None` if that takes too many.
pub fn cut(number: u32, frame: &[u8], room: usize) -> Option<Vec<Vec<u8>>> {
    parts::split(number, frame, room).map(|all| all.map(|part| part.bytes(0)).collect())
}

/// Puts frames in parts together.
#[derive(Default)]
pub struct Whole(Parts);

impl Whole {
    /// Takes any bytes; the frame whose last part they are.
    pub fn push(&mut self, bytes: &[u8]) -> Option<Bytes> {
        match Message::parse(bytes) {
            Some(Message::Part { number, part, of, bytes }) => {
                self.0.push(number, part, of, Bytes::copy_from_slice(bytes))
            }
            _ => None,
        }
    }
}

/// One end of a channel.
pub struct End(NoiseChannel);

impl End {
    /// An end; with a peer's address it initiates.
    pub fn new(keys: Keys, rekey: Rekey, peer: Option<Address>) -> Self {
        Self(NoiseChannel::new(keys, rekey, peer))
    }

    /// The datagram of a frame; empty if none can be sent now.
    pub fn seal(&mut self, now: Instant, frame: &[u8]) -> Vec<u8> {
        let mut datagram = Vec::new();
        self.0.seal(now, frame, &mut datagram);
        datagram
    }

    /// The frame of a datagram from this address.
    pub fn receive(&mut self, now: Instant, from: Address, datagram: &[u8]) -> Option<Vec<u8>> {
        let mut frame = BytesMut::new();
        let is_there = self.0.receive(now, from, datagram, &mut frame);
        assert_eq!(is_there, !frame.is_empty());
        is_there.then(|| frame.to_vec())
    }

    /// Does what is due, and takes the datagrams that the channel originates.
    pub fn step(&mut self, now: Instant) -> Vec<(Address, Vec<u8>)> {
        self.0.handle_timeout(now);
        while self.0.poll_notice().is_some() {}
        std::iter::from_fn(|| self.0.poll_transmit()).collect()
    }

    /// The counters so far.
    pub fn counters(&self) -> &Counters {
        self.0.counters()
    }
}
