//! `airmend replay`: the actions of an agent on a capture.

mod args;
mod json;
mod replayed;
mod words;

pub(crate) use args::ReplayArgs;

use crate::process::BadUsage;
use airmend_proto::Forwarder;
use airmend_proto::agents::{AgentConfig, Limits};
use airmend_proto::link::trace;
use airmend_proto::recording::RecordedAgent;
use airmend_sim::replay::{Capture, Pace, Sides, Step, Steps, record_hop, replay, steps};
use anyhow::{Context, Result, anyhow, bail};
use replayed::Replayed;
use std::io;
use std::path::Path;

/// Replays a capture and reports what the agent did.
pub(crate) fn run(args: &ReplayArgs) -> Result<()> {
    let name = args.capture.display();
    let mut capture = Capture::open(&args.capture).map_err(|error| anyhow!("{name} {error}"))?;
    capture.remove_duplicates();
    let sides = match (&args.air, args.mobile) {
        (Some(air), _) => Sides::AirInterface(air.clone()),
        (None, Some(mobile)) => Sides::Mobile(mobile),
        (None, None) => Sides::of(&capture),
    };
    let Steps { steps, left_out, within, open_checksums } =
        steps(&capture, &sides).map_err(|error| anyhow!("{name} {error}"))?;
    if let Some(path) = &args.trace {
        write_trace(path, &steps).with_context(|| format!("no trace of {name}"))?;
    }
    let RecordedAgent { config, limits } = chosen_agent(args, &capture)?;
    let is_recorded = sides == Sides::Recorded
        && capture.agent.as_ref().is_some_and(|a| a.config == config && a.limits == limits);
    if args.check && !is_recorded {
        return Err(BadUsage(cannot_check(args, &capture)).into());
    }
    let pace = if is_recorded { Pace::Recorded } else { Pace::Free };
    let is_mended = capture.agent.as_ref().is_some_and(|agent| !agent.config.is_plain());
    let agent = config.build(limits, HASH_SEED);
    let mut forwarder = Forwarder::checked(agent, limits.egress, config.link())
        .with_priority_class(pace.priority_class(&steps));
    let (report, check) = replay(&mut forwarder, &steps, pace, is_mended);

    let check = is_recorded.then_some(&check);
    let replayed = Replayed {
        args,
        capture: &capture,
        left_out: &left_out,
        within: &within,
        open_checksums,
        agent: &config,
        sides: &sides,
        report: &report,
        check,
    };
    let mut out = io::stdout().lock();
    if args.json {
        json::write(&mut out, &replayed)?;
    } else {
        words::write(&mut out, &replayed)?;
    }
    if report.counters.contains_key("broken_rules") {
        bail!("in the replay of {name} the agent broke a rule of every agent");
    }
    match check.and_then(|check| check.difference.as_ref()).filter(|_| args.check) {
        Some(difference) => bail!("the replay differs from {name}: {difference}"),
        None => Ok(()),
    }
}

/// Writes the hop of a capture as a trace.
fn write_trace(path: &Path, steps: &[Step]) -> Result<()> {
    let rows = record_hop(steps);
    if rows.is_empty() {
        bail!(
            "it shows neither the rate nor the round trip of the air: a transfer of more than a \
             second must go down"
        );
    }
    let lines = std::iter::once(trace::header()).chain(rows.iter().map(trace::row));
    let text: String = lines.map(|line| line + "\n").collect();
    std::fs::write(path, text).with_context(|| format!("{} cannot be written", path.display()))
}

/// The agent that was recorded, unless the flags name another. Any other has room for the whole
/// capture in its cache: a cache must hold the window, which is unknown here.
fn chosen_agent(args: &ReplayArgs, capture: &Capture) -> Result<RecordedAgent> {
    let is_wanted = |name: &str| args.agent.as_ref().is_none_or(|wanted| wanted.name() == name);
    let recorded = capture.agent.clone().filter(|agent| is_wanted(agent.config.name()));
    let mut agent = match recorded {
        Some(recorded) => recorded,
        None => {
            let default = || AgentConfig::by_name(DEFAULT_AGENT);
            let mut config = args.agent.clone().map_or_else(default, Ok).map_err(BadUsage)?;
            config.hold_window(capture.records.len().min(MOST_CACHED));
            RecordedAgent { config, limits: Limits::default() }
        }
    };
    for (key, value) in &args.settings {
        agent.config.set(key, value).map_err(BadUsage)?;
    }
    Ok(agent)
}

fn cannot_check(args: &ReplayArgs, capture: &Capture) -> String {
    let name = args.capture.display();
    match &capture.agent {
        None => format!(
            "{name} does not say which agent it recorded, so there is nothing to check; give a \
             recording of `airmend lab run --pcap`"
        ),
        Some(recorded) => format!(
            "--check compares with the agent that was recorded, {} with its settings: leave out \
             --agent, --set, --air and --mobile",
            recorded.config.name()
        ),
    }
}

const DEFAULT_AGENT: &str = "snoop";
/// A capture cannot attack the hash table: the seed need not be secret.
const HASH_SEED: u64 = 1;
/// Packets of one flow in the cache, about 1 GB of sequence space at most.
const MOST_CACHED: usize = 700_000;
