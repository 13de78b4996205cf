//! The command `airmend`.

mod args;
mod doctor;
mod gateway;
mod gateway_log;
mod generate;
mod keygen;
mod lab_compare;
mod lab_run;
mod link;
mod observation;
mod plot;
mod progress;
mod replay;
mod report;
mod row;
mod sim;
mod stats;
mod status;
mod table;
mod text;
mod top;
mod usage;
mod values;

use anyhow::Context;
use args::{Cli, Command, Lab};
use clap::Parser;
use clap::error::ErrorKind;
use std::io::{self, ErrorKind as Io, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// 0: done. 1: the run failed. 2: bad usage. An error is one sentence on stderr.
fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return not_parsed(&error),
    };
    match dispatch(&cli) {
        Ok(code) => code,
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&error.to_string());
            ExitCode::from(if error.is::<BadUsage>() { 2 } else { 1 })
        }
    }
}

/// A command line that clap accepts and that still cannot be meant.
#[derive(Debug)]
pub(crate) struct BadUsage(String);

impl std::fmt::Display for BadUsage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadUsage {}

fn dispatch(cli: &Cli) -> anyhow::Result<ExitCode> {
    match &cli.command {
        Command::Doctor(args) => doctor::doctor(args),
        Command::Gateway(args) => gateway::gateway(args).map(|()| ExitCode::SUCCESS),
        Command::Generate(command) => generate::generate(command).map(|()| ExitCode::SUCCESS),
        Command::Keygen(args) => keygen::keygen(args).map(|()| ExitCode::SUCCESS),
        Command::Lab(Lab::Run(args)) => lab_run::run(args).map(|()| ExitCode::SUCCESS),
        Command::Lab(Lab::Compare(args)) => lab_compare::compare(args).map(|()| ExitCode::SUCCESS),
        Command::Link(args) => link::link(args).map(|()| ExitCode::SUCCESS),
        Command::Report(args) => report::report(args).map(|()| ExitCode::SUCCESS),
        Command::Replay(args) => replay::run(args).map(|()| ExitCode::SUCCESS),
        Command::Sim(command) => sim::sim(command).map(|()| ExitCode::SUCCESS),
        Command::Status(args) => status::status(args).map(|()| ExitCode::SUCCESS),
        Command::Top(args) => top::top(args).map(|()| ExitCode::SUCCESS),
    }
}

/// Prepares the process for the laboratory, before anything starts a thread: the kernel lets only
/// a process with one thread enter a user namespace. Returns what a signal raises.
pub(crate) fn enter_lab() -> anyhow::Result<Arc<AtomicBool>> {
    airmend_live::lab::enter_user_namespace()?;
    Ok(stop_flag()?)
}

/// Raised by the first SIGINT or SIGTERM; the second one ends the program at once.
fn stop_flag() -> io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        // In this order: the first signal finds the flag down, and only raises it.
        signal_hook::flag::register_conditional_shutdown(signal, 1, Arc::clone(&stop))?;
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}

fn not_parsed(error: &clap::Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // Whoever closed the pipe does not want the rest.
            let _ = write!(io::stdout(), "{error}");
            ExitCode::SUCCESS
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = write!(io::stderr(), "{error}");
            ExitCode::from(2)
        }
        _ => {
            complain(&usage::sentence(error));
            ExitCode::from(2)
        }
    }
}

/// All files in `directory` and below whose names have this extension, in the order of their names.
fn files_below(directory: &Path, extension: &str) -> anyhow::Result<Vec<PathBuf>> {
    let describe = || format!("{} cannot be listed", directory.display());
    let entries = std::fs::read_dir(directory).with_context(describe)?;
    let paths = entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<PathBuf>>>();
    let mut paths = paths.with_context(describe)?;
    paths.sort();
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            files.extend(files_below(&path, extension)?);
        } else if path.extension().is_some_and(|found| found == extension) {
            files.push(path);
        }
    }
    Ok(files)
}

fn complain(sentence: &str) {
    // There is nowhere left to say that stderr is closed.
    let _ = writeln!(io::stderr(), "airmend: {sentence}");
}

/// `airmend … | head` is no failure: the reader has seen enough.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<io::Error>().map(io::Error::kind);
    let json = error.downcast_ref::<serde_json::Error>().and_then(serde_json::Error::io_error_kind);
    io.or(json) == Some(Io::BrokenPipe)
}
