//! The flags of `airmend gateway`.

use super::options::Options;
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

/// A name that an interface can have.
fn interface(text: &str) -> Result<String, String> {
    let is_name = !matches!(text, "" | "." | "..")
        && text.len() <= 15
        && !text.contains(|c: char| c == '/' || c == ':' || c.is_whitespace());
    match is_name {
        true => Ok(text.to_owned()),
        false => {
            Err(format!("{text:?} is no name of an interface; `ip link` lists those there are"))
        }
    }
}
