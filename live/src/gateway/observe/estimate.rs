//! What one flow would carry if the air's losses were mended: TCP's model, with what was measured.

use super::report::Limit;
use crate::tcp_model::{INITIAL_WINDOW, TcpPath};

/// If loss explained a flow's rate, it would be no less than the model's by more than this; the
/// model is right within half as much (RFC 8312 §5, and measurements of Linux under 0.25 to 8 %).
pub(super) const PLAUSIBLE: f64 = 3.0;
/// As `snoop` has them: how long a hole may be hidden, as a share of the sender's round trip and in
/// all, and where that is unknown.
const HOLD_SHARE: f64 = 0.8;
const HOLD_LIMIT: f64 = 0.15;
const HOLD_UNKNOWN: f64 = 0.06;

/// The measurements of a flow. Times are in seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    /// The time in which the flow had something to send, and the number of such periods.
    pub(super) active: f64,
    pub(super) periods: f64,
    /// Whether the flow has something to send now: the amount is unknown then.
    pub(super) is_running: bool,
    /// Bytes of payload that arrived.
    pub(super) bytes: f64,
    /// Frames that went on the air, were lost there, and were lost before.
    pub(super) frames: f64,
    pub(super) losses: f64,
    pub(super) lost_before: f64,
    /// Bytes of payload in a full frame, and in each byte of IP.
    pub(super) mss: f64,
    pub(super) payload_share: f64,
    pub(super) air_rtt: Option<f64>,
    pub(super) wired_rtt: Option<f64>,
    pub(super) least_wired_rtt: Option<f64>,
    /// The mobile's window in bytes, if that limits the flow.
    pub(super) window: Option<f64>,
    pub(super) is_application_limited: bool,
    /// The fair share of the air, from 0 to 1.
    pub(super) share: f64,
}

/// The rate with mending, in bits per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Estimate {
    /// The same data, sent sooner.
    pub(super) low: f64,
    /// More data in the same time.
    pub(super) high: f64,
    /// The likely rate between both.
    pub(super) likely: f64,
    /// The factor that limits the rate.
    pub(super) limit: Limit,
}

/// Estimates what the flow would carry through an air of this rate (bits of IP per second).
pub(super) fn estimate(flow: &Measured, capacity: Option<f64>) -> Estimate {
    let goodput = flow.goodput();
    let unchanged = |limit| Estimate { low: goodput, high: goodput, likely: goodput, limit };
    let Some(capacity) = capacity else { return unchanged(Limit::Unknown) };
    if flow.losses == 0.0 || goodput == 0.0 {
        return unchanged(Limit::NoLoss);
    }
    if flow.is_application_limited {
        return unchanged(Limit::Application);
    }
    if flow.is_limited_elsewhere() {
        return unchanged(Limit::Elsewhere);
    }
    let steady = |limit: f64| limit.max(goodput);
    let air = capacity * flow.share * (1.0 - flow.loss()) * flow.payload_share;
    let mut limits = vec![(air, Limit::Air), (flow.with_residual_loss(), Limit::ResidualLoss)];
    if let (Some(window), Some(rtt)) = (flow.window, flow.round_trip()) {
        limits.push((window * 8.0 / rtt, Limit::Window));
    }
    let least = limits.into_iter().min_by(|a, b| a.0.total_cmp(&b.0));
    let (rate, limit) = least.unwrap_or((goodput, Limit::Unknown));
    let start = SlowStart::to(steady(rate), flow);
    let low = start.rate_of(flow.bytes / flow.periods * 8.0).max(goodput);
    let high = start.rate_for(flow.active / flow.periods).max(goodput);
    // Whoever is done may have wanted to send so much, or for so long: both are as likely.
    let likely = if flow.is_running { high } else { (low + high) / 2.0 };
    Estimate { low, high, likely, limit }
}

impl Measured {
    /// Bits per second while it had something to send.
    pub(super) fn goodput(&self) -> f64 {
        if self.active > 0.0 { self.bytes * 8.0 / self.active } else { 0.0 }
    }

    /// The share of its frames that the air loses.
    pub(super) fn loss(&self) -> f64 {
        (self.losses / self.frames.max(1.0)).min(0.99)
    }

    fn round_trip(&self) -> Option<f64> {
        Some(self.air_rtt? + self.wired_rtt?).filter(|rtt| *rtt > 0.0)
    }

    /// Whether something other than loss makes it so slow: TCP would be far faster with this loss.
    fn is_limited_elsewhere(&self) -> bool {
        let loss = self.loss() + self.lost_before / self.frames.max(1.0);
        self.round_trip().is_some_and(|round_trip| {
            let path = TcpPath { loss, round_trip, rate: None };
            path.by_losses() * self.mss * 8.0 > PLAUSIBLE * self.goodput()
        })
    }

    /// TCP's rate goes with one over the root of the loss that it sees: what mending cannot hide is
    /// lost before, or lost as often as there is time for before the sender notices.
    fn with_residual_loss(&self) -> f64 {
        let before = self.lost_before / self.frames.max(1.0);
        let hold = self.round_trip().map_or(HOLD_UNKNOWN, |rtt| (HOLD_SHARE * rtt).min(HOLD_LIMIT));
        let attempts = self.air_rtt.map_or(1.0, |rtt| (hold / rtt.max(1e-4)).floor());
        let residual = self.loss().powf(attempts + 1.0) + before;
        self.goodput() * ((self.loss() + before) / residual).sqrt()
    }
}

/// The beginning of a transfer: windows that double until the rate is reached.
struct SlowStart {
    /// In bits per second.
    rate: f64,
    rtt: f64,
    /// In bits.
    segment: f64,
}

impl SlowStart {
    fn to(rate: f64, flow: &Measured) -> Self {
        Self { rate, rtt: flow.round_trip().unwrap_or(0.0), segment: flow.mss * 8.0 }
    }

    /// The mean rate at which so many bits are carried.
    fn rate_of(&self, bits: f64) -> f64 {
        if self.rtt == 0.0 {
            return self.rate;
        }
        let rate = Some(self.rate / self.segment);
        let path = TcpPath { loss: 0.0, round_trip: self.rtt, rate };
        path.rate_of(bits / self.segment) * self.segment
    }

    /// The mean rate of so long a time.
    fn rate_for(&self, seconds: f64) -> f64 {
        let (mut time, mut bits, mut window) = (0.0, 0.0, INITIAL_WINDOW * self.segment);
        while window < self.rate * self.rtt && time + self.rtt <= seconds {
            bits += window;
            time += self.rtt;
            window *= 2.0;
        }
        if seconds <= 0.0 {
            return self.rate;
        }
        // Within a round only its window is sent.
        let pace = if self.rtt > 0.0 { (window / self.rtt).min(self.rate) } else { self.rate };
        (bits + (seconds - time) * pace) / seconds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 20 s of a flow over 4 ms of air and 80 ms of wire, as Linux does it.
    fn flow(goodput: f64, loss: f64) -> Measured {
        let frames = goodput * 20.0 / 8.0 / 1448.0;
        Measured {
            active: 20.0,
            periods: 1.0,
            is_running: true,
            bytes: goodput * 20.0 / 8.0,
            frames,
            losses: frames * loss,
            lost_before: 0.0,
            mss: 1448.0,
            payload_share: 1448.0 / 1500.0,
            air_rtt: Some(0.005),
            wired_rtt: Some(0.080),
            least_wired_rtt: Some(0.080),
            window: None,
            is_application_limited: false,
            share: 1.0,
        }
    }

    fn is_near(value: f64, expected: f64) -> bool {
        (value / expected - 1.0).abs() < 0.05
    }

    #[test]
    fn what_loss_slows_down_gets_what_the_air_has_left() {
        let lossy = estimate(&flow(0.9e6, 0.05), Some(20e6));
        assert_eq!(lossy.limit, Limit::Air);
        assert!(is_near(lossy.likely, 20e6 * 0.95 * 1448.0 / 1500.0), "{lossy:?}");
        let half = Measured { share: 0.5, ..flow(0.9e6, 0.05) };
        assert!(is_near(estimate(&half, Some(20e6)).likely, lossy.likely / 2.0));
        let done = Measured { is_running: false, ..flow(0.3e6, 0.1) };
        let done = estimate(&done, Some(20e6));
        assert!(done.low < done.likely && done.likely < done.high, "{done:?}");
    }

    #[test]
    fn what_mending_cannot_change_stays() {
        let unchanged = [
            (Measured { losses: 0.0, ..flow(0.9e6, 0.05) }, Limit::NoLoss),
            (Measured { is_application_limited: true, ..flow(0.9e6, 0.05) }, Limit::Application),
            (flow(2e6, 1e-5), Limit::Elsewhere),
            // No time for a repair: the air is as far away as the sender.
            (Measured { air_rtt: Some(0.4), ..flow(0.2e6, 0.05) }, Limit::ResidualLoss),
        ];
        for (flow, limit) in unchanged {
            let estimate = estimate(&flow, Some(20e6));
            assert_eq!((estimate.limit, estimate.likely), (limit, flow.goodput()), "{flow:?}");
        }
        let unknown = flow(0.9e6, 0.05);
        assert_eq!(estimate(&unknown, None).limit, Limit::Unknown);
    }

    #[test]
    fn windows_and_losses_elsewhere_limit_what_mending_brings() {
        let window = Measured { window: Some(42_500.0), ..flow(0.9e6, 0.05) };
        let window = estimate(&window, Some(20e6));
        assert!(window.limit == Limit::Window && is_near(window.likely, 4e6), "{window:?}");
        let lossy = flow(0.9e6, 0.03);
        let elsewhere = Measured { lost_before: lossy.losses / 3.0, ..lossy };
        let elsewhere = estimate(&elsewhere, Some(20e6));
        assert_eq!(elsewhere.limit, Limit::ResidualLoss);
        assert!(is_near(elsewhere.likely, 2.0 * 0.9e6), "{elsewhere:?}");
    }

    #[test]
    fn a_short_transfer_is_mostly_slow_start() {
        let short = Measured { active: 0.5, bytes: 100_000.0, frames: 70.0, ..flow(1.6e6, 0.03) };
        let short = estimate(&Measured { losses: 2.0, ..short }, Some(20e6));
        // 10, 20 and 40 segments: three round trips.
        assert!(is_near(short.low, 8e5 / 0.255), "{short:?}");
    }
}
