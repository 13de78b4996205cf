//! Configuration files: TOML with the names of the flags; every mistake gets file and line.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// More than any configuration needs.
const MAX_BYTES: u64 = 1 << 20;

/// A mistake, and its place in the text.
pub(crate) struct Fault {
    span: Range<usize>,
    message: String,
}

impl Fault {
    pub(crate) fn new(span: Range<usize>, message: impl Into<String>) -> Self {
        Self { span, message: message.into() }
    }
}

/// The text of a configuration file.
///
/// # Errors
/// It cannot be read, in a sentence.
pub(crate) fn text_of(path: &Path) -> Result<String, String> {
    let read = || {
        let mut text = String::new();
        if File::open(path)?.take(MAX_BYTES + 1).read_to_string(&mut text)? as u64 > MAX_BYTES {
            return Err(io::Error::other("it is longer than 1 MiB"));
        }
        Ok(text)
    };
    read().map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => format!(
            "{0}: this user may not read it: it holds no secret, so make it readable (`chmod 644 \
             {0}`, and 755 its directory), since a service runs as a user of its own",
            path.display()
        ),
        _ => format!("{}: it cannot be read: {error}", path.display()),
    })
}

/// What `parse` makes of the text; `name` stands for it in the error, which is a sentence with the
/// line.
pub(crate) fn parse_text<T>(
    name: &str,
    text: &str,
    parse: impl FnOnce(&DeTable<'_>) -> Result<T, Fault>,
) -> Result<T, String> {
    let table = DeTable::parse(text).map_err(|error| {
        let first = error.message().lines().next().unwrap_or_default();
        Fault::new(error.span().unwrap_or_default(), first)
    });
    table.and_then(|table| parse(table.get_ref())).map_err(|fault| {
        let before = text.get(..fault.span.start).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        format!("{name}:{line}: {}", fault.message)
    })
}

/// The entries of a table as they stand in the text.
pub(crate) fn in_order<'a, 'b>(
    table: &'a DeTable<'b>,
) -> Vec<(&'a Spanned<toml::de::DeString<'b>>, &'a Spanned<DeValue<'b>>)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(name, _)| name.span().start);
    entries
}

/// What a flag without a value is in the file.
pub(crate) fn switch(text: &str) -> Result<bool, String> {
    text.parse().map_err(|_| format!("{text:?} must be true or false"))
}

/// A value that is a list or a table where `key` has one value, or where there is no such key.
pub(crate) fn not_single(key: &str, value: &Spanned<DeValue<'_>>, known: &[&str]) -> Fault {
    match known.contains(&key) {
        true => Fault::new(value.span(), format!("`{key}` must be a single value")),
        false => Fault::new(value.span(), unknown(key, known)),
    }
}

/// The nearest of the known keys, if it is near.
pub(crate) fn unknown(key: &str, known: &[&str]) -> String {
    let shown = key.escape_debug();
    let nearest = known
        .iter()
        .map(|known| (strsim::jaro_winkler(key, known), known))
        .max_by(|a, b| a.0.total_cmp(&b.0));
    match nearest {
        Some((0.7.., near)) => format!("unknown key `{shown}`; did you mean `{near}`?"),
        _ => format!("unknown key `{shown}`; known are {}", known.join(", ")),
    }
}
