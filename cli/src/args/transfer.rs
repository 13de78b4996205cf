//! The flags of a transfer that the laboratory measures.

use crate::process::BadUsage;
use crate::values::{amount, positive, seconds};
use airmend_live::lab::config::{Amount, Direction, LabConfig, Short};
use clap::Args;
use std::time::Duration;

/// A transfer.
#[derive(Debug, Args)]
#[command(next_help_heading = "Transfer")]
pub(crate) struct TransferArgs {
    /// Which way the data flows: down (to the mobile host) or up.
    #[arg(long, value_name = "WAY", default_value = "down")]
    pub(super) direction: Direction,
    /// Parallel flows.
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = positive)]
    pub(super) flows: u32,
    /// Further flows, of a second pair of hosts, that are not shown to the agent: they share links
    /// and queues with the mended flows.
    #[arg(long, value_name = "N")]
    #[arg(value_parser = positive, conflicts_with = "pcap")]
    pub(super) unmended_flows: Option<u32>,
    /// Deal the flows to this many pairs of hosts, from 1 to 16, that share the air.
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=16))]
    pub(super) pairs: u32,
    /// Beside them carry short flows between each pair of hosts, one after another, each with a new
    /// connection: the bytes of each, and the pause between two, such as 10kB,50ms.
    #[arg(long, value_name = "BYTES,PAUSE")]
    pub(super) short: Option<Short>,
    /// Each flow carries this many bytes, such as 10000000 or 10MB.
    #[arg(long, value_name = "N", default_value = "10MB", value_parser = amount)]
    pub(super) bytes: u64,
    /// Each flow sends for this long instead.
    #[arg(long, value_name = "S", value_parser = seconds, conflicts_with = "bytes")]
    pub(super) seconds: Option<Duration>,
    /// Exclude this time at the start of each flow from goodput; with --seconds.
    #[arg(long, value_name = "S", value_parser = seconds, requires = "seconds")]
    pub(super) warmup: Option<Duration>,
    /// Run this many transfers one after another over the same links, each with new connections.
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = positive, conflicts_with = "seconds")]
    pub(super) sequential: u32,
    /// Send a small UDP packet to and fro every 10 ms meanwhile, and report its delay.
    #[arg(long)]
    pub(super) ping: bool,
    /// A run that takes longer is stopped and has failed [default: 10 minutes, and --seconds].
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub(super) time_limit: Option<Duration>,
}

impl TransferArgs {
    /// The transfers over the laboratory's own network.
    pub(super) fn config(&self) -> LabConfig {
        let limit = self.time_limit.unwrap_or(TIME_LIMIT + self.seconds.unwrap_or_default());
        LabConfig {
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
            ..LabConfig::default()
        }
    }

    /// Refuses transfers that measure nothing.
    pub(super) fn check(&self) -> Result<(), BadUsage> {
        if self.warmup.is_some_and(|warmup| self.seconds.is_some_and(|time| warmup >= time)) {
            return Err(BadUsage("--warmup must be less than --seconds".to_owned()));
        }
        if self.pairs > self.flows {
            let why = "--pairs: each pair of hosts needs a flow; give more --flows, or fewer pairs";
            return Err(BadUsage(why.to_owned()));
        }
        Ok(())
    }
}

/// Long enough for plain TCP to carry 10 MB across a hop that loses every tenth frame.
const TIME_LIMIT: Duration = Duration::from_secs(600);
