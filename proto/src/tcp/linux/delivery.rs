//! The rate at which data is delivered (`tcp_rate.c`): segments that arrived between the sending of
//! one of them and its ACK, over the time in which as many were sent or arrived, the longer one.

use super::queue::{Segment, Sent};
use crate::tcp::congestion::DeliveryRate;
use crate::time::Instant;
use core::time::Duration;

/// The state of the estimate, and what the current ACK has shown so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Delivery {
    first_sent: Instant,
    delivered_at: Instant,
    /// Samples are limited by the application until more segments than this have arrived.
    app_limited: Option<u64>,
    latest: Option<Latest>,
}

/// The segment sent last among those that an ACK reports.
#[derive(Clone, Copy, Debug)]
struct Latest {
    sent: Sent,
    at: Instant,
    end: u64,
}

impl Delivery {
    /// `tcp_rate_skb_sent`: a segment leaves after so many have arrived.
    pub(super) fn sent(&mut self, now: Instant, delivered: u64, is_idle: bool) -> Sent {
        if is_idle {
            (self.first_sent, self.delivered_at) = (now, now);
        }
        Sent {
            first_sent: self.first_sent,
            delivered_at: self.delivered_at,
            delivered,
            is_app_limited: self.app_limited.is_some(),
        }
    }

    /// `tcp_rate_skb_delivered`: a segment has arrived.
    pub(super) fn arrived(&mut self, segment: &Segment) {
        let latest = Latest { sent: segment.sent, at: segment.at, end: segment.span.end };
        if self.latest.is_none_or(|other| (other.at, other.end) < (latest.at, latest.end)) {
            self.latest = Some(latest);
            self.first_sent = segment.at;
        }
    }

    /// An ACK begins.
    pub(super) fn ack_begins(&mut self) {
        self.latest = None;
    }

    /// The segments that had been delivered when the one sent last among those that the ACK reports
    /// left (`prior_delivered`); none if the ACK reports none.
    pub(super) fn prior(&self) -> Option<u64> {
        self.latest.map(|latest| latest.sent.delivered)
    }

    /// The application limits the rate of what is sent from now on.
    pub(super) fn limited(&mut self, delivered_or_in_flight: u64) {
        self.app_limited = Some(delivered_or_in_flight.max(1));
    }

    /// Whether it does.
    pub(super) fn is_limited(&self) -> bool {
        self.app_limited.is_some()
    }

    /// `tcp_rate_gen`: the rate that the ACK showed, after which `total` segments have arrived.
    pub(super) fn rate(
        &mut self,
        now: Instant,
        total: u64,
        newly: u64,
        least: Duration,
    ) -> Option<DeliveryRate> {
        if self.app_limited.is_some_and(|until| total > until) {
            self.app_limited = None;
        }
        if newly > 0 {
            self.delivered_at = now;
        }
        let Latest { sent, at, .. } = self.latest.take()?;
        let interval = at.since(sent.first_sent).max(now.since(sent.delivered_at));
        let segments = total.saturating_sub(sent.delivered);
        // What is shorter than any round trip comes from retransmissions of what had arrived.
        (interval >= least && !interval.is_zero()).then_some(DeliveryRate {
            prior_total: sent.delivered,
            segments,
            interval,
            is_app_limited: sent.is_app_limited,
        })
    }
}
