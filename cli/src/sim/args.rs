//! The flags of `airmend sim`.

use crate::values::setting;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// The commands of the simulator.
#[derive(Debug, Subcommand)]
pub(crate) enum Sim {
    /// List experiments.
    List(ListArgs),
    /// Run experiments and report the results.
    Run(RunArgs),
}

/// `airmend sim list`.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Scenario files, or directories of them.
    #[arg(value_name = "FILE", default_value = "experiments")]
    pub(crate) files: Vec<PathBuf>,
}

/// `airmend sim run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Scenario files, or directories of them.
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Set a key of the scenario, such as links.air.rate=2mbit; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = setting)]
    pub(crate) settings: Vec<(String, String)>,
    /// Runs at the same time [default: one for each core].
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    #[arg(value_parser = clap::value_parser!(u16).range(0..=1_024))]
    pub(crate) jobs: u16,
    /// Run what has results of the same scenario, settings and program already.
    #[arg(long)]
    pub(crate) again: bool,
    /// Print one JSON object per line instead of tables.
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    /// Directory of the results.
    #[arg(long, value_name = "DIR", default_value = "out/sim", help_heading = "Output")]
    pub(crate) out: PathBuf,
}
