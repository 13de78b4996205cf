//! `airmend link`: a virtual interface between two machines, whose packets cross a lossy path
//! mended.

mod args;
mod configuration;
mod file;
mod hooks;
mod import;
mod options;
mod report;

pub(crate) use args::{KeygenArgs, LinkArgs};

use crate::log_lines::{self, LogLines, say};
use crate::process::{self, sentence, stop_flag};
use crate::reload::Reloads;
use crate::service::{self, Service};
use airmend_live::gateway::privileges;
use airmend_live::gateway::telemetry::server::Server;
use airmend_live::tunnel::{Protocol, Tunnel};
use airmend_proto::Agent;
use airmend_proto::agents::{AgentConfig, Limits};
use anyhow::Result;
use args::OtherThanRun;
use configuration::{Wanted, wanted};
use signal_hook::consts::SIGUSR1;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

/// Runs until SIGINT or SIGTERM; SIGHUP reads the configuration again, SIGUSR1 prints the figures
/// so far.
pub(crate) fn link(args: &LinkArgs) -> Result<()> {
    if let Some(OtherThanRun::Import(args)) = &args.other {
        return import::import(args);
    }
    let (config, file_sets) = wanted(args)?;
    let stop = stop_flag()?;
    let wants_report = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(SIGUSR1, Arc::clone(&wants_report))?;
    // Nothing can take the place of one end of a link, so a panic ends the process.
    std::panic::set_hook(Box::new(|defect| process::complain(&report::defect(defect))));
    log_lines::start(log_lines::lost)?;
    let _end = log_lines::End;
    let figures = LogLines::new(io::stdout(), |_| String::new())?;
    let mut service = Service::new()?;
    // Where another one answers, this one must not begin.
    let mut server = config.server.as_ref().map(Server::start).transpose()?;
    let kept = service::kept_interface();
    let agent = agents(&config.agent);
    let protocol = Protocol { agent: &agent, link: config.agent.link() };
    let mut tunnel = Tunnel::open(&config.tunnel, kept, &protocol)?;
    drop(agent);
    let interface = config.tunnel.device.name().to_owned();
    hooks::run("up", config.hooks.up.as_deref(), &interface)?;
    tunnel.device().iter().for_each(|device| service.keep_interface(*device));
    privileges::keep_net_admin()?;
    let again = args.clone();
    let mut reloads = Reloads::new(file_sets, move || wanted(&again))?;
    let begins = report::begins(&config.tunnel, tunnel.mtu());
    say(&begins);
    service.ready(&begins);
    let mut current = config;
    while !stop.load(Ordering::Relaxed) {
        tunnel.step()?;
        service.watchdog();
        while let Some(told) = tunnel.poll_notice() {
            say(&told.to_string());
        }
        while let Some(request) = server.as_mut().and_then(Server::poll) {
            request.answer(tunnel.status());
        }
        if let Some(wanted) = reloads.poll() {
            reload(&mut tunnel, &mut current, wanted);
        }
        if wants_report.swap(false, Ordering::Relaxed) {
            figures.push(report::lines(&tunnel.report(), args.json)?);
        }
    }
    service.stopping();
    figures.push(report::lines(&tunnel.report(), args.json)?);
    let down = hooks::run("down", current.hooks.down.as_deref(), &interface);
    // Its interface goes before anybody waits for a reader.
    tunnel.close();
    figures.finish()?;
    down
}

/// A configuration with a mistake changes nothing.
fn reload(tunnel: &mut Tunnel, current: &mut Wanted, wanted: Result<Wanted>) {
    let reloaded = wanted.and_then(|wanted| {
        // Settings have no other equality.
        let is_same = format!("{:?}", wanted.agent) == format!("{:?}", current.agent);
        let agent = agents(&wanted.agent);
        let protocol = Protocol { agent: &agent, link: wanted.agent.link() };
        tunnel.reload(&wanted.tunnel, !is_same, &protocol)?;
        drop(agent);
        *current = wanted;
        Ok(())
    });
    say(&match reloaded {
        Ok(()) => "the configuration was read again".to_owned(),
        Err(error) => format!("nothing has changed: {}", sentence(&error)),
    });
}

/// What makes the agent of each peer.
fn agents(config: &AgentConfig) -> impl Fn(Limits) -> Box<dyn Agent + Send> {
    |limits| config.build(limits, seed())
}

/// A secret number, by which flows are distinguished; one half XOR the other is the epoch.
fn seed() -> u64 {
    let secret = RandomState::new().hash_one(()) as u32;
    u64::from(secret) << 32 | u64::from(secret ^ epoch())
}

/// A number that no recent run of this end has used, and a later one than theirs: milliseconds
/// since 1970, which come around in 49 days.
fn epoch() -> u32 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    since.as_millis() as u32
}

#[cfg(test)]
mod tests;
