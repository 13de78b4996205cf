//! What fuzz targets and tests call of the tunnel, which this crate keeps to itself.

mod hub;

pub use hub::Hub;

use super::datagram::Datagram;
use super::message::Message;
use super::parts::{self, Parts};
use airmend_proto::{Ecn, Instant};
use bytes::Bytes;

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
pub struct Whole(Parts);

impl Default for Whole {
    fn default() -> Self {
        Self(Parts::new(usize::MAX))
    }
}

impl Whole {
    /// Takes any bytes; the frame whose last part they are.
    pub fn push(&mut self, bytes: &[u8]) -> Option<Bytes> {
        match Message::parse(bytes) {
            Some(Message::Part { number, part, of, bytes }) => self
                .0
                .push(Instant::ZERO, number, (part, of), bytes, Ecn::NotEct)
                .map(|(whole, _)| whole),
            _ => None,
        }
    }
}
