//! Text to value and back, for flags, settings and titles.
//!
//! Units are read without regard to case. In rates and sizes `k`, `M` and `G` are powers of 1000,
//! `Ki`, `Mi` and `Gi` powers of 1024; where the papers say "64 KB" or "1/256 Kb" they mean the
//! binary ones: `64Ki`, `1/256Ki`.

use crate::link::ErrorModel;
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

/// A rate in bit/s, more than 0 and at most 1000gbit: `20mbit`, `1.6mbit`, `500kbit`, `2000000`.
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
    let Some(bytes) = quantity(text, SIZE_UNITS) else {
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

/// Bursts of n lost frames in every so many bytes: `4/64Ki`, `2/100k`.
pub fn parse_burst(text: &str) -> Result<ErrorModel, UnitError> {
    let refuse = refusal("burst", text, "4/64Ki");
    let Some((frames, every)) = text.split_once('/') else {
        return refuse("be frames lost in a row, a slash, and in how many bytes");
    };
    let Some(frames) = frames.trim().parse().ok().filter(|&frames| frames > 0) else {
        return refuse("begin with a whole number of frames from 1 to 4294967295");
    };
    match parse_size(every)? {
        0 => refuse("come in more than 0 bytes"),
        every_bytes => Ok(ErrorModel::Burst { frames, every_bytes }),
    }
}

/// Markov fading: `good=300ms,bad=30ms,loss=0.5`, and `,ber=1e-6` where the good state has errors.
pub fn parse_fading(text: &str) -> Result<ErrorModel, UnitError> {
    let refuse = refusal("fading", text, "good=300ms,bad=30ms,loss=0.5");
    let (mut good, mut bad, mut loss, mut ber) = (None, None, None, None);
    for part in text.split(',') {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        let again = match key.trim() {
            "good" => good.replace(parse_sojourn(value)?).is_some(),
            "bad" => bad.replace(parse_sojourn(value)?).is_some(),
            "loss" => loss.replace(parse_probability(value)?).is_some(),
            "ber" => ber.replace(parse_ber(value)?).is_some(),
            _ => return refuse("consist of good=, bad=, loss= and perhaps ber="),
        };
        if again {
            return refuse("say each of good=, bad=, loss= and ber= only once");
        }
    }
    let (Some(good), Some(bad), Some(bad_loss)) = (good, bad, loss) else {
        return refuse("say good=, bad= and loss=");
    };
    Ok(ErrorModel::Fading { good, bad, bad_loss, good_ber: ber.unwrap_or(0.0) })
}

/// A rate as [`parse_rate`] reads it, exactly: `20mbit`, `1.6mbit`.
pub fn format_rate(bps: u64) -> String {
    match bps {
        1_000_000_000.. => decimal(bps, 9) + "gbit",
        1_000_000.. => decimal(bps, 6) + "mbit",
        1_000.. => decimal(bps, 3) + "kbit",
        _ => decimal(bps, 0) + "bit",
    }
}

/// A time as [`parse_duration`] reads it, exactly: `2ms`, `1.5s`, `3min`.
pub fn format_duration(time: Duration) -> String {
    let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    match nanos {
        0 => "0s".to_owned(),
        60_000_000_000.. if nanos.is_multiple_of(60_000_000_000) => {
            decimal(nanos / 60_000_000_000, 0) + "min"
        }
        1_000_000_000.. => decimal(nanos, 9) + "s",
        1_000_000.. => decimal(nanos, 6) + "ms",
        1_000.. => decimal(nanos, 3) + "us",
        _ => decimal(nanos, 0) + "ns",
    }
}

/// A size as [`parse_size`] reads it, exactly, in the units that make it round: `10MB`, `64KiB`.
pub fn format_size(bytes: u64) -> String {
    if bytes.is_multiple_of(1 << 10) && !bytes.is_multiple_of(1_000) {
        return match bytes {
            _ if bytes.is_multiple_of(1 << 30) => decimal(bytes >> 30, 0) + "GiB",
            _ if bytes.is_multiple_of(1 << 20) => decimal(bytes >> 20, 0) + "MiB",
            _ => decimal(bytes >> 10, 0) + "KiB",
        };
    }
    match bytes {
        1_000_000_000.. => decimal(bytes, 9) + "GB",
        1_000_000.. => decimal(bytes, 6) + "MB",
        1_000.. => decimal(bytes, 3) + "kB",
        _ => decimal(bytes, 0) + "B",
    }
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
const RATE_UNITS: Units = &[("kbit", 1e3), ("mbit", 1e6), ("gbit", 1e9), ("bit", 1.0), ("", 1.0)];
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
const SIZE_UNITS: Units = &[
    ("kib", 1024.0),
    ("mib", 1048576.0),
    ("gib", 1073741824.0),
    ("ki", 1024.0),
    ("mi", 1048576.0),
    ("gi", 1073741824.0),
    ("kb", 1e3),
    ("mb", 1e6),
    ("gb", 1e9),
    ("b", 1.0),
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

/// A mean sojourn of the fading channel.
fn parse_sojourn(text: &str) -> Result<Duration, UnitError> {
    match parse_duration(text)? {
        short if short < Duration::from_micros(1) => {
            refusal("duration", text, "30ms")("be at least 1us for a fading channel")
        }
        sojourn => Ok(sojourn),
    }
}

/// Makes the errors of one parser: each says only what the text must do.
fn refusal<T>(
    what: &'static str,
    text: &str,
    example: &'static str,
) -> impl Fn(&'static str) -> Result<T, UnitError> {
    move |must| Err(UnitError { what, text: text.to_owned(), must, example })
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
mod tests {
    use super::*;
    use alloc::string::ToString;
    use proptest::prelude::*;

    #[test]
    fn reads_what_people_write() {
        for (text, bps) in [
            ("20mbit", 20_000_000),
            ("1.6mbit", 1_600_000),
            ("500 kbit", 500_000),
            ("1Gbit", 1_000_000_000),
            ("2000000", 2_000_000),
            ("2e6bit", 2_000_000),
        ] {
            assert_eq!(parse_rate(text), Ok(bps), "{text}");
        }
        for (text, micros) in [
            ("2ms", 2_000),
            ("1.5s", 1_500_000),
            ("200us", 200),
            ("200µs", 200),
            ("3min", 180_000_000),
            ("0", 0),
            ("0.1ms", 100),
            ("1h", 3_600_000_000),
        ] {
            assert_eq!(parse_duration(text), Ok(Duration::from_micros(micros)), "{text}");
        }
        for (text, bytes) in [
            ("10MB", 10_000_000),
            ("64k", 64_000),
            ("64KB", 64_000),
            ("64Ki", 65_536),
            ("64KiB", 65_536),
            ("1.5M", 1_500_000),
            ("1500", 1_500),
            ("7 B", 7),
            ("1GiB", 1 << 30),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        assert_eq!(parse_probability("5%"), Ok(0.05));
        assert_eq!(parse_probability("0.05"), Ok(0.05));
        assert_eq!(parse_probability("1"), Ok(1.0));
        assert_eq!(parse_ber("1e-5"), Ok(1e-5));
        assert_eq!(parse_ber("1/262144"), parse_ber("1/256Ki"));
        assert_eq!(parse_ber("1/100k"), Ok(1e-5));
    }

    #[test]
    fn reads_error_models() {
        let burst = ErrorModel::Burst { frames: 4, every_bytes: 65_536 };
        assert_eq!(parse_burst("4/64Ki"), Ok(burst));
        assert_eq!(parse_burst("4/65536"), Ok(burst));
        let fading = ErrorModel::Fading {
            good: Duration::from_millis(300),
            bad: Duration::from_millis(30),
            bad_loss: 0.5,
            good_ber: 0.0,
        };
        assert_eq!(parse_fading("good=300ms,bad=30ms,loss=0.5"), Ok(fading));
        let with_ber = parse_fading("loss=50%, ber=1e-6, bad=30ms, good=0.3s").unwrap();
        assert_eq!(with_ber.to_string(), "fading 300ms good, 30ms bad with loss 50 %, ber 1e-6");
    }

    #[test]
    fn refuses_in_one_sentence() {
        for (error, sentence) in [
            (parse_rate("0").unwrap_err(), r#"rate "0" must be more than 0, such as 20mbit"#),
            (
                parse_rate("20mbps").unwrap_err(),
                r#"rate "20mbps" must be a number with bit, kbit, mbit or gbit, such as 20mbit"#,
            ),
            (
                parse_probability("1.2").unwrap_err(),
                r#"probability "1.2" must lie between 0 and 1, such as 0.05 or 5%"#,
            ),
            (
                parse_burst("0/64Ki").unwrap_err(),
                "burst \"0/64Ki\" must begin with a whole number of frames from 1 to 4294967295, \
                 such as 4/64Ki",
            ),
            (
                parse_fading("good=1s,bad=0ms,loss=1").unwrap_err(),
                r#"duration "0ms" must be at least 1us for a fading channel, such as 30ms"#,
            ),
            (
                parse_fading("good=1s,bad=1ms").unwrap_err(),
                "fading \"good=1s,bad=1ms\" must say good=, bad= and loss=, \
                 such as good=300ms,bad=30ms,loss=0.5",
            ),
        ] {
            assert_eq!(error.to_string(), sentence);
        }
    }

    #[test]
    fn refuses_everything_absurd() {
        for text in ["", " ", "-1", "nan", "inf", "infinity", "1e999", "x", "1x", "1,5", "0x10"] {
            assert!(parse_rate(text).is_err(), "{text}");
            assert!(parse_rate(&format!("{text}mbit")).is_err(), "{text}mbit");
            assert!(parse_duration(&format!("{text}ms")).is_err(), "{text}ms");
            assert!(parse_size(&format!("{text}k")).is_err(), "{text}k");
            assert!(parse_probability(text).is_err(), "{text}");
            assert!(parse_ber(text).is_err(), "{text}");
            assert!(parse_ber(&format!("1/{text}")).is_err(), "1/{text}");
            assert!(parse_burst(&format!("4/{text}")).is_err(), "4/{text}");
            assert!(parse_burst(&format!("{text}/64k")).is_err(), "{text}/64k");
        }
        for text in ["40", "ms", "1e30s", "2ms3"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
        assert!(parse_rate("0.4bit").is_err());
        assert!(parse_ber("1/0").is_err());
        assert!(parse_burst("4/0").is_err());
        assert!(parse_burst("4").is_err());
        for text in ["", "good=1s", "good=1s,bad=1s,loss=2", "good=1s,good=1s,bad=1s,loss=1"] {
            assert!(parse_fading(text).is_err(), "{text}");
        }
    }

    #[test]
    fn writes_what_people_read() {
        assert_eq!(format_rate(20_000_000), "20mbit");
        assert_eq!(format_rate(1_600_000), "1.6mbit");
        assert_eq!(format_rate(1), "1bit");
        assert_eq!(format_duration(Duration::from_micros(2_500)), "2.5ms");
        assert_eq!(format_duration(Duration::from_secs(180)), "3min");
        assert_eq!(format_duration(Duration::from_secs(90)), "90s");
        assert_eq!(format_duration(Duration::ZERO), "0s");
        assert_eq!(format_size(10_000_000), "10MB");
        assert_eq!(format_size(65_536), "64KiB");
        assert_eq!(format_size(1_500), "1.5kB");
        assert_eq!(format_probability(0.07), "7 %");
        assert_eq!(format_probability(0.0002), "0.02 %");
        assert_eq!(format_probability(0.0), "0 %");
        assert_eq!(format_ber(1.0 / 262_144.0), "3.81e-6");
        assert_eq!([format_ber(1e-5), format_ber(0.0)], ["1e-5", "0"]);
        assert_eq!(ErrorModel::Loss(0.05).to_string(), "loss 5 %");
        assert_eq!(ErrorModel::Ber(3.8e-6).to_string(), "ber 3.8e-6");
        let burst = parse_burst("4/64Ki").unwrap();
        assert_eq!(burst.to_string(), "burst of 4 frames every 64KiB");
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(value in 1u64..1_000_000_000_000) {
            prop_assert_eq!(parse_rate(&format_rate(value)), Ok(value));
            prop_assert_eq!(parse_size(&format_size(value)), Ok(value));
            let time = Duration::from_nanos(value);
            prop_assert_eq!(parse_duration(&format_duration(time)), Ok(time));
        }

        #[test]
        fn any_text_is_read_or_refused(text in ".{0,12}|[0-9.e+%/=,a-z-]{0,20}") {
            let _ = parse_rate(&text);
            let _ = parse_duration(&text);
            let _ = parse_size(&text);
            let _ = parse_probability(&text);
            let _ = parse_ber(&text);
            let _ = parse_burst(&text);
            let _ = parse_fading(&text);
        }
    }
}
