//! The configuration file of a gateway.

use super::options::{OPTION_NAMES, Options};
use crate::config_file::{Fault, in_order, not_single, parse_text, text_of, unknown};
use airmend_live::gateway::rules::FlowRules;
use airmend_sim::to_text;
use std::path::Path;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Parses the file, and says whether it sets anything; an error is a sentence with file and line.
pub(super) fn read(path: &Path) -> Result<(Options, bool), String> {
    read_text(&path.display().to_string(), &text_of(path)?)
}

/// The same of text; `name` stands for it in errors.
pub(super) fn read_text(name: &str, text: &str) -> Result<(Options, bool), String> {
    parse_text(name, text, |table| Ok((parse(table)?, !table.is_empty())))
}

fn parse(table: &DeTable<'_>) -> Result<Options, Fault> {
    let mut options = Options::default();
    let mut settings = None;
    for (name, value) in table {
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
                let text = to_text(scalar).ok_or_else(|| not_single(key, value, OPTION_NAMES))?;
                match options.set_from_text(key, &text) {
                    None => return Err(Fault::new(name.span(), unknown(key, OPTION_NAMES))),
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
    Ok(options)
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
    for (name, value) in in_order(table) {
        let key = name.get_ref().as_ref();
        let text = to_text(value.get_ref()).ok_or_else(|| not_single(key, value, OPTION_NAMES))?;
        agent.set(key, &text).map_err(|message| Fault::new(name.span(), message))?;
        options.set.push((key.to_owned(), text));
    }
    Ok(())
}
