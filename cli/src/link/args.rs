//! The flags of `airmend link` and `airmend keygen`.

use super::options::Options;
use crate::values::interface;
use clap::Args;
use std::path::PathBuf;

/// `airmend link`.
#[derive(Args, Clone, Debug)]
pub(crate) struct LinkArgs {
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
