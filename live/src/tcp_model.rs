//! The rate of a TCP sender that meets losses.
//!
//! Formulas (PFTK, RFC 8312 §5.2) say 0.35 to 1.0 of what Linux has: they know neither SACK and
//! RACK, which spare most timeouts, nor that CUBIC gives back but 0.3 of its window. So the rate of
//! a long flow is a table, of the simulator's model of Linux's CUBIC; `tools/tcp-rates` makes it.

mod rates;

use rates::{LOSSES, ROUND_TRIPS, SEGMENTS};

/// RFC 6928: segments that a sender begins with.
pub(crate) const INITIAL_WINDOW: f64 = 10.0;
/// What CUBIC keeps of its window after a loss (RFC 9438 §4.6).
const BETA: f64 = 0.7;
/// A chance that changes no mean.
const NEGLIGIBLE: f64 = 1e-3;

/// A path as a sender of Linux's CUBIC meets it.
#[derive(Clone, Copy, Debug)]
pub struct TcpPath {
    /// The share of packets that it loses.
    pub loss: f64,
    /// The least round trip in seconds.
    pub round_trip: f64,
    /// Segments per second that it carries at most.
    pub rate: Option<f64>,
}

impl TcpPath {
    /// What one flow carries in segments per second where nothing but losses and the round trip
    /// limits it; slow start is not in it.
    pub fn by_losses(&self) -> f64 {
        self.window() / self.round_trip
    }

    /// Segments that are delivered in a round trip.
    fn window(&self) -> f64 {
        // Fewer losses than in the table: the power law of its first columns goes on.
        let loss = self.loss.clamp(1e-9, LOSSES[LOSSES.len() - 1]);
        let row = |losses: &[f64; LOSSES.len()]| interpolated(&LOSSES, losses, loss);
        let [least, .., most] = ROUND_TRIPS;
        let round_trip = self.round_trip.clamp(least, most);
        interpolated(&ROUND_TRIPS, &SEGMENTS.map(|losses| row(&losses)), round_trip)
    }

    /// The mean rate, in segments per second, of a flow that carries so many segments: slow start
    /// until a loss or until the path is full (Cardwell, Savage and Anderson, "Modeling TCP
    /// Latency", INFOCOM 2000); from there the window that it ended with falls to the usual one.
    pub fn rate_of(&self, segments: f64) -> f64 {
        segments / (self.rounds(segments) * self.round_trip)
    }

    /// The mean number of round trips until so many segments are sent.
    fn rounds(&self, segments: f64) -> f64 {
        let full = self.rate.map_or(f64::INFINITY, |rate| rate * self.round_trip);
        let usual = self.window().min(full);
        // The chance that nothing is lost before this round, and what is known of the other cases.
        let (mut chance, mut mean) = (1.0, 0.0);
        let (mut round, mut sent, mut window) = (0.0, 0.0, INITIAL_WINDOW.min(full));
        while sent + window < segments && window < full && chance > NEGLIGIBLE {
            let next = (2.0 * window).min(full);
            let stays = chance * (1.0 - self.loss).powf(window);
            // On average half of the round is sent before the loss, and half of the next one
            // before the sender knows.
            let rest = segments - (sent + window + next / 2.0);
            let time = match rest > 0.0 {
                true => self.rounds_from(BETA * (window + next) / 2.0, usual, rest),
                false => rest / next,
            };
            mean += (chance - stays) * (round + 1.5 + time);
            (chance, round, sent, window) = (stays, round + 1.0, sent + window, next);
        }
        let rest = segments - sent;
        let time = if window < full { rest / window } else { self.rounds_from(full, usual, rest) };
        mean + chance * (round + time)
    }

    /// The round trips in which so many segments are sent from this window on. Losses take
    /// (1 - β)·p·w² of it in a round trip; what it grows by is taken for what they take where it
    /// stays: dw/dn = (1 - β)·p·(usual² - w²).
    fn rounds_from(&self, window: f64, usual: f64, segments: f64) -> f64 {
        let pull = (1.0 - BETA) * self.loss;
        let (grows, ratio) = (window < usual, (window / usual).min(usual / window));
        if pull * segments < NEGLIGIBLE || ratio > 1.0 - NEGLIGIBLE {
            return segments / if pull * segments < NEGLIGIBLE { window } else { usual };
        }
        // w = usual·tanh(x) or usual·coth(x), whose integral is the logarithm of cosh or sinh.
        let begin = ratio.atanh();
        let log = if grows { begin.cosh().ln() } else { begin.sinh().ln() } + pull * segments;
        let end = match log {
            // Both are half of the exponential function.
            20.0.. => log + 2.0_f64.ln(),
            _ if grows => log.exp().acosh(),
            _ => log.exp().asinh(),
        };
        (end - begin) / (pull * usual)
    }
}

/// The value at `x` of the function with these values at these ascending places: straight between
/// them where both axes are logarithmic.
fn interpolated<const N: usize>(places: &[f64; N], values: &[f64; N], x: f64) -> f64 {
    let right = places.iter().position(|place| *place >= x).unwrap_or(N - 1).max(1);
    let (Some([from, to]), Some([low, high])) = (two(places, right), two(values, right)) else {
        return 0.0;
    };
    let part = (x / from).ln() / (to / from).ln();
    low * (high / low).powf(part)
}

/// The values before this place and at it.
fn two(values: &[f64], right: usize) -> Option<[f64; 2]> {
    values.get(right - 1..=right)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(loss: f64, round_trip: f64, rate: Option<f64>) -> TcpPath {
        TcpPath { loss, round_trip, rate }
    }

    #[test]
    fn the_table_is_met_and_what_is_between_lies_between() {
        let segments = |loss: f64, rtt: f64| path(loss, rtt, None).window();
        for (rtt, losses) in ROUND_TRIPS.iter().zip(&SEGMENTS) {
            for (loss, expected) in LOSSES.iter().zip(losses) {
                assert!((segments(*loss, *rtt) / expected - 1.0).abs() < 1e-9, "{loss} {rtt}");
            }
        }
        let (few, more) = (segments(0.01, 0.04), segments(0.02, 0.04));
        assert!((more..few).contains(&segments(0.014, 0.04)));
        // Short round trips: windows as at the shortest; beyond, more losses change nothing.
        assert_eq!(segments(0.01, 0.001), segments(0.01, 0.005));
        assert_eq!(segments(0.9, 0.04), segments(0.2, 0.04));
        // Mathis: a quarter of the losses is twice the window, or a little more of CUBIC's own.
        let ratio = segments(0.000_1, 0.01) / segments(0.000_4, 0.01);
        assert!((1.6..2.9).contains(&ratio), "{ratio}");
    }

    /// RFC 8312 §5.2 has 1.054 (RTT/p)^0.75 segments in a round trip, where that is a large window.
    #[test]
    fn cubic_is_in_its_own_region_as_its_rfc_has_it() {
        for (loss, rtt) in [(0.000_5, 0.16_f64), (0.000_5, 0.32), (0.002, 0.32)] {
            let rfc = 1.054 * (rtt / loss).powf(0.75);
            let ratio = path(loss, rtt, None).window() / rfc;
            assert!((1.0..1.7).contains(&ratio), "{loss} {rtt}: {ratio}");
        }
    }

    #[test]
    fn a_flow_without_losses_starts_slowly_and_fills_the_path() {
        // 10, 20 and 40 segments, and then 50 in each round trip.
        let path = path(0.0, 0.1, Some(500.0));
        assert!((path.rounds(30.0) - 2.0).abs() < 1e-9);
        assert!((path.rounds(70.0 + 500.0) - 13.0).abs() < 1e-9);
        assert!((path.rate_of(1e6) / 500.0 - 1.0).abs() < 1e-3);
    }

    #[test]
    fn a_long_flow_has_the_rate_of_the_table_and_a_short_one_more() {
        for (loss, rtt) in [(0.001, 0.04), (0.01, 0.04), (0.01, 0.28), (0.1, 0.14)] {
            let path = path(loss, rtt, None);
            let ratio = |segments: f64| path.rate_of(segments) / path.by_losses();
            assert!((ratio(1e7) - 1.0).abs() < 0.01, "{loss} {rtt}: {}", ratio(1e7));
            // The windows that slow start leaves are larger than losses allow for.
            let ratios = [3e2, 1e3, 1e4, 1e5].map(|segments| ratio(segments / (100.0 * loss)));
            assert!(ratios.is_sorted_by(|a, b| a > b), "{loss} {rtt}: {ratios:?}");
        }
    }

    /// What falls and what grows comes to the usual window, and the time is that of the equation.
    #[test]
    fn windows_come_to_the_usual_one_as_the_equation_says() {
        let (loss, usual) = (0.01, 20.0);
        for first in [5.0, 80.0] {
            let (mut window, mut sent, mut rounds) = (first, 0.0, 0.0);
            while rounds < 50.0 {
                window += 0.3 * loss * (usual * usual - window * window) * 0.001;
                (sent, rounds) = (sent + window * 0.001, rounds + 0.001);
            }
            let model = path(loss, 0.1, None).rounds_from(first, usual, sent);
            assert!((model / rounds - 1.0).abs() < 0.01, "{first}: {model}");
        }
    }
}
