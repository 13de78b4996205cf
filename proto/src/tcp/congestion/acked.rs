//! What the congestion window learns from an ACK.

use core::time::Duration;

/// What an ACK of new data tells of the path.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Acked {
    /// The position up to which all is acknowledged.
    pub(in crate::tcp) una: u64,
    /// The position behind the last byte sent.
    pub(in crate::tcp) nxt: u64,
    /// The round trip that this ACK showed.
    pub(in crate::tcp) round_trip: Option<Duration>,
}
