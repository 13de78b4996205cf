//! What is wrong with a scenario, in one sentence with file and line.

use std::fmt;
use std::ops::Range;

/// A scenario that cannot be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    place: String,
    message: String,
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

impl std::error::Error for ScenarioError {}

/// What is wrong, and where in the text.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    pub(super) span: Range<usize>,
    pub(super) message: String,
}

impl Fault {
    pub(super) fn new(span: Range<usize>, message: impl Into<String>) -> Self {
        Self { span, message: message.into() }
    }
}

impl From<toml::de::Error> for Fault {
    fn from(error: toml::de::Error) -> Self {
        let first = error.message().lines().next().unwrap_or_default();
        Self::new(error.span().unwrap_or_default(), in_our_words(first))
    }
}

/// The text of a scenario: its file, and what `--set` adds to it.
#[derive(Clone, Debug)]
pub(super) struct Source {
    pub(super) name: String,
    pub(super) text: String,
    /// Each setting has a place beyond the end of the text, in this order.
    pub(super) settings: Vec<(String, String)>,
}

impl Source {
    /// The place of setting number `index`, which no place in the file has.
    pub(super) fn setting_span(&self, index: usize) -> Range<usize> {
        let at = self.text.len() + 1 + index;
        at..at
    }

    /// The fault with file and line, or with the setting that caused it.
    pub(super) fn error(&self, fault: Fault) -> ScenarioError {
        let place = match fault.span.start.checked_sub(self.text.len() + 1) {
            Some(index) => match self.settings.get(index) {
                Some((key, value)) => format!("--set {key}={value}"),
                None => self.name.clone(),
            },
            None => {
                let before = self.text.get(..fault.span.start).unwrap_or_default();
                format!("{}:{}", self.name, before.matches('\n').count() + 1)
            }
        };
        ScenarioError { place, message: fault.message }
    }

    /// A fault of the whole file.
    pub(super) fn unreadable(name: &str, error: &std::io::Error) -> ScenarioError {
        ScenarioError { place: name.to_owned(), message: format!("it cannot be read: {error}") }
    }
}

/// The known name nearest to `name`, if it is near.
pub(super) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let (score, best) = by_nearness(name, known).next()?;
    (score > 0.7).then_some(best)
}

/// The three known names nearest to `name`, in words.
pub(super) fn three_nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let near = by_nearness(name, known).take(3).map(|(_, known)| format!("`{known}`"));
    near.collect::<Vec<_>>().join(", ")
}

/// Known names with their likeness to `name`, the nearest first.
fn by_nearness<'a>(
    name: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> impl Iterator<Item = (f64, &'a str)> {
    let scored = known.into_iter().map(|known| (strsim::jaro_winkler(name, known), known));
    let mut scored: Vec<(f64, &str)> = scored.collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    scored.into_iter()
}

/// `unknown …; did you mean …?`, or what is known.
pub(super) fn unknown(what: &str, name: &str, known: &[&str]) -> String {
    match nearest(name, known.iter().copied()) {
        Some(near) => format!("unknown {what} `{name}`; did you mean `{near}`?"),
        None if known.is_empty() => format!("unknown {what} `{name}`; there is none"),
        None => format!("unknown {what} `{name}`; known are {}", known.join(", ")),
    }
}

/// The reader's messages as sentences of ours.
fn in_our_words(message: &str) -> String {
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    match quoted.split_first() {
        Some((name, known)) if message.starts_with("unknown field") => unknown("key", name, known),
        Some((name, known)) if message.starts_with("unknown variant") => {
            unknown("value", name, known)
        }
        Some((name, _)) if message.starts_with("missing field") => {
            format!("the key `{name}` is missing")
        }
        _ => match message.strip_prefix("invalid ").and_then(|rest| rest.split_once(", expected "))
        {
            Some((found, expected)) => {
                let found = found.split_once(": ").map_or(found, |(_, found)| found);
                format!("found {found} where {} belongs", kind_in_our_words(expected))
            }
            None => message.to_owned(),
        },
    }
}

fn kind_in_our_words(expected: &str) -> &str {
    match expected {
        "u16" | "u32" | "u64" | "usize" => "a whole number, not negative,",
        "f64" => "a number",
        other => other,
    }
}
