//! What is configured: by flags, and by a file.

use super::args::GatewayArgs;
use super::{file, options};
use crate::process::BadUsage;
use airmend_live::gateway::GatewayConfig;
use anyhow::Result;
use std::path::{Path, PathBuf};

/// The configuration of flags and file, where flags have precedence, and whether the file sets
/// anything. A reload calls it again, and the file is read again.
pub(crate) fn config(args: &GatewayArgs) -> Result<(GatewayConfig, bool)> {
    let (below, file_sets) = match file_of(args) {
        Some(path) => file::read(&path).map_err(BadUsage)?,
        None => (options::Options::default(), false),
    };
    let options = args.options.clone().over(below);
    Ok((options.config(&args.interface).map_err(BadUsage)?, file_sets))
}

/// The file of `--config`, or the interface's own, if there is one.
fn file_of(args: &GatewayArgs) -> Option<PathBuf> {
    let own = || Path::new("/etc/airmend").join(format!("{}.toml", args.interface));
    // One in a directory that this user may not enter is there, too.
    let is_there = |path: &PathBuf| path.try_exists().unwrap_or(true);
    args.config.clone().or_else(|| Some(own()).filter(is_there))
}
