//! `airmend lab exec`: any program over the emulated hop.

use crate::args::ExecArgs;
use crate::lab_control::{History, Made, Served};
use crate::lab_run::{describe, forwarding};
use crate::process::{BadUsage, complain, enter_lab};
use crate::{row, text};
use airmend_live::lab::config::LabConfig;
use airmend_live::lab::control::{self, Control, ControlSocket};
use airmend_live::lab::exec::{Executed, Programs, exec};
use airmend_proto::agents::AgentConfig;
use anyhow::Result;
use nix::unistd::geteuid;
use std::io::{self, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, ExitStatus};

/// Runs a program and reports what the links and the agent did; the exit status is that of the
/// program.
pub(crate) fn run(args: &ExecArgs) -> Result<ExitCode> {
    let mut agents = [args.agent.clone()];
    args.network.set(LabConfig::default(), &mut agents)?;
    let [agent] = agents;
    let config = args.network.config(LabConfig::default(), args.cc, args.errors.model())?;
    if args.command.is_empty() && args.json {
        return Err(BadUsage("--json needs a command: a shell's screen is no row".into()).into());
    }
    let shell = || std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into());
    let command = if args.command.is_empty() { vec![shell()] } else { args.command.clone() };
    let (at, server, outside) = (args.at, args.serve.clone(), args.outside);
    if outside && !geteuid().is_root() {
        let why = "--outside needs root: without it a program would have to end the connections \
                   itself, and they would cross the hop by its TCP instead of the server's";
        return Err(BadUsage(why.into()).into());
    }
    let programs = Programs { at, command, server, outside };
    let directory = control::directory();
    let stop = enter_lab()?;
    let history = History::default();
    let executed = forwarding(&config, &agent, |config, forwarding| {
        let (controller, requests) = control::controller();
        let watched = control::Watched::default();
        let network = args.network.clone();
        let (served, agent) = (watched.clone(), agent.clone());
        let mut served =
            Served::new(controller, served, network, config.clone(), agent, history.clone());
        let socket = ControlSocket::start(&directory, move |line| served.answer(line));
        // A laboratory that nobody can change is one all the same.
        if let Err(error) = &socket {
            complain(&format!("`airmend lab set` will not find this laboratory: {error}"));
        }
        exec(config, forwarding, &programs, Some(Control { requests, watched }), &stop)
    })?;
    if let Some(setting) = executed.unforwarded {
        complain(&format!(
            "this machine does not forward, so that the hosts could reach nothing beyond it: \
             `sysctl {setting}=1` changes that"
        ));
    }
    let changes = history.changes();
    // What the program prints is its own: the report goes beside it.
    let mut out = io::stderr().lock();
    if args.json {
        row::write(
            &mut out,
            &row::lab::exec(&agent, &config, &args.network.settings, &executed, &changes),
        )?;
    } else {
        describe_exec(&mut out, &agent, &config, &executed, &changes)?;
    }
    Ok(exit_code(executed.status))
}

/// The program's own, or 128 and the signal that ended it, as a shell has it.
fn exit_code(status: ExitStatus) -> ExitCode {
    let signal = status.signal().map(|signal| 128 + signal);
    let code = status.code().or(signal).and_then(|code| u8::try_from(code).ok());
    ExitCode::from(code.unwrap_or(1))
}

fn describe_exec(
    out: &mut impl Write,
    agent: &AgentConfig,
    config: &LabConfig,
    executed: &Executed,
    changes: &[Made],
) -> io::Result<()> {
    writeln!(
        out,
        "\n{} · {} · {}\n",
        agent.name(),
        text::errors(&config.errors),
        text::hops(config)
    )?;
    let mut line = |name: &str, words: String| writeln!(out, "  {name:<11}{words}");
    line("command", format!("{:.3} s, {}", executed.seconds, executed.status))?;
    for Made { seconds, set } in changes {
        line(&format!("at {seconds:.1} s"), set.clone())?;
    }
    for (name, sender) in ["from fh", "from mh"].into_iter().zip(executed.senders) {
        line(name, describe::sender(sender))?;
    }
    line("agent", describe::counters(&executed.agents.agent_counters))?;
    if !executed.agents.mobile_counters.is_empty() {
        line("at mobile", describe::counters(&executed.agents.mobile_counters))?;
    }
    for (name, report) in &executed.links {
        line(&name.replace('_', " "), describe::link(report))?;
    }
    line("lateness", describe::lateness(executed.lateness_us))
}
