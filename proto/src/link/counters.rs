//! What became of the frames of a link.

use core::time::Duration;

/// The counters of one direction of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Frames accepted; each of them is serialised, also one that gets lost.
    pub frames: u64,
    /// The bytes of these frames.
    pub bytes: u64,
    /// Of these frames, lost on the air.
    pub lost: u64,
    /// Of these frames, damaged on the air. They are not delivered: the receiver's checksum would
    /// refuse them.
    pub damaged: u64,
    /// Frames refused by the full queue; not among `frames`.
    pub dropped: u64,
    /// Of these frames, lost in collisions. On a medium that sends lost frames again, each
    /// transmission counts.
    pub collided: u64,
    /// Packets that were given up after the last transmission of them was lost.
    pub given_up: u64,
    /// Airtime of all accepted frames.
    pub busy: Duration,
}
