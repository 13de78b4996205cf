//! The command `airmend`.

mod args;
mod board;
mod config_file;
mod doctor;
mod gateway;
mod gateway_log;
mod generate;
mod handoff;
mod keygen;
mod lab_compare;
mod lab_control;
mod lab_exec;
mod lab_run;
mod link;
mod log_lines;
mod map;
mod observation;
mod plot;
mod process;
mod progress;
mod reload;
mod replay;
mod report;
mod row;
mod service;
mod sim;
mod status;
mod table;
mod text;
mod top;
mod usage;
mod values;

use airmend_sim::stats;
use args::{Cli, Command, Lab};
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use process::{BadUsage, complain};
use std::io::{self, ErrorKind as Io, Write};
use std::process::ExitCode;

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
            complain(&process::sentence(&error));
            ExitCode::from(if error.is::<BadUsage>() { 2 } else { 1 })
        }
    }
}

fn dispatch(cli: &Cli) -> anyhow::Result<ExitCode> {
    match &cli.command {
        Command::Board(args) => board::board(args).map(|()| ExitCode::SUCCESS),
        Command::Doctor(args) => doctor::doctor(args),
        Command::Gateway(args) => gateway::gateway(args).map(|()| ExitCode::SUCCESS),
        Command::Generate(command) => {
            generate::generate(command, Cli::command()).map(|()| ExitCode::SUCCESS)
        }
        Command::Handoff(args) => handoff::handoff(args).map(|()| ExitCode::SUCCESS),
        Command::Keygen(args) => keygen::keygen(args).map(|()| ExitCode::SUCCESS),
        Command::Lab(Lab::Run(args)) => lab_run::run(args).map(|()| ExitCode::SUCCESS),
        Command::Lab(Lab::Exec(args)) => lab_exec::run(args),
        Command::Lab(Lab::Set(args)) => lab_control::set(args).map(|()| ExitCode::SUCCESS),
        Command::Lab(Lab::Watch(args)) => lab_control::watch(args).map(|()| ExitCode::SUCCESS),
        Command::Lab(Lab::Shell(args)) => lab_control::shell(args).map(|()| ExitCode::SUCCESS),
        Command::Lab(Lab::Compare(args)) => lab_compare::compare(args).map(|()| ExitCode::SUCCESS),
        Command::Link(args) => link::link(args).map(|()| ExitCode::SUCCESS),
        Command::Map(args) => map::map(args).map(|()| ExitCode::SUCCESS),
        Command::Report(args) => report::report(args).map(|()| ExitCode::SUCCESS),
        Command::Replay(args) => replay::run(args).map(|()| ExitCode::SUCCESS),
        Command::Sim(command) => sim::sim(command).map(|()| ExitCode::SUCCESS),
        Command::Status(args) => status::status(args).map(|()| ExitCode::SUCCESS),
        Command::Top(args) => top::top(args).map(|()| ExitCode::SUCCESS),
    }
}

fn not_parsed(error: &clap::Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // A closed pipe is no failure.
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

/// `airmend … | head` is no failure: the reader has seen enough.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<io::Error>().map(io::Error::kind);
    let json = error.downcast_ref::<serde_json::Error>().and_then(serde_json::Error::io_error_kind);
    io.or(json) == Some(Io::BrokenPipe)
}
