//! The rate of a TCP sender that meets losses.
//!
//! Formulas (PFTK, RFC 8312 §5.2) say 0.35 to 1.0 of what Linux has: they know neither SACK and
//! RACK, which spare most timeouts, nor that CUBIC gives back but 0.3 of its window. So this is a
//! table, of the simulator's model of Linux's CUBIC; `tools/tcp-rates` makes it.

mod rates;

use rates::{LOSSES, ROUND_TRIPS, SEGMENTS};

/// What one flow of Linux's CUBIC carries in segments per second, where nothing but this share of
/// losses and this round trip (in seconds) limits it; slow start is not in it.
pub(crate) fn tcp(loss: f64, rtt: f64) -> f64 {
    let row = |losses: &[f64; LOSSES.len()]| {
        // Fewer losses than in the table: the power law of its first columns goes on.
        interpolated(&LOSSES, losses, loss.clamp(1e-9, LOSSES[LOSSES.len() - 1]))
    };
    let [least, .., most] = ROUND_TRIPS;
    interpolated(&ROUND_TRIPS, &SEGMENTS.map(|losses| row(&losses)), rtt.clamp(least, most)) / rtt
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

    #[test]
    fn the_table_is_met_and_what_is_between_lies_between() {
        let segments = |loss: f64, rtt: f64| tcp(loss, rtt) * rtt;
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
            let ratio = tcp(loss, rtt) * rtt / rfc;
            assert!((1.0..1.7).contains(&ratio), "{loss} {rtt}: {ratio}");
        }
    }
}
