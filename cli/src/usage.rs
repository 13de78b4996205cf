//! Wrong usage in one sentence: which flag, which value, and what would be right.

use clap::error::{ContextKind, ContextValue, Error, ErrorKind};
use std::error::Error as _;

/// The error of the command line, without `error:` and without the usage text.
pub(crate) fn sentence(error: &Error) -> String {
    let arg = text(error, ContextKind::InvalidArg);
    // Long flags are known by their name alone: `--rate`, not `--rate <RATE>`.
    let flag = arg.as_deref().map(|arg| arg.split([' ', '=']).next().unwrap_or(arg)).unwrap_or("");
    let value = text(error, ContextKind::InvalidValue).unwrap_or_default();
    match error.kind() {
        ErrorKind::InvalidValue if value.is_empty() => format!("{flag} needs a value"),
        ErrorKind::ValueValidation | ErrorKind::InvalidValue => {
            let why = error.source().map(ToString::to_string).unwrap_or_default();
            format!("{flag}: {}", why.trim_end_matches('.'))
        }
        ErrorKind::UnknownArgument => {
            let hint = text(error, ContextKind::SuggestedArg);
            format!("unknown argument {flag}; {}", try_instead(hint))
        }
        ErrorKind::InvalidSubcommand => {
            let command = text(error, ContextKind::InvalidSubcommand).unwrap_or_default();
            let hint = text(error, ContextKind::SuggestedSubcommand);
            format!("unknown command {command}; {}", try_instead(hint))
        }
        ErrorKind::MissingRequiredArgument if !flag.is_empty() => format!("{flag} is missing"),
        ErrorKind::ArgumentConflict => {
            let other = text(error, ContextKind::PriorArg).unwrap_or_default();
            match other.split([' ', '=']).next().unwrap_or("") {
                same if same == flag || same.is_empty() => format!("{flag} may be given only once"),
                other => format!("{flag} and {other} exclude each other; give one of them"),
            }
        }
        _ => first_line(error),
    }
}

fn try_instead(hint: Option<String>) -> String {
    match hint {
        Some(hint) => format!("did you mean {hint}?"),
        None => "--help lists those known".to_owned(),
    }
}

/// clap's own words, for the rare kinds that have none of ours.
fn first_line(error: &Error) -> String {
    let text = error.to_string();
    let first = text.lines().next().unwrap_or_default();
    first.trim_start_matches("error: ").trim_end_matches(':').to_owned()
}

fn text(error: &Error, kind: ContextKind) -> Option<String> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(text.clone()),
        ContextValue::Strings(texts) => texts.first().cloned(),
        _ => None,
    }
}
