//! `airmend status`: the status of a running gateway or link.

pub(crate) mod client;
pub(crate) mod find;
mod link;
mod report;

pub(crate) use report::{clock, decisions, goodput};

use crate::process::BadUsage;
use crate::row;
use anyhow::Result;
use clap::Args;
use client::Answer;
use std::io;
use std::path::PathBuf;

/// The selection of a running gateway.
#[derive(Args, Clone, Debug)]
pub(crate) struct GatewaySelection {
    /// The gateway's interface; may be left out where only one gateway runs.
    #[arg(value_name = "IF")]
    interface: Option<String>,
    /// The gateway's socket, if it was started with another one than usual.
    #[arg(long, value_name = "PATH", conflicts_with = "interface")]
    socket: Option<PathBuf>,
}

impl GatewaySelection {
    /// The socket of the gateway.
    pub(crate) fn socket(&self) -> Result<PathBuf, BadUsage> {
        match (&self.socket, &self.interface) {
            (Some(path), _) => Ok(path.clone()),
            (None, Some(interface)) => Ok(airmend_live::gateway::default_socket(interface)),
            (None, None) => find::the_only_one(find::DIRECTORY.as_ref()).map_err(BadUsage),
        }
    }
}

/// `airmend status`.
#[derive(Args, Debug)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    which: GatewaySelection,
    /// Print one JSON object; docs/gateway-metrics.md and docs/link.md explain its fields.
    #[arg(long)]
    json: bool,
}

/// Asks once and prints the answer.
pub(crate) fn status(args: &StatusArgs) -> Result<()> {
    let answer = client::ask_any(&args.which.socket()?)?;
    let mut out = io::stdout().lock();
    match answer {
        Answer::Gateway(status) if args.json => row::write(&mut out, &*status)?,
        Answer::Gateway(status) => report::print(&mut out, &status)?,
        Answer::Link(status) if args.json => row::write(&mut out, &*status)?,
        Answer::Link(status) => link::print(&mut out, &status)?,
    }
    Ok(())
}
