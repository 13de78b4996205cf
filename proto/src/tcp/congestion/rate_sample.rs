//! What an ACK tells of the rate at which data arrives (Linux `struct rate_sample`).

use crate::time::Instant;
use core::time::Duration;

/// One ACK, and the delivery rate that it shows. Counts are segments.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct RateSample {
    pub(in crate::tcp) now: Instant,
    /// Segments delivered in all, with this ACK.
    pub(in crate::tcp) total: u64,
    /// The rate; none if the ACK shows none.
    pub(in crate::tcp) rate: Option<DeliveryRate>,
    /// The round trip of what arrived last, and whether its ACK may have been delayed.
    pub(in crate::tcp) round_trip: Option<Duration>,
    pub(in crate::tcp) is_ack_delayed: bool,
    /// Segments that this ACK delivered, and that were found lost with it.
    pub(in crate::tcp) delivered: u64,
    pub(in crate::tcp) losses: u64,
    /// Segments in flight before the ACK, and after it.
    pub(in crate::tcp) prior_in_flight: u64,
    pub(in crate::tcp) in_flight: u64,
    /// The phase of loss recovery after the ACK.
    pub(in crate::tcp) recovery: RecoveryPhase,
    pub(in crate::tcp) srtt: Option<Duration>,
}

/// Segments that were delivered in an interval.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct DeliveryRate {
    /// Segments delivered in all when the segment that the ACK is about was sent.
    pub(in crate::tcp) prior_total: u64,
    pub(in crate::tcp) segments: u64,
    pub(in crate::tcp) interval: Duration,
    /// Whether the application, and not the network, limited the rate.
    pub(in crate::tcp) is_app_limited: bool,
}

/// The phases of loss recovery as congestion control sees them (`TCP_CA_…`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tcp) enum RecoveryPhase {
    /// No recovery is under way (`Open`, `Disorder`).
    None,
    /// Fast recovery.
    Recovery,
    /// Recovery from a timeout.
    Loss,
}
