//! The measurements that all worlds have, under the names of result rows.

use crate::link::LinkCounters;
use core::ops::AddAssign;
use serde::{Deserialize, Serialize};

/// The counters of the sending ends of TCP connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SenderCounters {
    /// Segments retransmitted.
    pub retransmits: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Losses detected by ACKs; each began a fast recovery, or Tahoe's slow start.
    pub recoveries: u64,
    /// Of these, undone: the sender found that no segment had been lost, and restored its window.
    pub undone_recoveries: u64,
    /// Recoveries from a timeout that were undone.
    pub undone_timeouts: u64,
    /// Timeouts found spurious by F-RTO (RFC 5682).
    pub spurious_timeouts: u64,
    /// Tail loss probes sent (RFC 8985 §7).
    pub loss_probes: u64,
    /// Losses that a probe repaired; the window is cut for each.
    pub loss_probe_recoveries: u64,
    /// Times that a segment was found to have arrived out of order.
    pub reorderings: u64,
    /// Reports of segments that arrived twice (RFC 2883).
    pub dsacks: u64,
    /// Segments sent with payload, SYN or FIN, retransmissions among them; 0 of a kernel, which
    /// does not count them.
    #[serde(skip_serializing_if = "is_zero")]
    pub segments: u64,
}

impl SenderCounters {
    /// Entries into recovery, and timeouts.
    pub fn cwnd_reductions(&self) -> u64 {
        self.recoveries + self.timeouts
    }

    /// The number of recoveries that were not undone.
    pub fn standing_recoveries(&self) -> u64 {
        self.recoveries.saturating_sub(self.undone_recoveries)
    }
}

impl AddAssign for SenderCounters {
    fn add_assign(&mut self, other: Self) {
        self.retransmits += other.retransmits;
        self.timeouts += other.timeouts;
        self.recoveries += other.recoveries;
        self.undone_recoveries += other.undone_recoveries;
        self.undone_timeouts += other.undone_timeouts;
        self.spurious_timeouts += other.spurious_timeouts;
        self.loss_probes += other.loss_probes;
        self.loss_probe_recoveries += other.loss_probe_recoveries;
        self.reorderings += other.reorderings;
        self.dsacks += other.dsacks;
        self.segments += other.segments;
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The counters of one direction of a link, or of several links together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LinkReport {
    /// Frames serialised.
    pub frames: u64,
    /// Of these, lost or damaged.
    pub lost: u64,
    /// Refused by full queues.
    pub dropped: u64,
    /// Bytes serialised.
    pub bytes: u64,
    /// Frames lost in collisions; not among `lost`.
    #[serde(skip_serializing_if = "is_zero")]
    pub collided: u64,
    /// Packets given up after the last transmission of them.
    #[serde(skip_serializing_if = "is_zero")]
    pub given_up: u64,
    /// Airtime of all frames, in microseconds.
    pub airtime_us: u64,
}

impl From<LinkCounters> for LinkReport {
    fn from(link: LinkCounters) -> Self {
        let LinkCounters { frames, lost, damaged, dropped, bytes, collided, given_up, busy } = link;
        let airtime_us = u64::try_from(busy.as_micros()).unwrap_or(u64::MAX);
        let lost = lost + damaged;
        Self { frames, lost, dropped, bytes, collided, given_up, airtime_us }
    }
}

impl AddAssign for LinkReport {
    fn add_assign(&mut self, other: Self) {
        self.frames += other.frames;
        self.lost += other.lost;
        self.dropped += other.dropped;
        self.bytes += other.bytes;
        self.collided += other.collided;
        self.given_up += other.given_up;
        self.airtime_us += other.airtime_us;
    }
}

/// The kind of a point in the sequence-time plot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TraceKind {
    /// A data packet left towards the receiver for the first time.
    Data,
    /// The agent's local retransmission.
    LocalRetransmit,
    /// The sender's own retransmission.
    SenderRetransmit,
    /// An ACK left for the sender.
    Ack,
    /// The sender's congestion window has changed to so many bytes.
    Window,
    /// So many bytes have arrived at the receiver in order.
    Received,
    /// The sender's retransmission timeout has changed to so many milliseconds.
    Timeout,
    /// So many packets are in the agent's cache.
    Cached,
}

impl TraceKind {
    /// Whether the point is a data packet.
    pub fn is_data(self) -> bool {
        matches!(self, Self::Data | Self::LocalRetransmit | Self::SenderRetransmit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recoveries_that_stood_are_those_not_undone() {
        let counters = SenderCounters { recoveries: 5, undone_recoveries: 2, ..Default::default() };
        assert_eq!((counters.standing_recoveries(), counters.cwnd_reductions()), (3, 5));
        let odd = SenderCounters { undone_recoveries: 2, ..Default::default() };
        assert_eq!(odd.standing_recoveries(), 0);
    }
}
