//! Sweeps: which keys take which values, and all their combinations.

use super::document::{to_text, to_words};
use super::error::Fault;
use super::value::Scalar;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

/// Runs of one experiment at most, so that a slip of the pen does not take a year.
pub(super) const MAX_RUNS: usize = 1_000_000;

/// One swept setting: a field of every result.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    /// The field's name.
    pub(super) name: String,
    pub(super) cases: Vec<Case>,
}

/// One value of a swept setting.
#[derive(Clone, Debug)]
pub(super) struct Case {
    /// The field's value, as text.
    pub(super) label: String,
    /// Keys and their values in TOML.
    pub(super) sets: Vec<Assignment>,
}

/// One key of the scenario and its value.
#[derive(Clone, Debug)]
pub(super) struct Assignment {
    pub(super) key: String,
    /// In TOML.
    pub(super) words: String,
    /// Where it stood.
    pub(super) span: Range<usize>,
}

/// The table of one swept setting.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AxisSpec {
    key: Option<String>,
    from: Option<Scalar>,
    to: Option<Scalar>,
    /// The same distance from each value to the next.
    step: Option<f64>,
    /// The same ratio from each value to the next.
    factor: Option<f64>,
    #[serde(rename = "values")]
    _values: Option<IgnoredAny>,
    #[serde(rename = "cases")]
    _cases: Option<IgnoredAny>,
}

/// Reads the table `sweep`. Settings vary in the order in which they stand, the last one fastest.
pub(super) fn axes(sweep: &DeTable<'_>) -> Result<Vec<Axis>, Fault> {
    let mut tables: Vec<_> = sweep.iter().collect();
    tables.sort_by_key(|(name, _)| name.span().start);
    tables
        .into_iter()
        .map(|(name, value)| {
            let cases = cases(name.get_ref(), value)?;
            Ok(Axis { name: name.get_ref().to_string(), cases })
        })
        .collect()
}

fn cases(name: &str, value: &Spanned<DeValue<'_>>) -> Result<Vec<Case>, Fault> {
    let span = value.span();
    let Some(table) = value.get_ref().as_table() else {
        let example =
            format!("{name} = {{ key = \"links.air.delay\", values = [\"1ms\", \"2ms\"] }}");
        return Err(Fault::new(span, format!("a sweep is a table, such as {example}")));
    };
    let spec = AxisSpec::deserialize(ValueDeserializer::from(value.clone()))?;
    let array = |key: &str| table.get(key).map(|value| (value.span(), value.get_ref()));
    match (array("values"), array("cases"), &spec.key) {
        (Some((span, values)), None, Some(key)) => listed(key, span, values),
        (None, Some((span, cases)), None) => named(span, cases),
        (None, None, Some(key)) if spec.from.is_some() => ranged(key, &spec, span),
        _ => {
            let message = format!(
                "the sweep of {name} needs `key` with `values`, or `key` with `from`, `to` and \
                 `step` or `factor`, or `cases`"
            );
            Err(Fault::new(span, message))
        }
    }
}

fn listed(key: &str, span: Range<usize>, values: &DeValue<'_>) -> Result<Vec<Case>, Fault> {
    let Some(values) = values.as_array().filter(|values| !values.is_empty()) else {
        return Err(Fault::new(span, "`values` must be a list of at least one value"));
    };
    let case = |value: &Spanned<DeValue<'_>>| {
        let words = to_words(value.get_ref());
        let label = to_text(value.get_ref()).unwrap_or_else(|| words.clone());
        Case { label, sets: vec![Assignment { key: key.to_owned(), words, span: value.span() }] }
    };
    Ok(values.iter().map(case).collect())
}

fn named(span: Range<usize>, cases: &DeValue<'_>) -> Result<Vec<Case>, Fault> {
    let refuse = |span| {
        Err(Fault::new(span, "`cases` must be tables by name, each with keys and their values"))
    };
    let Some(table) = cases.as_table().filter(|table| !table.is_empty()) else {
        return refuse(span);
    };
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(name, _)| name.span().start);
    let mut cases = Vec::new();
    for (name, value) in entries {
        let Some(keys) = value.get_ref().as_table() else { return refuse(value.span()) };
        let mut sets = Vec::new();
        flatten("", keys, &mut sets);
        cases.push(Case { label: name.get_ref().to_string(), sets });
    }
    Ok(cases)
}

/// Tables within a case are longer keys: `links.air.rate` and `"links.air.rate"` are the same.
pub(super) fn flatten(prefix: &str, table: &DeTable<'_>, sets: &mut Vec<Assignment>) {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(name, _)| name.span().start);
    for (name, value) in entries {
        let key = format!("{prefix}{}", name.get_ref());
        match value.get_ref().as_table().filter(|table| !table.is_empty()) {
            Some(table) => flatten(&format!("{key}."), table, sets),
            None => {
                let words = to_words(value.get_ref());
                sets.push(Assignment { key, words, span: value.span() });
            }
        }
    }
}

/// From one value to another, in equal steps or by equal factors. Both ends have the same words
/// around their number, such as `1/16Ki` and `1/16384Ki`.
fn ranged(key: &str, spec: &AxisSpec, span: Range<usize>) -> Result<Vec<Case>, Fault> {
    let fault = |message: String| Fault::new(span.clone(), message);
    let (Some(Scalar(from)), Some(Scalar(to))) = (&spec.from, &spec.to) else {
        return Err(fault("a range needs `from` and `to`, and `step` or `factor`".to_owned()));
    };
    let (Some(first), Some(last)) = (number_in(from), number_in(to)) else {
        return Err(fault(format!("a range goes between numbers, not from {from} to {to}")));
    };
    if (first.before, first.after) != (last.before, last.after) {
        return Err(fault(format!(
            "the range's ends {from} and {to} must be written in the same unit"
        )));
    }
    let (low, high) = (first.number, last.number);
    let next: Box<dyn Fn(i32) -> f64> = match (spec.step, spec.factor) {
        (Some(step), None) if step > 0.0 && low <= high => {
            Box::new(move |index| low + f64::from(index) * step)
        }
        (None, Some(factor)) if factor > 1.0 && low > 0.0 && low <= high => {
            Box::new(move |index| low * factor.powi(index))
        }
        (Some(_), None) => return Err(fault("a `step` leads upwards from `from` to `to`".into())),
        (None, Some(_)) => {
            return Err(fault("a `factor` above 1 leads upwards from `from` to `to`".into()));
        }
        _ => return Err(fault("a range needs either `step` or `factor`".to_owned())),
    };
    // The last value may be off by the rounding of many steps.
    let numbers: Vec<f64> = (0..=MAX_RUNS as i32)
        .map(next)
        .take_while(|number| *number <= high * (1.0 + 1e-9))
        .collect();
    if numbers.len() > MAX_RUNS {
        return Err(fault(format!("the range has more than {MAX_RUNS} values")));
    }
    let is_bare = first.before.is_empty() && first.after.is_empty();
    let case = |number: &f64| {
        let rounded = (number * 1e9).round() / 1e9;
        let label = format!("{}{rounded}{}", first.before, first.after);
        let words = if is_bare { label.clone() } else { format!("{label:?}") };
        Case { label, sets: vec![Assignment { key: key.to_owned(), words, span: span.clone() }] }
    };
    Ok(numbers.iter().map(case).collect())
}

/// A number and the words around it.
struct Framed<'a> {
    before: &'a str,
    number: f64,
    after: &'a str,
}

/// The last number in a text.
fn number_in(text: &str) -> Option<Framed<'_>> {
    let digit = |c: char| c.is_ascii_digit() || c == '.';
    let end = text.rfind(digit)? + 1;
    let start = text.get(..end)?.rfind(|c| !digit(c)).map_or(0, |at| at + 1);
    let number = text.get(start..end)?.parse().ok()?;
    Some(Framed { before: text.get(..start)?, number, after: text.get(end..)? })
}
