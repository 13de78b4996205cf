//! What an endpoint has done.

use super::sender::Sender;
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
    /// Segments sent with payload, SYN or FIN, retransmissions among them.
    pub segments: u64,
    /// Segments sent again.
    pub retransmits: u64,
    /// Payload bytes sent again.
    pub retransmitted_bytes: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Losses noticed by ACKs; each began a fast recovery, or Tahoe's slow start.
    pub recoveries: u64,
    /// Of these, undone: nothing had been lost, and the window is as it was.
    pub undone_recoveries: u64,
    /// Recoveries from a timeout that were undone.
    pub undone_timeouts: u64,
    /// Of these, found spurious by F-RTO (RFC 5682).
    pub spurious_timeouts: u64,
    /// Tail loss probes sent (RFC 8985 §7).
    pub loss_probes: u64,
    /// Losses that a probe repaired; the window shrank for each.
    pub loss_probe_recoveries: u64,
    /// Times that a segment was found to have arrived out of order.
    pub reorderings: u64,
    /// Reports of segments that arrived twice (RFC 2883).
    pub dsacks: u64,
    /// Duplicate ACKs that arrived; with SACK, ACKs that reported more.
    pub dup_acks: u64,
    /// Bytes that the application wrote.
    pub written: u64,
    /// Bytes that the peer acknowledged.
    pub acked: u64,
    /// Bytes that arrived in order.
    pub delivered: u64,
}

impl Stats {
    /// Of a sender, beside a receiver that got so many bytes in order.
    pub(super) fn of(sender: &Sender, delivered: u64) -> Self {
        let (out, counters) = (&sender.out, &sender.out.counters);
        Self {
            cwnd: out.congestion.cwnd(),
            ssthresh: out.congestion.ssthresh(),
            in_flight: sender.in_flight(),
            srtt: out.rto.srtt(),
            rto: out.rto.current(),
            segments: counters.segments,
            retransmits: counters.retransmits,
            retransmitted_bytes: counters.retransmitted_bytes,
            timeouts: counters.timeouts,
            recoveries: counters.recoveries,
            undone_recoveries: counters.undone_recoveries,
            undone_timeouts: counters.undone_timeouts,
            spurious_timeouts: counters.spurious_timeouts,
            loss_probes: counters.loss_probes,
            loss_probe_recoveries: counters.loss_probe_recoveries,
            reorderings: counters.reorderings,
            dsacks: counters.dsacks,
            dup_acks: counters.dup_acks,
            written: out.written(),
            acked: out.acked_bytes(),
            delivered,
        }
    }
}
