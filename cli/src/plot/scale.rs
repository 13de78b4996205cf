//! The horizontal axis of a measurement: the swept setting, and the position of its values.

use super::panel::{Marks, number};
use std::ops::Range;

/// A horizontal axis.
#[derive(Clone, Debug)]
pub(crate) struct Scale {
    /// The quantity of the axis, with its unit.
    pub(crate) title: String,
    kind: ScaleKind,
    /// The position and the word of each value.
    ticks: Vec<(f64, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum ScaleKind {
    /// Values times this factor.
    Linear(f64),
    /// Powers of ten; zero lies at the least position.
    Log { factor: f64, floor: f64 },
    /// One error in so many bits, in powers of two.
    ErrorsPer,
    /// One place for each word.
    Words,
}

impl Scale {
    /// The axis of a setting with these values. It is logarithmic if they span more than 50 times.
    pub(crate) fn numbers(name: &str, values: &[f64]) -> Self {
        let (title, factor) = title(name);
        let kind = kind(name, values, factor);
        let mut scale = Self { title, kind, ticks: Vec::new() };
        match kind {
            ScaleKind::ErrorsPer => {
                scale.title = "one error per N bits, on the air hop (log₂ scale)".to_owned();
            }
            ScaleKind::Log { .. } if values.contains(&0.0) => {
                scale.title.push_str(" (log scale; 0 stands apart)");
            }
            ScaleKind::Log { .. } => scale.title.push_str(" (log scale)"),
            _ => {}
        }
        let mut values = values.to_vec();
        values.sort_by(f64::total_cmp);
        values.dedup();
        let tick = |value: &f64| (scale.position(*value), scale.word(*value, name));
        let mut ticks: Vec<(f64, String)> = values.iter().map(tick).collect();
        ticks.sort_by(|a, b| a.0.total_cmp(&b.0));
        Self { ticks, ..scale }
    }

    /// The axis of a setting with these words; the value of a word is its index.
    pub(crate) fn words(name: &str, words: &[String]) -> Self {
        let ticks = (0..).map(f64::from).zip(words.iter().cloned()).collect();
        Self { title: title(name).0, kind: ScaleKind::Words, ticks }
    }

    /// Whether there is no meaning between two values.
    pub(crate) fn is_words(&self) -> bool {
        self.kind == ScaleKind::Words
    }

    /// Whether a value has no place on the axis and stands beside it: zero on a logarithmic one.
    pub(crate) fn is_apart(&self, value: f64) -> bool {
        matches!(self.kind, ScaleKind::Log { .. }) && value == 0.0
    }

    /// The position of a value.
    pub(crate) fn position(&self, value: f64) -> f64 {
        match self.kind {
            ScaleKind::Linear(factor) => value * factor,
            ScaleKind::Log { factor, floor } => (value * factor).max(floor).log10(),
            ScaleKind::ErrorsPer => -value.log2(),
            ScaleKind::Words => value,
        }
    }

    /// From the least to the highest position, with a margin.
    pub(super) fn range(&self) -> Range<f64> {
        let positions = || self.ticks.iter().map(|(position, _)| *position);
        let (low, high) =
            (positions().fold(f64::MAX, f64::min), positions().fold(-1e300, f64::max));
        if self.is_words() {
            return low - 0.5..high + 0.5;
        }
        let is_wide = high - low > 1e-9 * high.abs().max(low.abs());
        let margin = if is_wide { (high - low) * 0.04 } else { high.abs().max(1.0) * 0.5 };
        low - margin..high + margin
    }

    /// The marks along the axis.
    pub(super) fn marks(&self) -> Marks<'_> {
        match self.kind {
            ScaleKind::Linear(_) if self.ticks.len() > FEW => Marks::Numbers,
            _ => Marks::Words(&self.ticks),
        }
    }

    fn word(&self, value: f64, name: &str) -> String {
        match self.kind {
            ScaleKind::ErrorsPer => binary(1.0 / value),
            ScaleKind::Linear(factor) => number(value * factor),
            ScaleKind::Log { .. } if name == "ber" => power(value),
            ScaleKind::Log { factor, .. } => plain(value * factor),
            ScaleKind::Words => String::new(),
        }
    }
}

fn kind(name: &str, values: &[f64], factor: f64) -> ScaleKind {
    let positive = || values.iter().copied().filter(|value| *value > 0.0);
    let least = positive().fold(f64::INFINITY, f64::min);
    let most = positive().fold(0.0, f64::max);
    if values.iter().any(|value| *value < 0.0) || least.is_infinite() {
        return ScaleKind::Linear(factor);
    }
    if name == "ber" && values.iter().all(|ber| is_binary(1.0 / ber)) {
        return ScaleKind::ErrorsPer;
    }
    if name != "ber" && most / least <= 50.0 {
        return ScaleKind::Linear(factor);
    }
    // One third of the least value stands for zero.
    let has_zero = values.contains(&0.0);
    ScaleKind::Log { factor, floor: least * factor / if has_zero { 3.0 } else { 1.0 } }
}

/// The axis title of a setting, and the factor of its values.
fn title(name: &str) -> (String, f64) {
    let words = |name: &str, unit: &str| format!("{} ({unit})", name.replace('_', " "));
    match name {
        "ber" => ("bit error rate on the air hop".to_owned(), 1.0),
        "loss" => ("loss on the air hop (%)".to_owned(), 100.0),
        "per" => ("packet error rate".to_owned(), 1.0),
        "burst" => ("lost packets in a burst".to_owned(), 1.0),
        "strobe" => ("packets in a turn".to_owned(), 1.0),
        "acks" => ("packets for each ACK".to_owned(), 1.0),
        "window" => ("window (packets)".to_owned(), 1.0),
        "every_ms" => ("from one handoff to the next (ms)".to_owned(), 1.0),
        "away_ms" => ("time out of reach (ms)".to_owned(), 1.0),
        "wired" => ("wired hop".to_owned(), 1.0),
        _ => {
            let unit = |suffix| name.strip_suffix(suffix);
            if let Some(name) = unit("_bps") {
                (words(name, "Mb/s"), 1e-6)
            } else if let Some(name) = unit("_ms") {
                (words(name, "ms"), 1.0)
            } else if let Some(name) = unit("_bytes") {
                (words(name, "kB"), 1e-3)
            } else {
                (name.replace('_', " "), 1.0)
            }
        }
    }
}

/// Whether this many bits are a power of two of at least 1024.
fn is_binary(bits: f64) -> bool {
    let exponent = bits.log2();
    exponent.is_finite() && exponent > 9.9 && (exponent - exponent.round()).abs() < 1e-6
}

/// `256 Kb`, `1 Mb`: as the paper writes 2^18 and 2^20 bits.
fn binary(bits: f64) -> String {
    let (divisor, unit) = if bits.log2() < 19.9 { (1024.0, "Kb") } else { (1_048_576.0, "Mb") };
    format!("{:.0} {unit}", bits / divisor)
}

fn plain(value: f64) -> String {
    if value == 0.0 || (1e-3..1e6).contains(&value.abs()) { number(value) } else { power(value) }
}

/// `3.8×10⁻⁶`; the digits above the line, as a formula has them.
fn power(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let text = format!("{value:.1e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let mantissa = mantissa.trim_end_matches('0').trim_end_matches('.');
    let raised: String = exponent
        .chars()
        .map(|digit| match digit {
            '-' => '⁻',
            '1' => '¹',
            '2' => '²',
            '3' => '³',
            other => other.to_digit(10).and_then(|d| char::from_u32(0x2070 + d)).unwrap_or(other),
        })
        .collect();
    if mantissa == "1" { format!("10{raised}") } else { format!("{mantissa}×10{raised}") }
}

/// The number of values of a linear axis that are written at their own places.
const FEW: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_ten_are_written_as_in_a_formula() {
        assert_eq!(power(0.0), "0");
        assert_eq!(power(1e-6), "10⁻⁶");
        assert_eq!(power(3.9e-12), "3.9×10⁻¹²");
    }

    #[test]
    fn one_error_per_n_bits_is_a_log2_axis_as_in_the_paper() {
        let scale = Scale::numbers("ber", &[1.0 / 16384.0, 1.0 / 1_048_576.0]);
        assert_eq!(scale.ticks, [(14.0, "16 Kb".to_owned()), (20.0, "1 Mb".to_owned())]);
        assert!(scale.title.starts_with("one error per N bits"), "{}", scale.title);
        let scale = Scale::numbers("ber", &[1e-7, 1e-5]);
        assert_eq!(scale.ticks[1], (-5.0, "10⁻⁵".to_owned()));
    }

    #[test]
    fn what_spans_more_than_fifty_times_is_logarithmic() {
        let scale = Scale::numbers("window_bytes", &[1000.0, 50_000.0]);
        assert_eq!(scale.position(50_000.0), 50.0);
        let scale = Scale::numbers("window_bytes", &[1000.0, 51_000.0]);
        assert_eq!(scale.position(1000.0), 0.0);
        let scale = Scale::numbers("loss", &[0.0, 0.05, 0.1]);
        assert_eq!((scale.position(0.05), scale.ticks.len()), (5.0, 3));
        let zero = Scale::numbers("ber", &[0.0, 1e-6, 1e-5]);
        assert_eq!(zero.ticks[0].1, "0");
        assert!(zero.position(0.0) < -6.0 && zero.range().start.is_finite());
    }

    #[test]
    fn a_single_value_and_words_have_a_range() {
        let scale = Scale::numbers("loss", &[0.0]);
        assert!(scale.range().start < 0.0 && scale.range().end > 0.0);
        let scale = Scale::words("errors", &["data".to_owned(), "both".to_owned()]);
        assert_eq!((scale.range(), scale.position(1.0)), (-0.5..1.5, 1.0));
    }
}
