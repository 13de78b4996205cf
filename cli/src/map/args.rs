//! The flags of `airmend map`.

use crate::values::setting;
use airmend_proto::agents::AgentConfig;
use clap::Args;
use std::path::PathBuf;
use std::str::FromStr;

/// `airmend map`.
#[derive(Debug, Args)]
pub(crate) struct MapArgs {
    /// A scenario that sweeps two settings or more [default: one sender, a wire, a lossy hop].
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// The agents, side by side, such as plain,snoop,tulip; not with a scenario of your own.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with = "file")]
    #[arg(value_parser = agent)]
    pub(crate) agents: Vec<AgentConfig>,
    /// The setting from left to right: a sweep of the scenario or any key, such as
    /// links.air.rate=2mbit,20mbit.
    #[arg(long, value_name = "NAME[=VALUES]")]
    pub(crate) x: Option<AxisArg>,
    /// The setting from bottom to top.
    #[arg(long, value_name = "NAME[=VALUES]")]
    pub(crate) y: Option<AxisArg>,
    /// The setting from one row of maps to the next.
    #[arg(long, value_name = "NAME[=VALUES]")]
    pub(crate) rows: Option<AxisArg>,
    /// Set a key of the scenario, such as links.air.rate=2mbit; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = setting)]
    pub(crate) settings: Vec<(String, String)>,
    /// Runs at the same time [default: one for each core].
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    #[arg(value_parser = clap::value_parser!(u16).range(0..=1_024))]
    pub(crate) jobs: u16,
    /// The picture.
    #[arg(long, value_name = "FILE", default_value = "out/map.svg", help_heading = "Output")]
    pub(crate) svg: PathBuf,
    /// Print one JSON object per line instead of tables.
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

/// A setting of the map, and its values if they are not those of the scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AxisArg {
    key: String,
    values: Vec<String>,
}

impl AxisArg {
    /// The name of the sweep.
    pub(crate) fn name(&self) -> String {
        self.key.replace('.', "_")
    }

    /// What makes the scenario sweep it: keys and values in TOML.
    pub(crate) fn settings(&self) -> Vec<(String, String)> {
        let sweep = |key: &str| format!("sweep.{}.{key}", self.name());
        let mut settings = Vec::new();
        if self.key.contains('.') {
            settings.push((sweep("key"), format!("{:?}", self.key)));
        }
        if !self.values.is_empty() {
            settings.push((sweep("values"), format!("{:?}", self.values)));
        }
        settings
    }
}

impl FromStr for AxisArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (key, values) = match text.split_once('=') {
            None => (text, Vec::new()),
            Some((key, values)) => (key, values.split(',').map(str::to_owned).collect()),
        };
        let is_name = |name: &str| {
            let known = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            !name.is_empty() && name.chars().all(known)
        };
        if !key.split('.').all(is_name) || values.iter().any(String::is_empty) {
            return Err("write NAME or NAME=VALUE,VALUE such as loss=0%,1%,5%".to_owned());
        }
        if key.contains('.') && values.is_empty() {
            return Err(format!("the key {key} needs values, such as {key}=VALUE,VALUE"));
        }
        Ok(Self { key: key.to_owned(), values })
    }
}

fn agent(name: &str) -> Result<AgentConfig, String> {
    AgentConfig::by_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_is_a_sweep_of_the_scenario_or_a_key_with_values() {
        let axis: AxisArg = "loss=0%,1%".parse().unwrap();
        let values = ("sweep.loss.values".to_owned(), r#"["0%", "1%"]"#.to_owned());
        assert_eq!((axis.name(), axis.settings()), ("loss".to_owned(), vec![values]));
        let axis: AxisArg = "links.air.rate=2mbit".parse().unwrap();
        assert_eq!(axis.name(), "links_air_rate");
        assert_eq!(axis.settings()[0].1, "\"links.air.rate\"");
        for (wrong, says) in [
            ("", "NAME=VALUE"),
            ("loss=", "NAME=VALUE"),
            ("loss=1%,,2%", "NAME=VALUE"),
            ("a..b=1", "NAME=VALUE"),
            ("\"x\"=1", "NAME=VALUE"),
            ("links.air.rate", "needs values"),
        ] {
            let refusal = wrong.parse::<AxisArg>().unwrap_err();
            assert!(refusal.contains(says), "{wrong}: {refusal}");
        }
    }
}
