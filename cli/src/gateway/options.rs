//! The options of flags and of the configuration file, under the same names.

use crate::config_file::switch;
use crate::values::setting;
use airmend_live::bpf::Attach;
use airmend_live::gateway::rules::{FlowRule, FlowRules};
use airmend_live::gateway::{
    DEFAULT_MARK, GatewayConfig, HandoffConfig, LogFormat, LogLevel, MetricsAddress, Shape,
};
use airmend_proto::agents::{self, AgentConfig, Limits};
use airmend_proto::units::{parse_rate, parse_size};
use clap::Args;
use std::path::PathBuf;

/// All options but the interface; an option that is not given has its default.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Options {
    /// What mends the flows: snoop, snoop-nosuppress, snoop95, snoop-opnet, snoop-opnet-adaptive,
    /// or plain for nothing [default: snoop].
    #[arg(long, value_name = "NAME", value_parser = agent, help_heading = MENDING)]
    pub(super) agent: Option<AgentConfig>,
    /// Change no packet: observe, and estimate the gain of mending.
    #[arg(long, help_heading = MENDING)]
    pub(super) observe: bool,
    /// Mend the flows that this rule chooses, such as mobile:10.1.0.0/16,port:443 or !dscp:ef; may
    /// be repeated [default: all flows].
    #[arg(long, value_name = "RULE", help_heading = MENDING, allow_hyphen_values = true)]
    pub(super) flows: Vec<FlowRule>,
    /// Set a constant of the agent by its name, such as hold_limit=100ms; may be repeated.
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting, help_heading = MENDING)]
    pub(super) set: Vec<(String, String)>,
    /// Cache at most so many bytes of packets [default: 256MiB].
    #[arg(long, value_name = "BYTES", value_parser = memory, help_heading = LIMITS)]
    pub(super) limit_memory: Option<usize>,
    /// Mend at most so many flows at a time [default: 100000].
    #[arg(long, value_name = "N", value_parser = flow_count, help_heading = LIMITS)]
    pub(super) limit_flows: Option<usize>,
    /// The mark of the gateway's own packets, for firewall rules [default: 0x6d656e64].
    #[arg(long, value_name = "N", value_parser = mark, help_heading = PACKETS)]
    pub(super) mark: Option<u32>,
    /// The priority of repairs: 0 to 15, 256 to 263 for an access category of 802.11, or a class of
    /// the interface's queue such as 1:10 [default: the highest that the interface honours].
    #[arg(long, value_name = "P", value_parser = priority, help_heading = PACKETS)]
    pub(super) priority: Option<u32>,
    /// Shape the interface to this rate, such as 20mbit, or with auto to a little less than the hop
    /// beyond it delivers: packets then wait here, and repairs go first [default: no shaping].
    #[arg(long, value_name = "auto|RATE", help_heading = PACKETS)]
    pub(super) shape: Option<Shape>,
    /// Share mobile hosts with other gateways, which a multicast group reaches:
    /// group=239.1.2.3,key-file=FILE, and interface=IF where the route does not show it; see
    /// docs/handoff.md.
    #[arg(long, value_name = "GROUP,KEY", help_heading = MENDING)]
    pub(super) handoff: Option<HandoffConfig>,
    /// Where the kernel's programs are attached: tcx, clsact, or auto for tcx where the kernel has
    /// it [default: auto].
    #[arg(long, value_name = "WHERE", help_heading = PACKETS)]
    pub(super) attach: Option<Attach>,
    /// The rate of the air where the interface's queue has none, such as 20mbit: for estimates.
    #[arg(long, value_name = "RATE", value_parser = parse_rate, help_heading = TELEMETRY)]
    pub(super) air_rate: Option<u64>,
    /// Record both sides of the agent into this pcapng file.
    #[arg(long, value_name = "FILE", help_heading = TELEMETRY)]
    pub(super) pcap: Option<PathBuf>,
    /// With --observe, record the rate, the delay and the losses of the air, each second, into this
    /// CSV file, which `airmend lab run --trace` and scenarios read.
    #[arg(long, value_name = "FILE", help_heading = TELEMETRY)]
    pub(super) trace: Option<PathBuf>,
    /// Serve metrics to Prometheus on this loopback address or Unix socket, such as 127.0.0.1:9290,
    /// or on another address to a network: 10.0.5.1:9290,from=10.0.5.0/24.
    #[arg(long, value_name = "ADDR", help_heading = TELEMETRY)]
    pub(super) metrics: Option<MetricsAddress>,
    /// The socket for airmend status and airmend top [default: /run/airmend/IF/status.sock].
    #[arg(long, value_name = "PATH", help_heading = TELEMETRY)]
    pub(super) socket: Option<PathBuf>,
    /// The form of the log on stderr: text or json [default: text].
    #[arg(long, value_name = "FORM", help_heading = TELEMETRY)]
    pub(super) log: Option<LogFormat>,
    /// Log nothing below this level: error, warn, info or debug [default: info].
    #[arg(long, value_name = "LEVEL", help_heading = TELEMETRY)]
    pub(super) log_level: Option<LogLevel>,
    /// Keep the three capabilities after set-up, so that a reload can raise the priority.
    #[arg(long)]
    pub(super) keep_privileges: bool,
}

/// The options with a single value: their names, fields, and how each reads text.
macro_rules! single_values {
    ($($name:literal $field:ident = $read:expr;)*) => {
        /// The names of all options, as flags without their dashes and as keys of the file.
        pub(super) const OPTION_NAMES: &[&str] =
            &[$($name,)* "observe", "keep-privileges", "flows", "set"];

        impl Options {
            /// Sets the option of this name from text, as its flag does. `None` if there is none.
            pub(super) fn set_from_text(
                &mut self,
                name: &str,
                text: &str,
            ) -> Option<Result<(), String>> {
                let words = |error: &dyn ToString| error.to_string();
                Some(match name {
                    $($name => {
                        $read(text).map(|value| self.$field = Some(value)).map_err(|e| words(&e))
                    })*
                    "observe" => switch(text).map(|on| self.observe = on),
                    "keep-privileges" => switch(text).map(|on| self.keep_privileges = on),
                    _ => return None,
                })
            }

            /// Both, where `self` wins. Rules are replaced as a whole, agent settings one by one.
            pub(super) fn over(self, below: Self) -> Self {
                Self {
                    $($field: self.$field.or(below.$field),)*
                    observe: self.observe || below.observe,
                    keep_privileges: self.keep_privileges || below.keep_privileges,
                    flows: if self.flows.is_empty() { below.flows } else { self.flows },
                    set: [below.set, self.set].concat(),
                }
            }
        }
    };
}

single_values! {
    "agent" agent = agent;
    "limit-memory" limit_memory = memory;
    "limit-flows" limit_flows = flow_count;
    "mark" mark = mark;
    "priority" priority = priority;
    "shape" shape = str::parse;
    "handoff" handoff = str::parse;
    "attach" attach = str::parse;
    "air-rate" air_rate = parse_rate;
    "pcap" pcap = str::parse;
    "trace" trace = str::parse;
    "metrics" metrics = str::parse;
    "socket" socket = str::parse;
    "log" log = str::parse;
    "log-level" log_level = str::parse;
}

impl Options {
    /// The agent, with its settings as given.
    pub(super) fn agent(&self) -> Result<AgentConfig, String> {
        let mut agent = match &self.agent {
            Some(agent) => agent.clone(),
            None => AgentConfig::by_name(DEFAULT_AGENT)?,
        };
        for (key, value) in &self.set {
            agent.set(key, value)?;
        }
        Ok(agent)
    }

    /// The configuration of the gateway on `interface`.
    pub(super) fn config(self, interface: &str) -> Result<GatewayConfig, String> {
        let default = GatewayConfig::new(interface, self.agent()?);
        Ok(GatewayConfig {
            limits: Limits {
                flows: self.limit_flows.unwrap_or(default.limits.flows),
                cache_bytes: self.limit_memory.unwrap_or(default.limits.cache_bytes),
                egress: default.limits.egress,
            },
            observe: self.observe,
            rules: FlowRules::new(self.flows)?,
            mark: self.mark.unwrap_or(DEFAULT_MARK),
            priority: self.priority,
            shape: self.shape,
            handoff: self.handoff,
            attach: self.attach.unwrap_or_default(),
            air_rate_bps: self.air_rate,
            pcap: self.pcap,
            trace: self.trace,
            metrics: self.metrics,
            socket: self.socket.unwrap_or(default.socket),
            log: self.log.unwrap_or_default(),
            log_level: self.log_level.unwrap_or_default(),
            keep_privileges: self.keep_privileges,
            interface: default.interface,
            agent: default.agent,
        })
    }
}

const DEFAULT_AGENT: &str = "snoop";
const MENDING: &str = "Mending";
const LIMITS: &str = "Limits";
const PACKETS: &str = "Packets of the gateway";
const TELEMETRY: &str = "Telemetry";

fn agent(name: &str) -> Result<AgentConfig, String> {
    let known = agents::names().collect::<Vec<_>>().join(", ");
    match AgentConfig::by_name(name) {
        Ok(agent) if agent.is_link() => Err(format!(
            "{name} needs an agent at each end of the air hop, which airmend link gives it; a \
             gateway is alone: write one of {known}"
        )),
        Ok(agent) => Ok(agent),
        Err(_) => Err(format!("unknown agent {name:?}; known agents of a gateway are {known}")),
    }
}

fn memory(text: &str) -> Result<usize, String> {
    match parse_size(text).map_err(|error| error.to_string())? {
        bytes @ 0x10_0000.. => Ok(usize::try_from(bytes).unwrap_or(usize::MAX)),
        _ => Err(format!("{text:?} holds no window; give at least 1MiB, such as 256MiB")),
    }
}

fn flow_count(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(flows @ 1..=1_000_000) => Ok(flows),
        _ => Err(format!("{text:?} must be a whole number of flows from 1 to 1000000")),
    }
}

fn mark(text: &str) -> Result<u32, String> {
    let number = match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => text.parse(),
    };
    match number {
        Ok(mark @ 1..) => Ok(mark),
        _ => Err(format!("{text:?} is no mark; write 1 to 4294967295, or 0x and its digits")),
    }
}

/// As `SO_PRIORITY` takes it; handles are hexadecimal, as `tc` writes them.
fn priority(text: &str) -> Result<u32, String> {
    let handle = text.split_once(':').and_then(|(major, minor)| {
        let [major, minor] = [major, minor].map(|half| u16::from_str_radix(half, 16));
        Some(u32::from(major.ok()?) << 16 | u32::from(minor.ok()?))
    });
    let number = text.parse().ok().filter(|number| matches!(number, 0..=15 | 256..=263));
    match handle.filter(|handle| *handle >= 0x1_0000).or(number) {
        Some(number) => Ok(number),
        _ => Err(format!(
            "{text:?} is no priority; write 0 to 15, 256 to 263 for an access category of 802.11, \
             or a class such as 1:10"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priorities_are_numbers_access_categories_or_classes() {
        assert_eq!(priority("0"), Ok(0));
        assert_eq!(priority("263"), Ok(263));
        assert_eq!(priority("1:10"), Ok(0x1_0010));
        assert_eq!(priority("ffff:a"), Ok(0xffff_000a));
        for wrong in ["", "16", "255", "264", "-1", "1:", ":1", "1:10000", "0:1", "65552", "high"] {
            assert!(priority(wrong).is_err_and(|why| why.contains("1:10")), "{wrong}");
        }
    }

    #[test]
    fn a_mark_is_decimal_or_hexadecimal_and_never_none() {
        assert_eq!((mark("0x6d656e64"), mark("7")), (Ok(DEFAULT_MARK), Ok(7)));
        for wrong in ["0", "0x0", "0x", "x", "4294967296"] {
            assert!(mark(wrong).is_err_and(|why| why.contains("0x")), "{wrong}");
        }
    }

    #[test]
    fn a_gateway_is_alone() {
        for name in agents::link_names() {
            assert!(agent(name).is_err_and(|why| why.contains("airmend link")), "{name}");
        }
        assert!(agent("snop").is_err_and(|why| why.contains("snoop95") && !why.contains("tulip")));
        assert!(agents::names().all(|name| agent(name).is_ok()));
    }
}
