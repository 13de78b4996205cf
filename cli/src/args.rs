//! The flags.

use crate::board::BoardArgs;
use crate::gateway::GatewayArgs;
use crate::generate::Generate;
use crate::handoff::HandoffArgs;
use crate::lab_control::{SetArgs, ShellArgs, WatchArgs};
use crate::link::{KeygenArgs, LinkArgs};
use crate::map::MapArgs;
use crate::process::BadUsage;
use crate::replay::ReplayArgs;
use crate::report::ReportArgs;
use crate::sim::Sim;
use crate::status::StatusArgs;
use crate::top::TopArgs;
use crate::values::positive;
use airmend_live::lab::config::{CongestionControl, Path};
use airmend_live::lab::exec::At;
use airmend_proto::agents::AgentConfig;
use clap::{Args, Parser, Subcommand};
use errors::{ErrorArgs, ErrorLists};
use setup::{NetworkArgs, Setup};
use std::ffi::OsString;
use std::path::PathBuf;

pub(crate) mod errors;
mod handoff;
pub(crate) mod setup;
mod trace;
mod transfer;

/// Makes TCP fast over a lossy air hop without touching either end host.
#[derive(Debug, Parser)]
#[command(name = "airmend", version)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure agents on real kernel TCP across an emulated lossy air hop.
    #[command(subcommand)]
    Lab(Lab),
    /// Run experiments in virtual time.
    #[command(subcommand)]
    Sim(Sim),
    /// Draw where agents help: the share of the bound over two or three settings, as heat maps.
    Map(Box<MapArgs>),
    /// Judge agents by families of scenarios, and say what moved against a recorded run.
    Board(Box<BoardArgs>),
    /// Make a page of results, with pictures beside the published numbers.
    Report(ReportArgs),
    /// Feed a capture to an agent and report what it does, or would have done.
    Replay(ReplayArgs),
    /// Join two machines by a virtual interface whose packets cross a lossy path mended.
    Link(Box<LinkArgs>),
    /// Mend the TCP flows that leave through an interface, while the kernel forwards as before.
    Gateway(Box<GatewayArgs>),
    /// Show the status of a running gateway or link.
    Status(StatusArgs),
    /// Tell a running gateway that a mobile host may come, is here, or will not come.
    Handoff(HandoffArgs),
    /// Show a running gateway live: what is mended, for which flows, and what the air loses.
    Top(TopArgs),
    /// Make manual pages and shell completions, for packages.
    #[command(subcommand, disable_help_subcommand = true, hide = true)]
    Generate(Generate),
    /// Make a key for a link.
    Keygen(KeygenArgs),
    /// Check what this machine can do, and what follows from each failure.
    Doctor(DoctorArgs),
}

/// The commands of the laboratory.
#[derive(Debug, Subcommand)]
pub(crate) enum Lab {
    /// Run one transfer and report the outcome.
    Run(Box<RunArgs>),
    /// Run any program on the hosts of the laboratory, over the emulated lossy hop.
    Exec(Box<ExecArgs>),
    /// Change the links, the errors or the agent of a laboratory that runs.
    Set(SetArgs),
    /// Watch a laboratory that runs: a line each second.
    Watch(WatchArgs),
    /// Open a shell on a host of a laboratory that runs, in another terminal.
    Shell(ShellArgs),
    /// Run every combination of agents, congestion controls and errors, and compare.
    Compare(Box<CompareArgs>),
}

/// `airmend doctor`.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Print one JSON object per line.
    #[arg(long)]
    pub(crate) json: bool,
    /// Try things in this process's own new namespaces; what `doctor` starts as its child.
    #[arg(long, hide = true)]
    pub(crate) inside: bool,
}

/// `airmend lab run`.
#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct RunArgs {
    /// The agent at the base station, or where --place says: plain, snoop95, snoop,
    /// snoop-nosuppress, snoop-opnet or snoop-opnet-adaptive; or at both ends of the air: tulip,
    /// tulip99, lack or lack-flow.
    #[arg(long, value_name = "NAME", default_value = "snoop", value_parser = AgentConfig::by_name)]
    pub(crate) agent: AgentConfig,
    /// The sender's congestion control: cubic, reno or bbr.
    #[arg(long, value_name = "NAME", default_value = "cubic")]
    pub(crate) cc: CongestionControl,
    /// What the air does.
    #[command(flatten)]
    pub(crate) errors: ErrorArgs,
    /// The rest.
    #[command(flatten)]
    pub(crate) setup: Setup,
    /// Where results go.
    #[command(flatten)]
    pub(crate) output: Output,
}

/// `airmend lab exec`.
#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct ExecArgs {
    /// The agent, as for `airmend lab run`.
    #[arg(long, value_name = "NAME", default_value = "snoop", value_parser = AgentConfig::by_name)]
    pub(crate) agent: AgentConfig,
    /// The hosts' congestion control: cubic, reno or bbr.
    #[arg(long, value_name = "NAME", default_value = "cubic")]
    pub(crate) cc: CongestionControl,
    /// The host that the command runs on: mh (the mobile host) or fh (the fixed one). By these
    /// names the hosts reach each other.
    #[arg(long, value_name = "HOST", default_value = "mh")]
    pub(crate) at: At,
    /// Run this shell command on the other host meanwhile, such as 'python3 -m http.server'.
    #[arg(long, value_name = "COMMAND")]
    pub(crate) serve: Option<String>,
    /// Join the fixed host to this machine's own network, by NAT; the machine is `machine` there.
    /// Needs root.
    #[arg(long)]
    pub(crate) outside: bool,
    /// What the air does.
    #[command(flatten)]
    pub(crate) errors: ErrorArgs,
    /// The rest.
    #[command(flatten)]
    pub(crate) network: NetworkArgs,
    /// Report one JSON object on stderr instead of words.
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    /// The program and its arguments; a shell without them.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// `airmend lab compare`.
#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct CompareArgs {
    /// The agents to compare; ratios are to the first.
    #[arg(long, value_name = "NAMES", default_value = "plain,snoop")]
    #[arg(value_delimiter = ',', value_parser = AgentConfig::by_name)]
    pub(crate) agents: Vec<AgentConfig>,
    /// The senders' congestion controls: any of cubic, reno, bbr.
    #[arg(long, value_name = "NAMES", default_value = "cubic")]
    #[arg(value_delimiter = ',')]
    pub(crate) cc: Vec<CongestionControl>,
    /// Runs of each combination; repetition n uses the seed plus n, the same for all agents.
    #[arg(long, value_name = "N", default_value_t = 3)]
    #[arg(value_parser = positive)]
    pub(crate) repeat: u32,
    /// What the air does.
    #[command(flatten)]
    pub(crate) errors: ErrorLists,
    /// The rest.
    #[command(flatten)]
    pub(crate) setup: Setup,
    /// Where results go.
    #[command(flatten)]
    pub(crate) output: Output,
}

/// Where results go.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct Output {
    /// Print one JSON object per line instead of words and tables.
    #[arg(long)]
    pub(crate) json: bool,
    /// Record both sides of the agent into this pcapng file.
    #[arg(long, value_name = "FILE")]
    pub(crate) pcap: Option<PathBuf>,
    /// Write SVG pictures into this directory.
    #[arg(long, value_name = "DIR")]
    pub(crate) plot: Option<PathBuf>,
}

impl Output {
    /// Refuses a recording where the laboratory's loop does not run exactly one agent.
    pub(crate) fn check(&self, agents: &[AgentConfig], path: Path) -> Result<(), BadUsage> {
        if self.pcap.is_some() && path != Path::Inline {
            return Err(BadUsage(format!(
                "--path {} cannot take --pcap: it records an agent in the laboratory's loop",
                path.name()
            )));
        }
        match agents.iter().find(|agent| agent.is_link() && self.pcap.is_some()) {
            None => Ok(()),
            Some(link) => Err(BadUsage(format!(
                "--pcap records the two sides of one agent, and {} is one at each end of the air: \
                 leave one of them out",
                link.name()
            ))),
        }
    }
}

#[cfg(test)]
mod tests;
