//! The scenario as a tree in which any key can be set, and that still knows where each value stood.

use super::error::{Fault, unknown};
use std::borrow::Cow;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A value of the tree.
pub(super) type Value<'a> = Spanned<DeValue<'a>>;

/// Parts of a key at most: as many as TOML's reader takes. Tables within tables are visited by
/// recursion.
const MAX_PARTS: usize = 80;

/// Sets a key such as `links.air.rate`; tables on the way are made.
pub(super) fn set<'a>(table: &mut DeTable<'a>, key: &str, value: Value<'a>) -> Result<(), Fault> {
    let span = value.span();
    if key.split('.').nth(MAX_PARTS).is_some() {
        return Err(Fault::new(span, format!("a key has at most {MAX_PARTS} parts")));
    }
    let Some((first, rest)) = key.split_once('.') else {
        table.insert(name(key, &span), value);
        return Ok(());
    };
    if !table.contains_key(first) {
        let empty = Spanned::new(span.clone(), DeValue::Table(DeTable::new()));
        table.insert(name(first, &span), empty);
    }
    match table.get_mut(first).map(Spanned::get_mut) {
        Some(DeValue::Table(next)) => set(next, rest, value),
        _ => Err(Fault::new(span, format!("`{first}` is not a table, so it has no `{rest}`"))),
    }
}

/// Gives each link that is on the channel of another one the keys of that link which it does not
/// set.
pub(super) fn inherit(table: &mut DeTable<'_>) -> Result<(), Fault> {
    let Some(DeValue::Table(links)) = table.get_mut("links").map(Spanned::get_mut) else {
        return Ok(());
    };
    let all = links.clone();
    for (_, link) in links.iter_mut() {
        let DeValue::Table(link) = link.get_mut() else { continue };
        let Some(channel) = link.get("channel") else { continue };
        let DeValue::String(name) = channel.get_ref() else { continue };
        let Some(DeValue::Table(first)) = all.get(name.as_ref()).map(Spanned::get_ref) else {
            let known: Vec<&str> = all.keys().map(|name| name.get_ref().as_ref()).collect();
            return Err(Fault::new(channel.span(), unknown("link", name, &known)));
        };
        if first.contains_key("channel") {
            let message = format!("link `{name}` has a `channel` itself; name that link");
            return Err(Fault::new(channel.span(), message));
        }
        for (key, value) in first {
            if !link.contains_key(key) {
                link.insert(key.clone(), value.clone());
            }
        }
    }
    Ok(())
}

/// A value from its words in TOML, or as text if they are none: `20mbit` needs no quotes here. All
/// that is within the value stands at `span` too.
pub(super) fn from_words(words: &str, span: Range<usize>) -> Value<'_> {
    let value = DeValue::parse(words).map(Spanned::into_inner);
    let value = value.unwrap_or(DeValue::String(Cow::Borrowed(words)));
    Spanned::new(span.clone(), placed(value, &span))
}

fn placed<'a>(value: DeValue<'a>, span: &Range<usize>) -> DeValue<'a> {
    let inner = |value: Value<'a>| Spanned::new(span.clone(), placed(value.into_inner(), span));
    match value {
        DeValue::Array(values) => DeValue::Array(values.into_iter().map(inner).collect()),
        DeValue::Table(table) => {
            let entry = |(name, value): (Spanned<Cow<'a, str>>, _)| {
                (Spanned::new(span.clone(), name.into_inner()), inner(value))
            };
            DeValue::Table(table.into_iter().map(entry).collect())
        }
        single => single,
    }
}

/// A value in words that [`from_words`] reads back.
pub(super) fn to_words(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => quoted(text),
        DeValue::Array(values) => {
            let words: Vec<_> = values.iter().map(|value| to_words(value.get_ref())).collect();
            format!("[{}]", words.join(", "))
        }
        DeValue::Table(table) => {
            let entry = |(name, value): (&Spanned<Cow<'_, str>>, &Value<'_>)| {
                format!("{} = {}", quoted(name.get_ref()), to_words(value.get_ref()))
            };
            let words: Vec<_> = table.iter().map(entry).collect();
            format!("{{ {} }}", words.join(", "))
        }
        DeValue::Datetime(time) => time.to_string(),
        single => to_text(single).unwrap_or_default(),
    }
}

/// A basic string of TOML.
fn quoted(text: &str) -> String {
    let escaped = |c: char| match c {
        '"' | '\\' => format!("\\{c}"),
        c if c.is_control() => format!("\\u{:04x}", u32::from(c)),
        c => c.to_string(),
    };
    format!("\"{}\"", text.chars().map(escaped).collect::<String>())
}

/// A single value as people write it, without quotes.
pub fn to_text(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => Some(number.to_string()),
        DeValue::Float(number) => Some(number.to_string()),
        DeValue::Boolean(switch) => Some(switch.to_string()),
        _ => None,
    }
}

fn name(key: &str, span: &Range<usize>) -> Spanned<Cow<'static, str>> {
    Spanned::new(span.clone(), Cow::Owned(key.to_owned()))
}
