//! Congestion control by a model of the path, which sees every ACK: what Linux gives to the
//! `cong_control` of BBR.

use super::queue::Sent;
use super::{Linux, State};
use crate::tcp::congestion::{RateSample, RecoveryPhase};
use crate::tcp::outgoing::Outgoing;
use crate::time::Instant;
use core::time::Duration;

/// The numbers before an ACK.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before {
    pub(super) delivered: u64,
    pub(super) lost: u64,
    pub(super) in_flight: u32,
}

impl Linux {
    /// The numbers as they are now.
    pub(super) fn before_ack(&self) -> Before {
        let Self { delivered, lost, .. } = *self;
        Before { delivered, lost, in_flight: self.in_flight() }
    }

    /// `tcp_cong_control` of a congestion control that has its own: it takes the ACK.
    pub(super) fn control(
        &mut self,
        now: Instant,
        out: &mut Outgoing,
        before: Before,
        round_trip: Option<Duration>,
    ) {
        let newly = self.delivered - before.delivered;
        let least = self.rack.least().unwrap_or(Duration::MAX);
        let rate = self.delivery.rate(now, self.delivered, newly, least);
        let sample = RateSample {
            now,
            total: self.delivered,
            rate,
            round_trip,
            // A single segment: its ACK may have waited for another one.
            is_ack_delayed: rate.is_some_and(|rate| rate.segments == 1),
            delivered: newly,
            losses: self.lost - before.lost,
            prior_in_flight: before.in_flight.into(),
            in_flight: self.in_flight().into(),
            recovery: match self.state {
                State::Open | State::Disorder => RecoveryPhase::None,
                State::Recovery => RecoveryPhase::Recovery,
                State::Loss => RecoveryPhase::Loss,
            },
            srtt: out.rto.srtt(),
        };
        let departure = out.pacing.departure();
        if let Some((rate, limits_itself)) = out.congestion.sampled(&sample, departure) {
            out.pacing.set_rate(rate);
            if limits_itself {
                self.delivery.limited(self.delivered + u64::from(self.in_flight()));
            }
        }
    }

    /// `tcp_rate_check_app_limited`: nothing waits to be sent though the window has room.
    pub(super) fn check_app_limited(&mut self, out: &Outgoing) {
        let in_flight = u64::from(self.in_flight());
        let has_room = in_flight < out.congestion.cwnd() / out.mss;
        if out.waiting() < out.mss && has_room && self.queue.lost_out <= self.queue.resent_out {
            self.delivery.limited(self.delivered + in_flight);
        }
    }

    /// A segment leaves: says what is remembered of it.
    pub(super) fn departs(&mut self, now: Instant, out: &mut Outgoing) -> Sent {
        let is_idle = self.queue.packets_out() == 0;
        if is_idle
            && self.delivery.is_limited()
            && let Some(rate) = out.congestion.transmission_starts(now, self.delivered)
        {
            out.pacing.set_rate(rate);
        }
        self.delivery.sent(now, self.delivered, is_idle)
    }
}
