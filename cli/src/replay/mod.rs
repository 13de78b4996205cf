//! `airmend replay`: what an agent does, or would have done, with a capture.

mod json;
mod words;

use crate::BadUsage;
use crate::values::setting;
use airmend_proto::agents::{AgentConfig, Limits};
use airmend_proto::recording::RecordedAgent;
use airmend_sim::replay::{Capture, Check, Pace, Prefix, Report, Sides, replay, steps};
use anyhow::{Result, anyhow, bail};
use clap::Args;
use std::io;
use std::path::PathBuf;

/// `airmend replay`.
#[derive(Debug, Args)]
#[command(after_help = "\
The capture goes on as it was, whatever the agent does about it. A segment is lost on the air if
it had left to the air and had to be sent again before the mobile host acknowledged it. A stall
begins when the agent repairs a loss and ends when all is acknowledged that had been sent by then;
what is saved is the time from that repair to the sender's own in the capture. Where an agent was
at work in the capture, the sender had nothing to repair: then one round trip of the wired side
counts, which is the least that a sender needs.")]
pub(crate) struct ReplayArgs {
    /// A pcapng or pcap file.
    #[arg(value_name = "CAPTURE")]
    capture: PathBuf,
    /// The agent, such as snoop or snoop95 [default: the one that was recorded, or snoop].
    #[arg(long, value_name = "NAME", value_parser = AgentConfig::by_name)]
    agent: Option<AgentConfig>,
    /// Set a threshold of the agent by its name, such as dupack_threshold=3; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = setting)]
    settings: Vec<(String, String)>,
    /// The interface of the capture that leads to the air.
    #[arg(long, value_name = "IFACE", conflicts_with = "mobile")]
    air: Option<String>,
    /// The mobile hosts' addresses, such as 10.0.0.2 or 10.0.0.0/24.
    #[arg(long, value_name = "ADDR/PREFIX")]
    mobile: Option<Prefix>,
    /// Fail unless the agent sends what the recorded one sent: the same packets in the same order.
    #[arg(long)]
    check: bool,
    /// Print one JSON object per line: what the agent did and when, each flow, and all together.
    #[arg(long)]
    json: bool,
}

/// All that is told of a replay.
struct Told<'a> {
    args: &'a ReplayArgs,
    capture: &'a Capture,
    agent: &'a AgentConfig,
    sides: &'a Sides,
    report: &'a Report,
    /// Only of the agent that was recorded.
    check: Option<&'a Check>,
}

/// Replays a capture and tells what happened.
pub(crate) fn run(args: &ReplayArgs) -> Result<()> {
    let name = args.capture.display();
    let capture = Capture::open(&args.capture).map_err(|error| anyhow!("{name} {error}"))?;
    let sides = match (&args.air, args.mobile) {
        (Some(air), _) => Sides::AirInterface(air.clone()),
        (None, Some(mobile)) => Sides::Mobile(mobile),
        (None, None) => Sides::of(&capture),
    };
    let steps = steps(&capture, &sides).map_err(|error| anyhow!("{name} {error}"))?;
    let RecordedAgent { config, limits } = chosen_agent(args, &capture)?;
    let is_recorded = sides == Sides::Recorded
        && capture.agent.as_ref().is_some_and(|a| a.config == config && a.limits == limits);
    if args.check && !is_recorded {
        return Err(BadUsage(cannot_check(args, &capture)).into());
    }
    let pace = if is_recorded { Pace::Recorded } else { Pace::Free };
    let is_mended = capture.agent.as_ref().is_some_and(|agent| agent.config != AgentConfig::Plain);
    let mut agent = config.build(limits, HASH_SEED);
    let (report, check) = replay(&mut *agent, &steps, pace, is_mended);

    let check = is_recorded.then_some(&check);
    let told =
        Told { args, capture: &capture, agent: &config, sides: &sides, report: &report, check };
    let mut out = io::stdout().lock();
    if args.json {
        json::write(&mut out, &told)?;
    } else {
        words::write(&mut out, &told)?;
    }
    match check.and_then(|check| check.difference.as_ref()).filter(|_| args.check) {
        Some(difference) => bail!("the replay differs from {name}: {difference}"),
        None => Ok(()),
    }
}

/// The agent that was recorded where no other is asked for. Any other has room for the whole
/// capture in its cache: a cache must hold the window, which nobody knows here.
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
/// A capture is no attacker that waits for the replay.
const HASH_SEED: u64 = 1;
/// Packets of one flow in the cache, about 1 GB of sequence space at most.
const MOST_CACHED: usize = 700_000;
