//! The flags of `airmend gateway`.

use super::options::Options;
use crate::values::interface;
use clap::Args;
use std::path::PathBuf;

/// `airmend gateway`.
#[derive(Args, Clone, Debug)]
pub(crate) struct GatewayArgs {
    /// The air interface: TCP flows that leave through it are mended.
    #[arg(value_name = "IF", value_parser = interface)]
    pub(super) interface: String,
    /// Read this configuration file; flags override it [default: /etc/airmend/IF.toml, if there].
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    /// Print the final figures as one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
    /// The options that the configuration file also accepts.
    #[command(flatten)]
    pub(super) options: Options,
}
