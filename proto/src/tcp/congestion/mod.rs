//! The congestion window: slow start here, congestion avoidance and reduction by Reno or CUBIC; or
//! all of it by BBR.

mod acked;
mod bbr;
mod cubic;
mod hystart;
mod rate_sample;
mod reno;

pub(super) use acked::Acked;
pub(super) use rate_sample::{DeliveryRate, RateSample, RecoveryPhase};

use super::profile::{CongestionControl, Growth, Profile};
use crate::time::Instant;
use alloc::boxed::Box;
use bbr::Bbr;
use core::time::Duration;
use cubic::Cubic;
use hystart::HyStart;
use reno::Reno;

/// Window and slow start threshold, in bytes.
#[derive(Clone, Debug)]
pub(super) struct Congestion {
    cwnd: u64,
    ssthresh: u64,
    mss: u64,
    growth: Growth,
    avoidance: Avoidance,
    hystart: Option<HyStart>,
}

#[derive(Clone, Debug)]
enum Avoidance {
    Reno(Reno),
    Cubic(Cubic),
    Bbr(Box<Bbr>),
}

impl Congestion {
    /// The window before the handshake: one segment, and no threshold yet.
    pub(super) fn new(profile: &Profile) -> Self {
        let mss = u64::from(profile.mss);
        let (avoidance, hystart) = match profile.congestion {
            // BBR begins once both ends have agreed on SACK.
            CongestionControl::Reno | CongestionControl::Bbr => {
                (Avoidance::Reno(Reno::default()), false)
            }
            CongestionControl::Cubic { hystart } => (Avoidance::Cubic(Cubic::default()), hystart),
        };
        Self {
            cwnd: mss,
            ssthresh: u64::MAX,
            mss,
            growth: profile.growth,
            avoidance,
            hystart: hystart.then(HyStart::default),
        }
    }

    /// The handshake is done: full segments are of `mss` bytes, the window begins at `segments`.
    pub(super) fn start(&mut self, mss: u64, segments: u32) {
        self.mss = mss;
        self.cwnd = mss * u64::from(segments.max(1));
    }

    /// From now on BBR decides. Returns the pacing rate, in payload bytes per second.
    pub(super) fn start_bbr(&mut self, now: Instant, srtt: Option<Duration>) -> u64 {
        let bbr = Bbr::new(now, self.mss, self.cwnd / self.mss, srtt);
        let rate = bbr.pacing_rate();
        self.avoidance = Avoidance::Bbr(Box::new(bbr));
        rate
    }

    /// Whether the window follows a model of the path, and not losses (Linux `cong_control`).
    pub(super) fn is_model_based(&self) -> bool {
        matches!(self.avoidance, Avoidance::Bbr(_))
    }

    /// BBR takes an ACK while the next segment leaves at `departure`. Returns the pacing rate, and
    /// whether the sender now limits itself; nothing of the others.
    pub(super) fn sampled(
        &mut self,
        sample: &RateSample,
        departure: Instant,
    ) -> Option<(u64, bool)> {
        let Avoidance::Bbr(bbr) = &mut self.avoidance else { return None };
        let control = bbr.acknowledged(sample, self.cwnd / self.mss, departure);
        self.cwnd = control.cwnd.max(1) * self.mss;
        Some((control.pacing_rate, control.limits_itself))
    }

    /// Sending begins anew after the application had nothing to send, with so many segments
    /// delivered in all. Returns BBR's pacing rate.
    pub(super) fn transmission_starts(&mut self, now: Instant, delivered: u64) -> Option<u64> {
        let Avoidance::Bbr(bbr) = &mut self.avoidance else { return None };
        self.cwnd = bbr.restarted(now, self.cwnd / self.mss, delivered).max(1) * self.mss;
        Some(bbr.pacing_rate())
    }

    /// The window.
    pub(super) fn cwnd(&self) -> u64 {
        self.cwnd
    }

    /// The slow start threshold; the largest number before the first loss.
    pub(super) fn ssthresh(&self) -> u64 {
        self.ssthresh
    }

    /// Sets the window, to at least one segment: what loss recovery makes of it.
    pub(super) fn set_cwnd(&mut self, cwnd: u64) {
        self.cwnd = cwnd.max(self.mss);
    }

    /// Sets window and slow start threshold: what they were before a loss that was none.
    pub(super) fn restore(&mut self, cwnd: u64, ssthresh: u64) {
        if let Avoidance::Bbr(bbr) = &mut self.avoidance {
            return bbr.undo();
        }
        self.set_cwnd(self.cwnd.max(cwnd));
        self.ssthresh = self.ssthresh.max(ssthresh);
    }

    /// An ACK showed a round trip: slow start may be over (HyStart).
    pub(super) fn measured(&mut self, now: Instant, acked: &Acked) {
        let Some(round_trip) = acked.round_trip else { return };
        let counts = match &mut self.avoidance {
            Avoidance::Reno(_) | Avoidance::Bbr(_) => false,
            Avoidance::Cubic(cubic) => cubic.measured(now, round_trip),
        };
        if let (true, Some(hystart)) = (counts && self.cwnd < self.ssthresh, &mut self.hystart)
            && hystart.ends_slow_start(now, acked, self.cwnd / self.mss)
        {
            self.ssthresh = self.cwnd;
        }
    }

    /// An ACK of `bytes` that are new arrived outside fast recovery, and the window was in use.
    pub(super) fn acknowledged(&mut self, now: Instant, bytes: u64) {
        let mut bytes = bytes;
        if self.cwnd < self.ssthresh {
            // RFC 5681 eq. 2, or RFC 3465 §2.2 without its limit.
            let growth = match self.growth {
                Growth::PerAck => bytes.min(self.mss),
                Growth::PerByte => bytes.min(self.ssthresh - self.cwnd),
            };
            self.cwnd += growth;
            bytes = match self.growth {
                Growth::PerAck => 0,
                Growth::PerByte => bytes - growth,
            };
        }
        if bytes > 0 && self.cwnd >= self.ssthresh {
            self.cwnd += match &mut self.avoidance {
                Avoidance::Reno(reno) => reno.increase(self.growth, bytes, self.cwnd, self.mss),
                Avoidance::Cubic(cubic) => cubic.increase(now, bytes, self.cwnd, self.mss),
                Avoidance::Bbr(_) => 0,
            };
        }
    }

    /// A loss: sets the threshold by what was in flight (RFC 5681 eq. 4, RFC 9438 §4.6), in Linux
    /// to whole segments.
    pub(super) fn reduce(&mut self, in_flight: u64) {
        let share = match &mut self.avoidance {
            Avoidance::Reno(_) => in_flight / 2,
            Avoidance::Cubic(cubic) => cubic.reduce(in_flight, self.cwnd / self.mss),
            Avoidance::Bbr(bbr) => return bbr.save_cwnd(self.cwnd / self.mss),
        };
        let share = match self.growth {
            Growth::PerAck => share,
            Growth::PerByte => share / self.mss * self.mss,
        };
        self.ssthresh = share.max(2 * self.mss);
    }

    /// The timer expired: slow start from one segment (RFC 5681 §3.1).
    pub(super) fn collapse(&mut self) {
        self.cwnd = self.mss;
        match &mut self.avoidance {
            Avoidance::Reno(_) => {}
            Avoidance::Cubic(cubic) => cubic.collapse(),
            Avoidance::Bbr(bbr) => bbr.timeout(),
        }
        if let Some(hystart) = &mut self.hystart {
            *hystart = HyStart::default();
        }
    }

    /// Nothing was sent for a timeout: the window says nothing of the path (RFC 5681 §4.1).
    pub(super) fn restart(&mut self, segments: u32) {
        if self.is_model_based() {
            return;
        }
        self.cwnd = self.cwnd.min(self.mss * u64::from(segments.max(1)));
        match &mut self.avoidance {
            Avoidance::Reno(_) | Avoidance::Bbr(_) => {}
            Avoidance::Cubic(cubic) => cubic.restart(),
        }
    }
}
