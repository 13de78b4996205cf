//! Text to value and back, for flags, settings and titles.
//!
//! Units are read without regard to case. In rates and sizes `k`, `M` and `G` are powers of 1000,
//! `Ki`, `Mi` and `Gi` powers of 1024; where the papers say "64 KB" or "1/256 Kb" they mean the
//! binary ones: `64Ki`, `1/256Ki`.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use core::fmt;
use core::time::Duration;

/// A text that is not a value: one sentence says what it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitError {
    what: &'static str,
    text: String,
    must: &'static str,
    example: &'static str,
}

impl fmt::Display for UnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, text, must, example } = self;
        write!(f, "{what} {text:?} must {must}, such as {example}")
    }
}

impl core::error::Error for UnitError {}

/// A rate in bit/s, which is written as it is read: with its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rate(pub u64);

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format_rate(self.0))
    }
}

/// A rate in bit/s, more than 0 and at most 1000gbit: `20mbit`, `1.6mbit`, `500kbit`. A number
/// without a unit is none: who writes `20` means no 20 bit/s.
pub fn parse_rate(text: &str) -> Result<u64, UnitError> {
    let refuse = refusal("rate", text, "20mbit");
    let Some(rate) = quantity(text, RATE_UNITS) else {
        return refuse("be a number with bit, kbit, mbit or gbit");
    };
    match libm::round(rate) {
        ..1.0 => refuse("be more than 0"),
        1e12.. => refuse("be less than 1000gbit"),
        whole => Ok(whole as u64),
    }
}

/// A time of at most a year: `200us`, `2ms`, `1.5s`, `3min`, `1h`; only `0` needs no unit.
pub fn parse_duration(text: &str) -> Result<Duration, UnitError> {
    let refuse = refusal("duration", text, "40ms");
    let nanos = match quantity(text, DURATION_UNITS) {
        None if text.trim() == "0" => 0.0,
        None => return refuse("be a number with ns, us, ms, s, min or h"),
        Some(nanos) => nanos,
    };
    match libm::round(nanos) {
        ..0.0 => refuse("not be negative"),
        31_536e12.. => refuse("be less than a year"),
        whole => Ok(Duration::from_nanos(whole as u64)),
    }
}

/// A size in bytes, at most 1000 TB: `10MB`, `64KiB`, `64Ki`, `1.5M`, `1500`.
pub fn parse_size(text: &str) -> Result<u64, UnitError> {
    let refuse = refusal("size", text, "10MB or 64KiB");
    let count = text.trim_end();
    let Some(bytes) = quantity(count.strip_suffix(['b', 'B']).unwrap_or(count), COUNT_UNITS) else {
        return refuse("be a number of bytes, perhaps with k, M, G, Ki, Mi or Gi");
    };
    match libm::round(bytes) {
        ..0.0 => refuse("not be negative"),
        1e15.. => refuse("be less than 1000000GB"),
        whole => Ok(whole as u64),
    }
}

/// A probability: `0.05`, `5%`.
pub fn parse_probability(text: &str) -> Result<f64, UnitError> {
    let refuse = refusal("probability", text, "0.05 or 5%");
    match quantity(text, PROBABILITY_UNITS) {
        None => refuse("be a number"),
        Some(value) if (0.0..=1.0).contains(&value) => Ok(value.abs()),
        Some(_) => refuse("lie between 0 and 1"),
    }
}

/// A bit error probability: `1e-5`, `1/262144`, `1/256Ki`, `1/100k`.
pub fn parse_ber(text: &str) -> Result<f64, UnitError> {
    let refuse = refusal("bit error rate", text, "1e-5 or 1/256Ki");
    let value = match text.split_once('/') {
        None => quantity(text, NO_UNIT),
        Some((one, bits)) if one.trim() == "1" => reciprocal(bits),
        Some(_) => None,
    };
    match value {
        None => refuse("be a number or one error in so many bits"),
        Some(value) if (0.0..=1.0).contains(&value) => Ok(value.abs()),
        Some(_) => refuse("lie between 0 and 1"),
    }
}

/// A rate as [`parse_rate`] reads it, exactly: `20mbit`, `1.6mbit`.
pub fn format_rate(bps: u64) -> String {
    scaled(bps, &[(9, "gbit"), (6, "mbit"), (3, "kbit"), (0, "bit")])
}

/// A time as [`parse_duration`] reads it, exactly: `2ms`, `1.5s`, `3min`.
pub fn format_duration(time: Duration) -> String {
    let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    if nanos.is_multiple_of(60_000_000_000) && nanos > 0 {
        return format!("{}min", nanos / 60_000_000_000);
    }
    match nanos {
        0 => "0s".to_owned(),
        _ => scaled(nanos, &[(9, "s"), (6, "ms"), (3, "us"), (0, "ns")]),
    }
}

/// A size as [`parse_size`] reads it, exactly, in the units that make it round: `10MB`, `64KiB`.
pub fn format_size(bytes: u64) -> String {
    if bytes.is_multiple_of(1 << 10) && !bytes.is_multiple_of(1_000) {
        let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
        let round = units.iter().find(|(bits, _)| bytes.is_multiple_of(1 << bits));
        return round.map_or_else(String::new, |(bits, unit)| format!("{}{unit}", bytes >> bits));
    }
    scaled(bytes, &[(9, "GB"), (6, "MB"), (3, "kB"), (0, "B")])
}

/// A probability in percent, not rounded to nothing: `5 %`, `0.02 %`.
pub fn format_probability(probability: f64) -> String {
    let percent = format!("{:.6}", probability * 100.0);
    format!("{} %", percent.trim_end_matches('0').trim_end_matches('.'))
}

/// A bit error probability to three digits: `3.81e-6`, `1e-5`.
pub fn format_ber(ber: f64) -> String {
    let text = format!("{ber:.2e}");
    match text.split_once('e') {
        Some((digits, "0")) => digits.trim_end_matches('0').trim_end_matches('.').to_owned(),
        Some((digits, exponent)) => {
            format!("{}e{exponent}", digits.trim_end_matches('0').trim_end_matches('.'))
        }
        None => text,
    }
}

/// Suffixes and their factors; where one ends in another, the longer one comes first.
type Units = &'static [(&'static str, f64)];

const NO_UNIT: Units = &[("", 1.0)];
const RATE_UNITS: Units = &[("kbit", 1e3), ("mbit", 1e6), ("gbit", 1e9), ("bit", 1.0)];
const DURATION_UNITS: Units =
    &[("min", 60e9), ("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9), ("h", 3600e9)];
const PROBABILITY_UNITS: Units = &[("%", 0.01), ("", 1.0)];
const COUNT_UNITS: Units = &[
    ("ki", 1024.0),
    ("mi", 1048576.0),
    ("gi", 1073741824.0),
    ("k", 1e3),
    ("m", 1e6),
    ("g", 1e9),
    ("", 1.0),
];

/// A finite number with one of these units, in their base unit. What overflows is infinite and
/// hence refused by the caller's upper limit.
fn quantity(text: &str, units: Units) -> Option<f64> {
    let text = text.trim().to_ascii_lowercase();
    let (number, factor) = units
        .iter()
        .find_map(|&(unit, factor)| text.strip_suffix(unit).map(|number| (number, factor)))?;
    let number = number.trim_end();
    // Rust also reads "inf" and "nan".
    let plain = number.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | 'e'));
    if plain { number.parse::<f64>().ok().map(|number| number * factor) } else { None }
}

/// One in so many.
fn reciprocal(count: &str) -> Option<f64> {
    quantity(count, COUNT_UNITS).filter(|count| count.is_finite()).map(f64::recip)
}

/// Makes the errors of one parser: each says only what the text must do.
pub(crate) fn refusal<T>(
    what: &'static str,
    text: &str,
    example: &'static str,
) -> impl Fn(&'static str) -> Result<T, UnitError> {
    move |must| Err(UnitError { what, text: text.to_owned(), must, example })
}

/// The value in the first of these units, each 10^places, of which it has at least one.
fn scaled(value: u64, units: &[(u32, &str)]) -> String {
    let fits = |(places, _): &&(u32, &str)| *places == 0 || value >= 10u64.pow(*places);
    units
        .iter()
        .find(fits)
        .map_or_else(String::new, |(places, unit)| decimal(value, *places) + unit)
}

/// `value` / 10^`places`, written out exactly.
fn decimal(value: u64, places: u32) -> String {
    let unit = 10u64.pow(places);
    let (whole, rest) = (value / unit, value % unit);
    if rest == 0 {
        return format!("{whole}");
    }
    let width = places as usize;
    format!("{whole}.{}", format!("{rest:0width$}").trim_end_matches('0'))
}

#[cfg(test)]
mod tests;
