//! What can be changed of a laboratory that runs: `KEY=VALUE`, by the names of the flags of
//! `lab exec`.

use super::client::Selection;
use crate::args::errors::ErrorArgs;
use crate::process::BadUsage;
use crate::usage;
use airmend_proto::agents::AgentConfig;
use airmend_proto::link::{Conditions, ErrorModel};
use airmend_proto::units::{parse_duration, parse_rate};
use clap::{Args, Parser};
use std::time::Duration;

/// `airmend lab set`.
#[derive(Args, Debug)]
pub(crate) struct SetArgs {
    #[command(flatten)]
    pub(super) which: Selection,
    /// What changes, such as loss=5%, rate=5mbit, air-delay=20ms or agent=plain.
    #[arg(value_name = "KEY=VALUE", required = true)]
    changes: Vec<String>,
}

impl SetArgs {
    /// The changes as one line, if they are right.
    pub(super) fn line(&self) -> Result<String, BadUsage> {
        let line = self.changes.join(" ");
        Changes::parse(&line).map_err(BadUsage)?;
        Ok(line)
    }
}

/// The changes of a line.
#[derive(Debug, Parser)]
#[command(no_binary_name = true, disable_help_flag = true, allow_negative_numbers = true)]
pub(super) struct Changes {
    #[command(flatten)]
    errors: ErrorArgs,
    #[arg(long, value_parser = parse_rate)]
    rate: Option<u64>,
    #[arg(long, value_parser = parse_duration)]
    air_delay: Option<Duration>,
    #[arg(long, value_parser = AgentConfig::by_name)]
    pub(super) agent: Option<AgentConfig>,
}

impl Changes {
    /// Reads `KEY=VALUE` words; what is wrong, in one sentence.
    pub(super) fn parse(line: &str) -> Result<Self, String> {
        let words = line.split_whitespace();
        if let Some(word) = words.clone().find(|word| !word.contains('=') || word.starts_with('-'))
        {
            return Err(format!("{word} is no KEY=VALUE, such as loss=5% or agent=plain"));
        }
        let flags = words.map(|word| format!("--{word}"));
        let changes = Self::try_parse_from(flags).map_err(|error| {
            // The words are keys here and no flags.
            usage::sentence(&error).replace("--help lists those known", KEYS).replace("--", "")
        })?;
        match &changes.agent {
            Some(agent) if agent.is_link() => Err(format!(
                "{} is a link and has an agent at each end of the air: it cannot come while the \
                 laboratory runs",
                agent.name()
            )),
            _ => Ok(changes),
        }
    }

    pub(super) fn air(&self) -> Conditions {
        let errors = Some(self.errors.model()).filter(|model| *model != ErrorModel::None);
        Conditions { rate_bps: self.rate, delay: self.air_delay, errors }
    }
}

const KEYS: &str = "there are loss, ber, burst, fading, rate, air-delay and agent";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_changes_or_one_sentence() {
        let changes = Changes::parse("loss=5% rate=5mbit agent=plain").unwrap();
        let air = changes.air();
        assert_eq!((air.rate_bps, air.delay), (Some(5_000_000), None));
        assert_eq!(air.errors, Some(ErrorModel::Loss(0.05)));
        assert_eq!(changes.agent.unwrap().name(), "plain");
        assert_eq!(Changes::parse("air-delay=3ms").unwrap().air().errors, None);
        for (line, words) in [
            ("loss", "KEY=VALUE"),
            ("--loss=5%", "KEY=VALUE"),
            ("loss=7", "loss"),
            ("los=5%", "loss"),
            ("queue=7", "air-delay and agent"),
            ("agent=tulip", "link"),
            ("loss=1% ber=1e-6", "exclude each other"),
            ("rate=-1", "rate"),
        ] {
            let why = Changes::parse(line).unwrap_err();
            let names_flags = why.replace(line, "").contains("--");
            assert!(why.contains(words) && !names_flags, "{line}: {why}");
        }
    }
}
