//! `airmend gateway`: mends the TCP flows that leave through one interface, while the kernel
//! forwards as before.

mod args;
mod file;
mod options;

pub(crate) use args::GatewayArgs;

use crate::BadUsage;
use airmend_live::gateway::GatewayConfig;
use anyhow::Result;
use std::path::{Path, PathBuf};

/// Mends until SIGINT or SIGTERM.
pub(crate) fn gateway(args: &GatewayArgs) -> Result<()> {
    let config = config(args)?;
    let form = if args.json { "one JSON object" } else { "words" };
    anyhow::bail!(
        "the data path for {} is not wired in yet; it would end in {form}",
        config.interface
    )
}

/// What flags and file ask for; flags win. Called again to reload: the file is then read again.
pub(crate) fn config(args: &GatewayArgs) -> Result<GatewayConfig> {
    let below = match file_of(args) {
        Some(path) => file::read(&path)?,
        None => options::Options::default(),
    };
    let options = args.options.clone().over(below);
    Ok(options.config(&args.interface).map_err(BadUsage)?)
}

/// The file that was asked for, or the interface's own, if there is one.
fn file_of(args: &GatewayArgs) -> Option<PathBuf> {
    let own = || Path::new("/etc/airmend").join(format!("{}.toml", args.interface));
    args.config.clone().or_else(|| Some(own()).filter(|path| path.exists()))
}

#[cfg(test)]
mod tests;
