//! `airmend gateway`: mends the TCP flows that leave through one interface, while the kernel
//! forwards as before.

mod args;
mod configuration;
mod file;
mod options;
mod report;

pub(crate) use args::GatewayArgs;

use crate::gateway_log::{Log, start_logging};
use crate::log_lines::{self, LogLines};
use crate::process::{BadUsage, sentence, stop_flag};
use crate::reload::Reloads;
use crate::service::Service;
use airmend_live::gateway::telemetry::server::{Server, ServerConfig};
use airmend_live::gateway::{Gateway, GatewayConfig, LogFormat, privileges};
use anyhow::Result;
use configuration::config;
use std::io;
use std::sync::atomic::Ordering;

/// Mends until SIGINT or SIGTERM; SIGHUP reads the configuration file again.
pub(crate) fn gateway(args: &GatewayArgs) -> Result<()> {
    let (config, file_sets) = config(args)?;
    check_combination(&config).map_err(BadUsage)?;
    privileges::reduce()?;
    let format = config.log;
    let log = start_logging(format, config.log_level)?;
    let figures = LogLines::new(io::stdout(), |_| String::new())?;
    let _end = log_lines::End;
    let stop = stop_flag()?;
    // A panic of the agent is caught, and its words must not wait for a reader either.
    std::panic::set_hook(Box::new(|defect| {
        tracing::error!("a defect: {}", defect.to_string().replace('\n', " "));
    }));
    let again = args.clone();
    let mut reloads = Reloads::new(file_sets, move || configuration::config(&again))?;
    // Before anything is attached: where another gateway answers, this one must not begin.
    let (socket, metrics) = (config.socket.clone(), config.metrics.clone());
    let mut server = Server::start(&ServerConfig { socket, metrics })?;
    let mut service = Service::new()?;
    let mut gateway = Gateway::open(config.clone())?;
    say(format, &begins(&config));
    service.ready(&begins(&config));
    while !stop.load(Ordering::Relaxed) {
        gateway.step()?;
        service.watchdog();
        while let Some(request) = server.poll() {
            request.word.iter().for_each(|word| gateway.hear(word));
            request.answer(gateway.status());
        }
        if let Some(wanted) = reloads.poll() {
            let reloaded = reload(wanted, &mut gateway, &log);
            tell(&reloaded, &config.interface, format);
        }
    }
    service.stopping();
    let status = gateway.close()?;
    let mut last = Vec::new();
    report::print(&mut last, &status, args.json)?;
    figures.push(last);
    Ok(figures.finish()?)
}

/// Refuses options that contradict each other.
fn check_combination(config: &GatewayConfig) -> Result<(), String> {
    let why = match config.shape {
        Some(_) if config.observe => "observe changes no packet, and shape delays all: choose one",
        Some(_) if config.priority.is_some() => {
            "shape has a class of its own for repairs: leave priority out"
        }
        _ if config.observe && config.handoff.is_some() => {
            "observe changes no packet, and handoff forwards what a mobile host lacks: choose one"
        }
        _ if config.trace.is_some() && !config.observe => {
            "trace records what a gateway sees that touches nothing: add observe"
        }
        _ => return Ok(()),
    };
    Err(why.to_owned())
}

/// The description of the gateway.
fn begins(config: &GatewayConfig) -> String {
    let agent = config.agent.name();
    let what =
        if config.observe { "observing".to_owned() } else { format!("mending with {agent}") };
    format!("{what} what leaves through {}; {}", config.interface, config.limits)
}

/// A file with a mistake changes nothing. What must wait for a restart is named.
fn reload(
    wanted: Result<GatewayConfig>,
    gateway: &mut Gateway,
    log: &Log,
) -> Result<Vec<&'static str>> {
    let wanted = wanted?;
    let left = gateway.reload(&wanted)?;
    log.set_level(wanted.log_level);
    Ok(left)
}

/// Once, in the form of the log.
fn tell(reloaded: &Result<Vec<&'static str>>, interface: &str, format: LogFormat) {
    let left = reloaded.as_ref().map(|left| left.join(", "));
    match (left, format) {
        (Ok(left), LogFormat::Json) => tracing::info!(interface, left, "configuration reloaded"),
        (Ok(left), LogFormat::Text) if left.is_empty() => {
            log_lines::say("the configuration was read again");
        }
        (Ok(left), LogFormat::Text) => log_lines::say(&format!(
            "the configuration was read again; until a restart the old values stay of: {left}"
        )),
        (Err(error), LogFormat::Json) => {
            let why = sentence(error);
            tracing::error!(interface, why, "configuration not reloaded, the old one stays");
        }
        (Err(error), LogFormat::Text) => {
            log_lines::say(&format!("nothing has changed: {}", sentence(error)));
        }
    }
}

/// A line for people, or for programs one like every other.
fn say(format: LogFormat, sentence: &str) {
    match format {
        LogFormat::Text => log_lines::say(sentence),
        LogFormat::Json => tracing::info!("{sentence}"),
    }
}

#[cfg(test)]
mod tests;
