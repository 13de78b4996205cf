//! The statistics of an endpoint.

use super::sender::Sender;
use crate::outcome::SenderCounters;
use core::time::Duration;

/// What an endpoint has done and where it stands. Windows and counts of bytes are payload bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stats {
    /// Congestion window, in bytes; in Reno's fast recovery inflated.
    pub cwnd: u64,
    /// Slow start threshold, in bytes; the largest number before the first loss.
    pub ssthresh: u64,
    /// Bytes in flight as the sender counts them: FlightSize, or RFC 6675's pipe.
    pub in_flight: u64,
    /// Smoothed round trip, once there was a sample.
    pub srtt: Option<Duration>,
    /// Retransmission timeout, back-off applied.
    pub rto: Duration,
    /// The counters of the sender.
    pub sender: SenderCounters,
    /// Bytes that the peer acknowledged.
    pub acked: u64,
    /// Bytes that arrived in order.
    pub delivered: u64,
}

impl Stats {
    /// Of a sender, beside a receiver that got so many bytes in order.
    pub(super) fn of(sender: &Sender, delivered: u64) -> Self {
        let out = &sender.out;
        Self {
            cwnd: out.congestion.cwnd(),
            ssthresh: out.congestion.ssthresh(),
            in_flight: sender.in_flight(),
            srtt: out.rto.srtt(),
            rto: out.rto.current(),
            sender: out.counters,
            acked: out.acked_bytes(),
            delivered,
        }
    }
}
