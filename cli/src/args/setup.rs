//! The flags of the network that a command of the laboratory sets up.

use super::handoff::LabHandoffArgs;
use super::trace::TraceArgs;
use super::transfer::TransferArgs;
use crate::process::BadUsage;
use crate::values::{Window, far_queue, queue, setting, window};
use airmend_live::gateway::Shape;
use airmend_live::lab::config::{
    AirQueue, CongestionControl, DeviceKind, Direction, FarQueue, FarWired, Hop, LabConfig, Path,
    Place,
};
use airmend_proto::agents::AgentConfig;
use airmend_proto::link::ErrorModel;
use airmend_proto::units::{parse_duration, parse_rate};
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

/// The network, and the transfers over it.
#[derive(Debug, Args)]
pub(crate) struct Setup {
    #[command(flatten)]
    pub(crate) network: NetworkArgs,
    #[command(flatten)]
    pub(crate) transfer: TransferArgs,
}

/// The hosts, the links between them, and where the agent is.
#[derive(Clone, Debug, Args)]
pub(crate) struct NetworkArgs {
    /// Set a threshold of the agent by its name, such as dupack_threshold=3; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = setting)]
    #[arg(help_heading = "Agent")]
    pub(crate) settings: Vec<(String, String)>,
    /// Where the agent stands: base (at the base station, where it mends what goes down), mobile
    /// (in the mobile host, where it mends what goes up; with --direction up), or both (the same,
    /// and snoop95 at the base station reports to it what the air has lost).
    #[arg(long, value_name = "PLACE", default_value = "base", help_heading = "Agent")]
    place: Place,
    /// The hosts do not negotiate SACK.
    #[arg(long, help_heading = "Hosts")]
    no_sack: bool,
    /// The hosts do not negotiate timestamps.
    #[arg(long, help_heading = "Hosts")]
    no_timestamps: bool,
    /// IPv6 instead of IPv4.
    #[arg(long, help_heading = "Hosts")]
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
    /// With --observe: the gateway records the hop into this CSV file, see `airmend gateway
    /// --trace`.
    #[arg(long, value_name = "FILE", help_heading = "Links", requires = "observe")]
    record_trace: Option<PathBuf>,
    /// What joins the hosts to the links: veth, or tun (which needs /dev/net/tun).
    #[arg(long, value_name = "KIND", default_value = "veth")]
    #[arg(help_heading = "Links")]
    port: DeviceKind,
    /// The seed of every random stream of the links.
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(help_heading = "Links")]
    pub(crate) seed: u64,
    /// By what the air varies.
    #[command(flatten)]
    traces: TraceArgs,
    /// Where the mobile host moves.
    #[command(flatten)]
    handoff: LabHandoffArgs,
}

impl Setup {
    /// One run; the seed is the first one.
    pub(crate) fn config(
        &self,
        cc: CongestionControl,
        errors: ErrorModel,
    ) -> Result<LabConfig, BadUsage> {
        self.network.config(self.transfer.config(), cc, errors)
    }

    /// See [`NetworkArgs::set`].
    pub(crate) fn set(&self, agents: &mut [AgentConfig]) -> Result<(), BadUsage> {
        self.transfer.check()?;
        self.network.set(self.transfer.config(), agents)
    }
}

impl NetworkArgs {
    /// The network for these transfers.
    pub(crate) fn config(
        &self,
        transfers: LabConfig,
        cc: CongestionControl,
        errors: ErrorModel,
    ) -> Result<LabConfig, BadUsage> {
        let config = LabConfig {
            path: self.path,
            place: self.place,
            air_queue: self.air_queue.unwrap_or_default(),
            far_queue: self.far_queue,
            shape: self.shape,
            observe: self.observe,
            record_trace: self.record_trace.clone(),
            cc,
            sack: !self.no_sack,
            timestamps: !self.no_timestamps,
            air: Hop { rate_bps: self.rate, delay: self.air_delay },
            wired: Hop { rate_bps: self.wired_rate, delay: self.wired_delay },
            far_wired: self.far_wired,
            turnaround: self.half_duplex,
            handoff: self.handoff.plan(),
            errors,
            seed: self.seed,
            ipv6: self.ipv6,
            port: self.port,
            ..transfers
        };
        let mut config = self.traces.apply(config)?;
        config.wired_queue_frames = self.wired_queue.unwrap_or(config.wired_queue_frames);
        config.queue_frames = self.queue.unwrap_or_else(|| config.default_queue_frames());
        config.window_segments = match self.window {
            None => config.default_window_segments(),
            Some(Window(segments)) => segments,
        };
        Ok(config)
    }

    /// Makes every agent's cache hold the window, and applies `--set` to every agent that has such
    /// a setting; one of them must.
    pub(crate) fn set(
        &self,
        transfers: LabConfig,
        agents: &mut [AgentConfig],
    ) -> Result<(), BadUsage> {
        let config = self.config(transfers, CongestionControl::Cubic, ErrorModel::None)?;
        agents.iter().try_for_each(|agent| self.check_place(&config, agent))?;
        agents.iter().try_for_each(|agent| self.check_path(&config, agent))?;
        agents.iter().try_for_each(|agent| self.check_modem(&config, agent))?;
        self.handoff.check(&config, agents)?;
        for agent in agents.iter_mut() {
            agent.hold_window(config.outstanding_segments());
            agent.follow_radio(config.mac().as_ref());
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
    fn check_place(&self, config: &LabConfig, agent: &AgentConfig) -> Result<(), BadUsage> {
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
            _ if config.pairs > 1 => refuse("--pairs", one_radio),
            _ if config.unmended_flows > 0 => refuse("--unmended-flows", one_radio),
            _ => Ok(()),
        }
    }

    /// Refuses what has no place beside a modem.
    fn check_modem(&self, config: &LabConfig, agent: &AgentConfig) -> Result<(), BadUsage> {
        let refuse =
            |flag: &str, why| Err(BadUsage(format!("--far-queue cannot take {flag}: {why}")));
        match self.far_queue {
            None => Ok(()),
            Some(_) if agent.is_link() => refuse(
                &format!("--agent {}", agent.name()),
                "the ends of a link stand at the air, and the modem between them",
            ),
            Some(_) if config.direction == Direction::Up => {
                refuse("--direction up", "the modem's queue holds what goes down")
            }
            Some(_) => Ok(()),
        }
    }

    /// Refuses what a kernel at the base station cannot do.
    fn check_path(&self, config: &LabConfig, agent: &AgentConfig) -> Result<(), BadUsage> {
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
            _ if config.unmended_flows > 0 => {
                refuse("--unmended-flows", "a kernel forwards all flows alike")
            }
            _ => Ok(()),
        }
    }
}
