//! The flags of `airmend board`.

use airmend_proto::agents::AgentConfig;
use clap::Args;
use std::path::PathBuf;
use std::str::FromStr;

/// `airmend board`.
#[derive(Debug, Args)]
pub(crate) struct BoardArgs {
    /// Families: scenarios with a table [board], or directories of them.
    #[arg(value_name = "FILE", default_value = "experiments/board")]
    pub(crate) files: Vec<PathBuf>,
    /// Run a twentieth of the cells, chosen at random by the day, and at least four of each family.
    #[arg(long, group = "drawn")]
    pub(crate) quick: bool,
    /// Run recorded cells, chosen at random by the day, for about a minute of a processor, and fail
    /// if one is worse than its record by more than its noise.
    #[arg(long, group = "drawn", requires = "baseline", conflicts_with = "agents")]
    pub(crate) check: bool,
    /// Choose the cells of --quick or --check by this number instead of the day's.
    #[arg(long, value_name = "N", requires = "drawn")]
    pub(crate) seed: Option<u64>,
    /// Only cells whose names contain this text, such as "objects: size 10kB"; may be repeated.
    #[arg(long, value_name = "TEXT")]
    pub(crate) only: Vec<String>,
    /// The agents, each perhaps with settings, such as snoop,snoop:hold_limit=80ms; the others are
    /// compared with the first [default: those of each family].
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) agents: Vec<AgentArg>,
    /// Compare with a recorded run.
    #[arg(long, value_name = "FILE")]
    pub(crate) baseline: Option<PathBuf>,
    /// Put the results into a record, in the place of those of the same cells.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) record: Option<PathBuf>,
    /// What each line of results says of the program [default: its version].
    #[arg(long, value_name = "TEXT", default_value = env!("CARGO_PKG_VERSION"))]
    #[arg(hide_default_value = true, help_heading = "Output")]
    pub(crate) revision: String,
    /// Runs at the same time [default: one for each core].
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    #[arg(value_parser = clap::value_parser!(u16).range(0..=1_024))]
    pub(crate) jobs: u16,
    /// Print one JSON object per line instead of tables.
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    /// The results as JSON lines.
    #[arg(long, value_name = "FILE", default_value = "out/board.jsonl", help_heading = "Output")]
    pub(crate) out: PathBuf,
}

/// An agent, perhaps with settings: `snoop:hold_limit=80ms:air_limit=20`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AgentArg {
    /// As it was written.
    pub(crate) label: String,
    /// The agent's name.
    pub(crate) name: String,
    /// Keys and values.
    pub(crate) settings: Vec<(String, String)>,
    /// Whether it needs another end.
    pub(crate) is_link: bool,
}

impl FromStr for AgentArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.split(':');
        let mut config = AgentConfig::by_name(parts.next().unwrap_or_default())?;
        let mut settings = Vec::new();
        for part in parts {
            let Some((key, value)) = part.split_once('=') else {
                return Err(format!(
                    "{part:?} is no setting; write AGENT:KEY=VALUE, such as snoop:hold_limit=80ms"
                ));
            };
            config.set(key, value)?;
            settings.push((key.to_owned(), value.to_owned()));
        }
        let (name, is_link) = (config.name().to_owned(), config.is_link());
        Ok(Self { label: text.to_owned(), name, settings, is_link })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_has_its_settings_behind_its_name() {
        let agent: AgentArg = "snoop:hold_own=0.5:hold_limit=1s".parse().unwrap();
        assert_eq!((agent.name.as_str(), agent.is_link), ("snoop", false));
        assert_eq!(agent.settings[0], ("hold_own".to_owned(), "0.5".to_owned()));
        assert_eq!(agent.settings.len(), 2);
        assert!("tulip".parse::<AgentArg>().unwrap().is_link);
        for (wrong, says) in [
            ("snup", "known agents are plain"),
            ("snoop:hold_own", "write AGENT:KEY=VALUE"),
            ("snoop:hold_onw=1", "hold_own"),
        ] {
            let refusal = wrong.parse::<AgentArg>().unwrap_err();
            assert!(refusal.contains(says), "{wrong}: {refusal}");
        }
    }
}
