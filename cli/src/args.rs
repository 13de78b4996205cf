//! The flags.

use crate::gateway::GatewayArgs;
use crate::generate::Generate;
use crate::handoff::HandoffArgs;
use crate::link::{KeygenArgs, LinkArgs};
use crate::process::BadUsage;
use crate::replay::ReplayArgs;
use crate::report::ReportArgs;
use crate::sim::Sim;
use crate::status::StatusArgs;
use crate::top::TopArgs;
use crate::values::{Window, amount, far_queue, positive, queue, seconds, setting, window};
use airmend_live::gateway::Shape;
use airmend_live::lab::config::{
    AirQueue, Amount, CongestionControl, DeviceKind, Direction, FarQueue, FarWired, Hop, LabConfig,
    Path, Place, Short,
};
use airmend_proto::agents::AgentConfig;
use airmend_proto::link::ErrorModel;
use airmend_proto::units::{parse_duration, parse_rate};
use clap::{Args, Parser, Subcommand};
use errors::{ErrorArgs, ErrorLists};
use handoff::LabHandoffArgs;
use std::path::PathBuf;
use std::time::Duration;

mod errors;
mod handoff;

/// Makes TCP fast over a lossy air hop without touching either end host.
#[derive(Debug, Parser)]
#[command(name = "airmend", version, disable_help_subcommand = true)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure agents on real kernel TCP across an emulated lossy air hop.
    #[command(subcommand, disable_help_subcommand = true)]
    Lab(Lab),
    /// Run experiments in virtual time.
    #[command(subcommand, disable_help_subcommand = true)]
    Sim(Sim),
    /// Make a page of results, with pictures beside the published numbers.
    Report(ReportArgs),
    /// Feed a capture to an agent and report what it does, or would have done.
    Replay(ReplayArgs),
    /// Join two machines by a virtual interface whose packets cross a lossy path mended.
    Link(Box<LinkArgs>),
    /// Mend the TCP flows that leave through an interface, while the kernel forwards as before.
    Gateway(Box<GatewayArgs>),
    /// Show the status of a running gateway.
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

/// The flags that all runs of a command share.
#[derive(Debug, Args)]
pub(crate) struct Setup {
    /// Set a threshold of the agent by its name, such as dupack_threshold=3; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = setting)]
    #[arg(help_heading = "Agent")]
    pub(crate) settings: Vec<(String, String)>,
    /// Where the agent stands: base (at the base station, where it mends what goes down), mobile
    /// (in the mobile host, where it mends what goes up; with --direction up), or both.
    #[arg(long, value_name = "PLACE", default_value = "base", help_heading = "Agent")]
    place: Place,
    /// Which way the data flows: down (to the mobile host) or up.
    #[arg(long, value_name = "WAY", default_value = "down")]
    #[arg(help_heading = "Transfer")]
    direction: Direction,
    /// Parallel flows.
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Transfer")]
    #[arg(value_parser = positive)]
    flows: u32,
    /// Further flows, of a second pair of hosts, that are not shown to the agent: they share links
    /// and queues with the mended flows.
    #[arg(long, value_name = "N", help_heading = "Transfer")]
    #[arg(value_parser = positive, conflicts_with = "pcap")]
    unmended_flows: Option<u32>,
    /// Deal the flows to this many pairs of hosts, from 1 to 16, that share the air.
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Transfer")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=16))]
    pairs: u32,
    /// Beside them carry short flows between each pair of hosts, one after another, each with a new
    /// connection: the bytes of each, and the pause between two, such as 10kB,50ms.
    #[arg(long, value_name = "BYTES,PAUSE", help_heading = "Transfer")]
    short: Option<Short>,
    /// Each flow carries this many bytes, such as 10000000 or 10MB.
    #[arg(long, value_name = "N", default_value = "10MB", value_parser = amount)]
    #[arg(help_heading = "Transfer")]
    bytes: u64,
    /// Each flow sends for this long instead.
    #[arg(long, value_name = "S", value_parser = seconds, conflicts_with = "bytes")]
    #[arg(help_heading = "Transfer")]
    seconds: Option<Duration>,
    /// Exclude this time at the start of each flow from goodput; with --seconds.
    #[arg(long, value_name = "S", value_parser = seconds, requires = "seconds")]
    #[arg(help_heading = "Transfer")]
    warmup: Option<Duration>,
    /// Run this many transfers one after another over the same links, each with new connections.
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Transfer")]
    #[arg(value_parser = positive, conflicts_with = "seconds")]
    sequential: u32,
    /// Send a small UDP packet to and fro every 10 ms meanwhile, and report its delay.
    #[arg(long, help_heading = "Transfer")]
    pub(crate) ping: bool,
    /// A run that takes longer is stopped and has failed [default: 10 minutes, and --seconds].
    #[arg(long, value_name = "S", value_parser = seconds, help_heading = "Transfer")]
    time_limit: Option<Duration>,
    /// The hosts do not negotiate SACK.
    #[arg(long, help_heading = "Transfer")]
    no_sack: bool,
    /// The hosts do not negotiate timestamps.
    #[arg(long, help_heading = "Transfer")]
    no_timestamps: bool,
    /// IPv6 instead of IPv4.
    #[arg(long, help_heading = "Transfer")]
    ipv6: bool,
    /// Rate of the air hop, each way.
    #[arg(long, default_value = "20mbit", value_parser = parse_rate, help_heading = "Links")]
    #[arg(allow_hyphen_values = true)]
    rate: u64,
    /// One-way delay of the air hop.
    #[arg(long, value_name = "DELAY", default_value = "2ms", value_parser = parse_duration)]
    #[arg(help_heading = "Links", allow_hyphen_values = true)]
    air_delay: Duration,
    /// The air is one channel that half-duplex radios share: backoff, RTS, CTS, packet, and at once
    /// a small answer. T is their turn-around time [default: 10us].
    #[arg(long, value_name = "T", value_parser = parse_duration, help_heading = "Links")]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "10us")]
    half_duplex: Option<Duration>,
    /// Rate of the wired hop, each way.
    #[arg(long, value_name = "RATE", default_value = "100mbit", value_parser = parse_rate)]
    #[arg(help_heading = "Links", allow_hyphen_values = true)]
    wired_rate: u64,
    /// One-way delay of the wired hop.
    #[arg(long, value_name = "DELAY", default_value = "40ms", value_parser = parse_duration)]
    #[arg(help_heading = "Links", allow_hyphen_values = true)]
    wired_delay: Duration,
    /// A wired hop beyond the air, to the mobile hosts: a rate, a delay, and perhaps a loss that no
    /// agent repairs, such as 100mbit,20ms,1%. The air then joins two networks.
    #[arg(long, value_name = "RATE,DELAY[,LOSS]", help_heading = "Links")]
    far_wired: Option<FarWired>,
    /// Frames that wait at most for the air hop, in each direction, or bytes of full ones such as
    /// 65kB [default: twice what the path holds].
    #[arg(long, value_name = "N", help_heading = "Links")]
    #[arg(value_parser = queue)]
    queue: Option<usize>,
    /// The same for the wired hop, where the data meets it [default: 1000, a host's own].
    #[arg(long, value_name = "N", help_heading = "Links")]
    #[arg(value_parser = queue)]
    wired_queue: Option<usize>,
    /// Segments that a receiver's window holds, or none for the kernel's own tuning [default: none,
    /// and the queue with --no-sack].
    #[arg(long, value_name = "N", value_parser = window, help_heading = "Links")]
    window: Option<Window>,
    /// What the base station forwards with: inline (the agent, in the laboratory's loop), kernel
    /// (a kernel, no agent) or gateway (that kernel with `airmend gateway` beside it; needs root).
    #[arg(long, value_name = "PATH", default_value = "inline")]
    #[arg(help_heading = "Links")]
    pub(crate) path: Path,
    /// What queues towards the air, with --path kernel or gateway: fast-band (repairs go first),
    /// fifo, prio, tbf, netem, codel, fq_codel or cake.
    #[arg(long, value_name = "KIND", help_heading = "Links")]
    air_queue: Option<AirQueue>,
    /// The queue of a modem between the base station and the air, in which data then waits for the
    /// air: a FIFO of N frames, codel or fq_codel.
    #[arg(long, value_name = "N|codel|fq_codel", value_parser = far_queue)]
    #[arg(help_heading = "Links", conflicts_with_all = ["air_queue", "half_duplex"])]
    far_queue: Option<FarQueue>,
    /// The base station's interface is shaped by the gateway, see `airmend gateway --shape`; with
    /// --path gateway and --far-queue.
    #[arg(long, value_name = "auto|RATE", help_heading = "Links", requires = "far_queue")]
    #[arg(conflicts_with = "observe")]
    shape: Option<Shape>,
    /// The gateway only observes and estimates the gain of mending; with --path gateway.
    #[arg(long, help_heading = "Links")]
    observe: bool,
    /// What joins the hosts to the links: veth, or tun (which needs /dev/net/tun).
    #[arg(long, value_name = "KIND", default_value = "veth")]
    #[arg(help_heading = "Links")]
    port: DeviceKind,
    /// The seed of every random stream of the links.
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(help_heading = "Links")]
    pub(crate) seed: u64,
    /// Where the mobile host moves.
    #[command(flatten)]
    handoff: LabHandoffArgs,
}

impl Setup {
    /// One run; the seed is the first one.
    pub(crate) fn config(&self, cc: CongestionControl, errors: ErrorModel) -> LabConfig {
        let limit = self.time_limit.unwrap_or(TIME_LIMIT + self.seconds.unwrap_or_default());
        let mut config = LabConfig {
            path: self.path,
            place: self.place,
            air_queue: self.air_queue.unwrap_or_default(),
            far_queue: self.far_queue,
            shape: self.shape,
            observe: self.observe,
            cc,
            sack: !self.no_sack,
            timestamps: !self.no_timestamps,
            direction: self.direction,
            flows: self.flows,
            unmended_flows: self.unmended_flows.unwrap_or(0),
            pairs: self.pairs,
            short: self.short,
            amount: self.seconds.map_or(Amount::Bytes(self.bytes), Amount::Time),
            sequential: self.sequential,
            warmup: self.warmup.unwrap_or_default(),
            ping: self.ping,
            time_limit: limit,
            air: Hop { rate_bps: self.rate, delay: self.air_delay },
            wired: Hop { rate_bps: self.wired_rate, delay: self.wired_delay },
            far_wired: self.far_wired,
            turnaround: self.half_duplex,
            handoff: self.handoff.plan(),
            errors,
            seed: self.seed,
            ipv6: self.ipv6,
            port: self.port,
            ..LabConfig::default()
        };
        config.wired_queue_frames = self.wired_queue.unwrap_or(config.wired_queue_frames);
        config.queue_frames = self.queue.unwrap_or_else(|| config.default_queue_frames());
        config.window_segments = match self.window {
            None => config.default_window_segments(),
            Some(Window(segments)) => segments,
        };
        config
    }

    /// Makes every agent's cache hold the window, and applies `--set` to every agent that has such
    /// a setting; one of them must.
    pub(crate) fn set(&self, agents: &mut [AgentConfig]) -> Result<(), BadUsage> {
        if self.warmup.is_some_and(|warmup| self.seconds.is_some_and(|time| warmup >= time)) {
            return Err(BadUsage("--warmup must be less than --seconds".to_owned()));
        }
        if self.pairs > self.flows {
            let why = "--pairs: each pair of hosts needs a flow; give more --flows, or fewer pairs";
            return Err(BadUsage(why.to_owned()));
        }
        let config = self.config(CongestionControl::Cubic, ErrorModel::None);
        agents.iter().try_for_each(|agent| self.check_place(agent))?;
        agents.iter().try_for_each(|agent| self.check_path(agent))?;
        agents.iter().try_for_each(|agent| self.check_modem(agent))?;
        self.handoff.check(&config, agents)?;
        for agent in agents.iter_mut() {
            agent.hold_window(config.outstanding_segments());
            agent.follow_radio(config.mac().as_ref());
            agent.lose_damaged();
            config.unmended_ports().for_each(|port| agent.exempt(port));
        }
        for (key, value) in &self.settings {
            if key == "half_duplex" {
                let why = "--set: a link must know what the emulated air is: leave half_duplex \
                           out, and give --half-duplex for half-duplex radios";
                return Err(BadUsage(why.to_owned()));
            }
            let mut refused = Ok(());
            let mut taken = false;
            for agent in agents.iter_mut() {
                match agent.set(key, value) {
                    Ok(()) => taken = true,
                    Err(why) => refused = Err(BadUsage(format!("--set: {why}"))),
                }
            }
            if !taken {
                refused?;
            }
        }
        // A profile may have set this setting.
        for agent in agents.iter_mut().filter(|agent| agent.is_link()) {
            agent.set("half_duplex", &config.turnaround.is_some().to_string()).map_err(BadUsage)?;
        }
        Ok(())
    }

    /// Refuses what an agent in the mobile host cannot be beside.
    fn check_place(&self, agent: &AgentConfig) -> Result<(), BadUsage> {
        let refuse = |flag: &str, why| {
            Err(BadUsage(format!("--place {} cannot take {flag}: {why}", self.place.name())))
        };
        let one_radio = "each mobile host has a radio of its own, and the agent is at one of them";
        match self.place {
            Place::Base => Ok(()),
            _ if agent.is_link() => refuse(
                &format!("--agent {}", agent.name()),
                "it has an agent at each end of the air already",
            ),
            _ if self.path != Path::Inline => refuse(
                &format!("--path {}", self.path.name()),
                "the agent in the mobile host is in the laboratory's loop",
            ),
            _ if self.far_wired.is_some() => {
                refuse("--far-wired", "the mobile host then has no radio of its own")
            }
            _ if self.far_queue.is_some() => refuse(
                "--far-queue",
                "the modem's queue holds what goes down, and the agent mends what goes up",
            ),
            _ if self.pairs > 1 => refuse("--pairs", one_radio),
            _ if self.unmended_flows.is_some() => refuse("--unmended-flows", one_radio),
            _ => Ok(()),
        }
    }

    /// Refuses what has no place beside a modem.
    fn check_modem(&self, agent: &AgentConfig) -> Result<(), BadUsage> {
        let refuse =
            |flag: &str, why| Err(BadUsage(format!("--far-queue cannot take {flag}: {why}")));
        match self.far_queue {
            None => Ok(()),
            Some(_) if agent.is_link() => refuse(
                &format!("--agent {}", agent.name()),
                "the ends of a link stand at the air, and the modem between them",
            ),
            Some(_) if self.direction == Direction::Up => {
                refuse("--direction up", "the modem's queue holds what goes down")
            }
            Some(_) => Ok(()),
        }
    }

    /// Refuses what a kernel at the base station cannot do.
    fn check_path(&self, agent: &AgentConfig) -> Result<(), BadUsage> {
        let refuse = |flag: &str, why| {
            Err(BadUsage(format!("--path {} cannot take {flag}: {why}", self.path.name())))
        };
        let flag = format!("--agent {}", agent.name());
        match (self.path, agent) {
            (Path::Inline | Path::Kernel, _) if self.observe => {
                refuse("--observe", "there is no gateway that could; write --path gateway")
            }
            (Path::Inline | Path::Kernel, _) if self.shape.is_some() => {
                refuse("--shape", "there is no gateway that could; write --path gateway")
            }
            (Path::Inline, _) if self.air_queue.is_some() => {
                refuse("--air-queue", "its queue is the agent's; write --path kernel or gateway")
            }
            (Path::Inline, _) => Ok(()),
            (Path::Kernel, agent) if !agent.is_plain() => {
                refuse(&flag, "it is a kernel alone, so write --agent plain")
            }
            (Path::Gateway, agent) if agent.is_link() => {
                refuse(&flag, "it is one agent, and this one has an end at the mobile")
            }
            _ if self.half_duplex.is_some() => {
                refuse("--half-duplex", "a kernel's queue does not ask whose turn it is")
            }
            _ if self.unmended_flows.is_some() => {
                refuse("--unmended-flows", "a kernel forwards all flows alike")
            }
            _ => Ok(()),
        }
    }
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

/// Long enough for plain TCP to carry 10 MB across a hop that loses every tenth frame.
const TIME_LIMIT: Duration = Duration::from_secs(600);

#[cfg(test)]
mod tests;
