//! The configuration file: TOML with the names of the flags; every mistake gets file and line.

use super::options::{OPTION_NAMES, Options};
use airmend_live::gateway::rules::FlowRules;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Parses the file, and says whether it sets anything; an error is a sentence with file and line.
pub(super) fn read(path: &Path) -> Result<(Options, bool), String> {
    let name = path.display().to_string();
    let text = text_of(path).map_err(|error| format!("{name}: it cannot be read: {error}"))?;
    read_text(&name, &text)
}

/// The same of text; `name` stands for it in errors.
pub(super) fn read_text(name: &str, text: &str) -> Result<(Options, bool), String> {
    parse(text).map_err(|fault| {
        let before = text.get(..fault.span.start).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        format!("{name}:{line}: {}", fault.message)
    })
}

/// More than any configuration needs.
const MAX_BYTES: u64 = 1 << 20;

fn text_of(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    if File::open(path)?.take(MAX_BYTES + 1).read_to_string(&mut text)? as u64 > MAX_BYTES {
        return Err(io::Error::other("it is longer than 1 MiB"));
    }
    Ok(text)
}

/// The fault, and its place in the text.
struct Fault {
    span: Range<usize>,
    message: String,
}

impl Fault {
    fn new(span: Range<usize>, message: impl Into<String>) -> Self {
        Self { span, message: message.into() }
    }
}

/// The options, and whether there are any.
fn parse(text: &str) -> Result<(Options, bool), Fault> {
    let table = DeTable::parse(text).map_err(|error| {
        let first = error.message().lines().next().unwrap_or_default();
        Fault::new(error.span().unwrap_or_default(), first)
    })?;
    let mut options = Options::default();
    let mut settings = None;
    for (name, value) in table.get_ref() {
        match (name.get_ref().as_ref(), value.get_ref()) {
            ("flows", DeValue::Array(rules)) => {
                options.flows = rules.iter().map(flow_rule).collect::<Result<_, _>>()?;
                FlowRules::new(options.flows.clone())
                    .map_err(|message| Fault::new(value.span(), message))?;
            }
            ("flows", _) => {
                let message = "`flows` must be a list of rules, such as [\"port:443\"]";
                return Err(Fault::new(value.span(), message));
            }
            ("set", DeValue::Table(table)) => settings = Some(table),
            ("set", _) => {
                let message = "`set` must be a table of the agent's constants: [set]";
                return Err(Fault::new(value.span(), message));
            }
            (key, scalar) => {
                let text = text_of_scalar(scalar).ok_or_else(|| not_single(key, value))?;
                match options.set_from_text(key, &text) {
                    None => return Err(Fault::new(name.span(), unknown(key))),
                    Some(result) => result.map_err(|message| {
                        Fault::new(value.span(), format!("`{key}`: {message}"))
                    })?,
                }
            }
        }
    }
    if let Some(settings) = settings {
        read_settings(settings, &mut options)?;
    }
    Ok((options, !table.get_ref().is_empty()))
}

fn flow_rule<T: std::str::FromStr<Err = String>>(value: &Spanned<DeValue<'_>>) -> Result<T, Fault> {
    let DeValue::String(text) = value.get_ref() else {
        let message = "a flow rule must be a text such as \"port:443\"";
        return Err(Fault::new(value.span(), message));
    };
    text.parse().map_err(|message: String| Fault::new(value.span(), message))
}

/// Each setting is tried on the agent of the file, so that an error has its line.
fn read_settings(table: &DeTable<'_>, options: &mut Options) -> Result<(), Fault> {
    let mut agent = options.agent().map_err(|message| Fault::new(0..0, message))?;
    let mut in_order: Vec<_> = table.iter().collect();
    in_order.sort_by_key(|(name, _)| name.span().start);
    for (name, value) in in_order {
        let key = name.get_ref().as_ref();
        let text = text_of_scalar(value.get_ref()).ok_or_else(|| not_single(key, value))?;
        agent.set(key, &text).map_err(|message| Fault::new(name.span(), message))?;
        options.set.push((key.to_owned(), text));
    }
    Ok(())
}

/// A single value as its flag takes it.
fn text_of_scalar(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => Some(number.to_string()),
        DeValue::Float(number) => Some(number.to_string()),
        DeValue::Boolean(switch) => Some(switch.to_string()),
        _ => None,
    }
}

fn not_single(key: &str, value: &Spanned<DeValue<'_>>) -> Fault {
    match OPTION_NAMES.contains(&key) {
        true => Fault::new(value.span(), format!("`{key}` must be a single value")),
        false => Fault::new(value.span(), unknown(key)),
    }
}

/// The nearest of the known keys, if it is near.
fn unknown(key: &str) -> String {
    let known = OPTION_NAMES.iter().copied();
    let nearest = known
        .map(|known| (strsim::jaro_winkler(key, known), known))
        .max_by(|a, b| a.0.total_cmp(&b.0));
    match nearest {
        Some((0.7.., near)) => format!("unknown key `{key}`; did you mean `{near}`?"),
        _ => format!("unknown key `{key}`; known are {}", OPTION_NAMES.join(", ")),
    }
}
