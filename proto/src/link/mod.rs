//! The link model: queue, serialise, draw fate, propagate, deliver. A lost frame has used its airtime.

use crate::packet::Packet;
use crate::time::Instant;
use core::time::Duration;

/// What the air did to one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It arrives as it was sent.
    Intact,
    /// It arrives with bit errors; the receiver's checksum refuses it.
    Damaged,
    /// Nothing arrives.
    Lost,
}

/// Decides the fate of each frame. `start` never goes backwards between calls.
pub trait ErrorProcess {
    /// The fate of a frame of `bits` bits that occupies the air for `airtime` from `start` on.
    fn draw(&mut self, start: Instant, airtime: Duration, bits: u64) -> Fate;
}

/// One direction of a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkParams {
    /// Bits per second.
    pub rate_bps: u64,
    /// One-way propagation delay.
    pub delay: Duration,
    /// Frames that wait at most behind the one being serialised.
    pub queue_frames: usize,
    /// How far ahead of the serialiser `can_send` already says yes. Zero in virtual time; in real
    /// time it is the driver ring that keeps the link busy across a late wake-up.
    pub lookahead: Duration,
}

/// A frame that came out of a link.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// When its last bit arrived.
    pub at: Instant,
    /// The frame.
    pub packet: Packet,
}

/// An error process as plain data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ErrorModel {
    /// Every frame arrives.
    None,
    /// Independent loss with this probability.
    Loss(f64),
    /// Independent bit errors with this probability.
    Ber(f64),
    /// `frames` frames in a row are lost in every `every_bytes` bytes [tulip99 Table I].
    Burst {
        /// Frames lost in a row.
        frames: u32,
        /// Wire bytes from the beginning of one burst to the beginning of the next.
        every_bytes: u64,
    },
    /// Two-state Markov fading [tulip99 Fig. 4].
    Fading {
        /// Mean sojourn in the good state.
        good: Duration,
        /// Mean sojourn in the bad state.
        bad: Duration,
        /// Frame loss probability in the bad state.
        bad_loss: f64,
        /// Bit error probability in the good state.
        good_ber: f64,
    },
}
