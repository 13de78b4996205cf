//! The flags of `airmend link` and `airmend keygen`.

use super::import::ImportArgs;
use super::options::Options;
use crate::values::interface;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// `airmend link`.
#[derive(Args, Clone, Debug)]
#[command(args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
pub(crate) struct LinkArgs {
    #[command(subcommand)]
    pub(super) other: Option<OtherThanRun>,
    /// The link that /etc/airmend/link/NAME.toml describes; flags override that file. NAME is also
    /// the name of its interface, and /etc/airmend/link/NAME.key its key, where the file has no
    /// other.
    #[arg(value_name = "NAME", value_parser = interface)]
    pub(super) name: Option<String>,
    /// Read this configuration file.
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    /// The options that the configuration file also accepts.
    #[command(flatten)]
    pub(super) options: Options,
    /// Print the figures as JSON.
    #[arg(long)]
    pub(super) json: bool,
}

/// What `airmend link` does besides.
#[derive(Clone, Debug, Subcommand)]
pub(super) enum OtherThanRun {
    /// Prints a link's file made of one of wg-quick(8).
    Import(ImportArgs),
}

/// `airmend keygen`.
#[derive(Debug, Args)]
pub(crate) struct KeygenArgs {
    /// The new file for the private key.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Make no key, but print the public key of the one in the file.
    #[arg(long)]
    pub(crate) show: bool,
    /// Make a pre-shared key, for --psk-file of airmend link; it has no public half.
    #[arg(long, conflicts_with = "show")]
    pub(crate) psk: bool,
}
