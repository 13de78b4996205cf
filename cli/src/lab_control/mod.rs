//! `airmend lab set`, `watch` and `shell`: a laboratory that runs, from another terminal.

mod changes;
mod client;
mod history;
mod served;
mod watch;

pub(crate) use changes::SetArgs;
pub(crate) use history::{History, Made};
pub(crate) use served::Served;
pub(crate) use watch::{WatchArgs, watch};

use airmend_live::lab::control::HostNamespaces;
use airmend_live::lab::exec::At;
use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use client::{ENTER, SET, Selection, ask};
use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Changes the laboratory.
pub(crate) fn set(args: &SetArgs) -> Result<()> {
    let line = args.line()?;
    ask(&args.which.socket()?, &format!("{SET} {line}")).map(drop)
}

/// `airmend lab shell`.
#[derive(Args, Debug)]
pub(crate) struct ShellArgs {
    #[command(flatten)]
    which: Selection,
    /// The host: mh (the mobile host) or fh (the fixed one).
    #[arg(long, value_name = "HOST", default_value = "mh")]
    at: At,
    /// The program and its arguments; a shell without them.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Becomes a shell, or another program, on a host of the laboratory.
pub(crate) fn shell(args: &ShellArgs) -> Result<()> {
    let socket = args.which.socket()?;
    let answer = ask(&socket, &format!("{ENTER} {}", args.at.name()))?;
    let files = answer.files.try_into();
    let files = files.map_err(|_| anyhow!("the laboratory is one of another version"))?;
    let inside = HostNamespaces::from_files(files);
    inside.enter().context("the laboratory has ended, or is another user's")?;
    let shell = || env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into());
    let mut words = args.command.iter().cloned();
    let program = words.next().unwrap_or_else(shell);
    // The terminal is the program's from now on.
    let error = Command::new(&program).args(words).exec();
    bail!("{} cannot be run: {error}", program.to_string_lossy())
}
