//! One transfer in the laboratory with an agent, and whether its figures can be trusted.

use crate::text;
use airmend_live::lab::config::{LabConfig, Path, Place};
use airmend_live::lab::outcome::Outcome;
use airmend_live::lab::{self, Agents, Forwarding, GatewayCommand, LabError};
use airmend_proto::agents::{AgentConfig, Limits, reporting};
use airmend_proto::recording::RecordedAgent;
use std::io;
use std::sync::atomic::AtomicBool;

/// One transfer through a new agent, or two where the air needs one at each end.
pub(crate) fn transfer(
    config: &LabConfig,
    agent: &AgentConfig,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(lab::Progress),
) -> Result<Outcome, LabError> {
    forwarding(config, agent, |config, forwarding| lab::run(config, forwarding, stop, progress))
}

/// What forwards in this set-up with new agents of this kind, for some work.
pub(crate) fn forwarding<T>(
    config: &LabConfig,
    agent: &AgentConfig,
    work: impl FnOnce(&LabConfig, Forwarding<'_>) -> Result<T, LabError>,
) -> Result<T, LabError> {
    let limits = limits(config);
    let recorded_agent = Some(RecordedAgent { config: agent.clone(), limits });
    let config = &LabConfig { recorded_agent, ..config.clone() };
    // The hosts of the laboratory are trusted: the hash seed need not be secret.
    let build = |number| agent.build(limits, config.seed.wrapping_add(number));
    let agents = match config.path {
        Path::Inline if agent.is_link() => Agents::Both([build(0), build(1)]),
        Path::Inline if config.place == Place::Both => {
            Agents::Both([reporting().build(limits, config.seed), build(1)])
        }
        Path::Inline if let Some(plan) = config.handoff => {
            Agents::Stations((0..u64::from(plan.stations)).map(build).collect())
        }
        Path::Inline => Agents::One(build(0)),
        Path::Kernel => return work(config, Forwarding::Kernel(None)),
        Path::Gateway => {
            let command = gateway(config, agent).map_err(LabError::OwnProgram)?;
            return work(config, Forwarding::Kernel(Some(&command)));
        }
    };
    work(config, Forwarding::Agents(agents))
}

/// This program as a gateway with the same agent.
fn gateway(config: &LabConfig, agent: &AgentConfig) -> io::Result<GatewayCommand> {
    let settings = agent.settings();
    let settings = settings.split_whitespace().flat_map(|setting| ["--set", setting]);
    let observe = config.observe.then_some("--observe");
    let arguments = ["--agent", agent.name()].into_iter().chain(settings).chain(observe);
    let shape = config.shape.map(|shape| format!("--shape={shape}"));
    let trace = config.record_trace.as_ref().map(|file| format!("--trace={}", file.display()));
    let arguments = arguments.map(str::to_owned).chain(shape).chain(trace).collect();
    Ok(GatewayCommand { program: std::env::current_exe()?, arguments })
}

/// The limits of the agent of a run.
pub(crate) fn limits(config: &LabConfig) -> Limits {
    Limits { egress: config.egress_limits(), ..Limits::default() }
}

/// Reasons why the figures may not be those of the links.
pub(crate) fn warnings(outcome: &Outcome) -> Vec<String> {
    let mut warnings = Vec::new();
    let late = outcome.lateness_us;
    if late.p99 > LATE_US {
        warnings.push(format!(
            "the emulated link could not keep time: every hundredth frame left more than {} late",
            text::micros(late.p99)
        ));
    }
    if outcome.port_drops > 0 {
        warnings.push(format!(
            "{} lost outside the emulated links",
            text::counted(outcome.port_drops, "packet")
        ));
    }
    if let Some(late @ 1..) = outcome.gateway_heartbeat_timeouts {
        warnings.push(format!(
            "the gateway was late and the kernel forwarded without it {}",
            text::counted(late, "time")
        ));
    }
    warnings
}

/// The 99th percentile of lateness that affects the measurements, in microseconds.
const LATE_US: u64 = 1_000;

#[cfg(test)]
mod tests {
    use super::*;
    use airmend_live::lab::outcome::Lateness;

    #[test]
    fn a_link_out_of_time_is_doubted() {
        let late = |p99| Lateness { p50: 10, p99, max: 9_000 };
        let outcome = |p99| Outcome { lateness_us: late(p99), ..Outcome::default() };
        assert!(warnings(&outcome(LATE_US)).is_empty());
        assert_eq!(warnings(&outcome(LATE_US + 1)).len(), 1);
        let dropped = Outcome { port_drops: 1, ..Outcome::default() };
        assert_eq!(warnings(&dropped), ["1 packet lost outside the emulated links"]);
    }
}
