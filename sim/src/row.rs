//! Lines of results: JSON objects with stable names and units, in every world.

use airmend_proto::link::ErrorModel;
use airmend_proto::outcome::SenderCounters;
use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter, Serializer};
use serde_json::{Map, Value, json};
use std::io::{self, Write};
use std::time::Duration;

/// One line: fields in the order in which they were first set.
pub type Line = Map<String, Value>;

/// The fields of all parts; a later one takes the place of an earlier one with its name.
pub fn line<const N: usize>(parts: [Value; N]) -> Line {
    let fields = |part| if let Value::Object(fields) = part { fields } else { Line::new() };
    parts.into_iter().flat_map(fields).collect()
}

/// Writes one JSON line.
pub fn write(out: &mut impl Write, line: &impl Serialize) -> io::Result<()> {
    line.serialize(&mut Serializer::with_formatter(&mut *out, WholeNumbers))?;
    writeln!(out)
}

/// A whole number has no decimal point: `2`, not `2.0`.
struct WholeNumbers;

impl Formatter for WholeNumbers {
    fn write_f64<W: Write + ?Sized>(&mut self, out: &mut W, value: f64) -> io::Result<()> {
        if value.fract() == 0.0 && value.abs() < 9e15 {
            return self.write_i64(out, value as i64);
        }
        CompactFormatter.write_f64(out, value)
    }
}

/// Bit error rate and frame loss, of the error processes that have one; the other is null.
pub fn ber_and_loss(errors: &ErrorModel) -> [Option<f64>; 2] {
    match *errors {
        ErrorModel::Ber(ber) => [Some(ber), None],
        ErrorModel::Loss(loss) => [None, Some(loss)],
        ErrorModel::None => [None, Some(0.0)],
        ErrorModel::Burst { .. } | ErrorModel::Fading { .. } => [None, None],
    }
}

/// The counters of the senders, with those that only one world has.
pub fn sender(counters: &SenderCounters, more: Value) -> Line {
    line([json!(counters), json!({"cwnd_reductions": counters.cwnd_reductions()}), more])
}

/// `value` without the decimals beyond these.
pub fn rounded(value: f64, decimals: i32) -> f64 {
    let scale = 10f64.powi(decimals);
    (value * scale).round() / scale
}

/// Four decimals, the precision of shares, ratios and means.
pub fn short(value: f64) -> f64 {
    rounded(value, 4)
}

/// In milliseconds, to the nanosecond.
pub fn millis(duration: Duration) -> f64 {
    rounded(duration.as_secs_f64() * 1e3, 6)
}
