//! The flags of `airmend replay`.

use crate::values::setting;
use airmend_proto::agents::AgentConfig;
use airmend_sim::replay::Prefix;
use clap::Args;
use std::path::PathBuf;

/// `airmend replay`.
#[derive(Debug, Args)]
#[command(after_help = "\
The capture goes on as it was, whatever the agent does about it. A segment is lost on the air if
it had left to the air and had to be sent again before the mobile host acknowledged it; if that
never did, too, and once, however often it was sent. Packets that were captured twice count once.
A stall begins when the agent repairs a loss and ends when all is acknowledged that had been sent
by then; what is saved is the time from that repair to the sender's own in the capture. Where an
agent was at work in the capture, the sender had nothing to repair: then one round trip of the
wired side counts, which is the least that a sender needs.")]
pub(crate) struct ReplayArgs {
    /// A pcapng or pcap file.
    #[arg(value_name = "CAPTURE")]
    pub(super) capture: PathBuf,
    /// The agent, such as snoop or snoop95 [default: the one that was recorded, or snoop].
    #[arg(long, value_name = "NAME", value_parser = AgentConfig::by_name)]
    pub(super) agent: Option<AgentConfig>,
    /// Set a threshold of the agent by its name, such as dupack_threshold=3; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = setting)]
    pub(super) settings: Vec<(String, String)>,
    /// The interface of the capture that leads to the air.
    #[arg(long, value_name = "IFACE", conflicts_with = "mobile")]
    pub(super) air: Option<String>,
    /// The mobile hosts' addresses, such as 10.0.0.2 or 10.0.0.0/24.
    #[arg(long, value_name = "ADDR/PREFIX")]
    pub(super) mobile: Option<Prefix>,
    /// Record the rate, the delay and the losses of the air, as the capture shows them, into this
    /// CSV file, which `airmend lab run --trace` and scenarios read.
    #[arg(long, value_name = "FILE")]
    pub(super) trace: Option<PathBuf>,
    /// Fail unless the agent sends what the recorded one sent: the same packets in the same order.
    #[arg(long)]
    pub(super) check: bool,
    /// Print one JSON object per line: what the agent did and when, each flow, and all together.
    #[arg(long)]
    pub(super) json: bool,
}
