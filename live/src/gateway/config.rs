//! What one gateway does, and on which interface.

use super::handoff::HandoffConfig;
use super::rules::FlowRules;
use crate::bpf::Attach;
use crate::qdisc::MAX_RATE;
use airmend_proto::agents::{AgentConfig, Limits};
use airmend_proto::named;
use airmend_proto::units::{format_rate, parse_rate};
use ipnet::IpNet;
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The default mark of packets that the gateway has sent or reinjected ("mend").
pub const DEFAULT_MARK: u32 = 0x6d65_6e64;

/// The lowest rate that an interface is shaped to, in bits per second.
pub(super) const MIN_SHAPE: u64 = 64_000;

/// One gateway on one interface.
#[derive(Clone, Debug, PartialEq)]
pub struct GatewayConfig {
    /// The air interface: TCP flows that leave through it are mended.
    pub interface: String,
    /// The agent that mends them.
    pub agent: AgentConfig,
    /// The limits of the agent.
    pub limits: Limits,
    /// Change no packet, and only estimate the gain of mending.
    pub observe: bool,
    /// Which flows are mended.
    pub rules: FlowRules,
    /// The mark (`SO_MARK`) that repairs bear.
    pub mark: u32,
    /// The priority (`SO_PRIORITY`) that repairs bear: 0 to 15, 256 to 263 for an access category
    /// of 802.11, or the handle of a class of the interface's queue (`1:10` is 0x0001_0010).
    /// `None` for the highest that this kind of interface honours.
    pub priority: Option<u32>,
    /// A queue of the gateway's own at the interface, with this rate; `None` for the interface's.
    pub shape: Option<Shape>,
    /// Share mobile hosts with other stations.
    pub handoff: Option<HandoffConfig>,
    /// The hook of the BPF programs.
    pub attach: Attach,
    /// The rate of the air, in bits per second, where the interface's queue has none: only for the
    /// estimate of what mending gains.
    pub air_rate_bps: Option<u64>,
    /// Record both sides of the agent into this pcapng file.
    pub pcap: Option<PathBuf>,
    /// Record the hop beyond the interface into this CSV file, while observing.
    pub trace: Option<PathBuf>,
    /// The address of the metrics for Prometheus.
    pub metrics: Option<MetricsAddress>,
    /// The socket for `airmend status` and `airmend top`.
    pub socket: PathBuf,
    /// The form of the log on stderr.
    pub log: LogFormat,
    /// The lowest level that is logged.
    pub log_level: LogLevel,
    /// Keep the capabilities that set-up needed, so that a reload can raise the priority.
    pub keep_privileges: bool,
}

impl GatewayConfig {
    /// The default configuration of a gateway on `interface`: every flow is mended.
    pub fn new(interface: &str, agent: AgentConfig) -> Self {
        Self {
            interface: interface.to_owned(),
            agent,
            limits: Limits::default(),
            observe: false,
            rules: FlowRules::default(),
            mark: DEFAULT_MARK,
            priority: None,
            shape: None,
            handoff: None,
            attach: Attach::default(),
            air_rate_bps: None,
            pcap: None,
            trace: None,
            metrics: None,
            socket: default_socket(interface),
            log: LogFormat::default(),
            log_level: LogLevel::default(),
            keep_privileges: false,
        }
    }

    /// The names of what differs, as flags and file have them. After a reload has taken over what
    /// can change in a running gateway, this names what stays until a restart.
    pub fn differences(&self, wanted: &Self) -> Vec<&'static str> {
        let differs = [
            ("interface", self.interface != wanted.interface),
            ("agent", self.agent.name() != wanted.agent.name()),
            ("set", self.agent != wanted.agent && self.agent.name() == wanted.agent.name()),
            ("limit-memory", self.limits.cache_bytes != wanted.limits.cache_bytes),
            ("limit-flows", self.limits.flows != wanted.limits.flows),
            ("observe", self.observe != wanted.observe),
            ("flows", self.rules != wanted.rules),
            ("mark", self.mark != wanted.mark),
            ("priority", self.priority != wanted.priority),
            ("shape", self.shape != wanted.shape),
            ("handoff", self.handoff != wanted.handoff),
            ("attach", self.attach != wanted.attach),
            ("air-rate", self.air_rate_bps != wanted.air_rate_bps),
            ("pcap", self.pcap != wanted.pcap),
            ("trace", self.trace != wanted.trace),
            ("metrics", self.metrics != wanted.metrics),
            ("socket", self.socket != wanted.socket),
            ("log", self.log != wanted.log),
            ("log-level", self.log_level != wanted.log_level),
            ("keep-privileges", self.keep_privileges != wanted.keep_privileges),
        ];
        differs.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name).collect()
    }
}

/// The default socket of the gateway on this interface. It has a directory of its
/// own, since each instance of the service runs as a user of its own.
pub fn default_socket(interface: &str) -> PathBuf {
    Path::new("/run/airmend").join(interface).join("status.sock")
}

/// The rate that the interface is shaped to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A little less than the hop beyond the interface delivers, as measured.
    Auto,
    /// So many bits per second.
    Rate(u64),
}

impl FromStr for Shape {
    type Err = String;

    /// Reads `auto`, or a rate such as `20mbit`.
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        match parse_rate(text) {
            Ok(rate) if (MIN_SHAPE..=MAX_RATE).contains(&rate) => Ok(Self::Rate(rate)),
            Ok(_) => Err(format!("{text:?} must be a rate from 64kbit to 34gbit, or auto")),
            Err(_) => Err(format!("{text:?} is no rate; write auto, or a rate such as 20mbit")),
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Rate(rate) => f.write_str(&format_rate(*rate)),
        }
    }
}

/// The address of the metrics: on this machine only, unless it is said who else may ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MetricsAddress {
    /// HTTP on an address of this machine.
    Tcp {
        /// The address; without `from` a loopback one.
        address: SocketAddr,
        /// Where those are that may ask, beside this machine.
        from: Option<IpNet>,
    },
    /// HTTP on a Unix socket.
    Unix(PathBuf),
}

impl FromStr for MetricsAddress {
    type Err = String;

    /// Reads `127.0.0.1:9290`, `10.0.5.1:9290,from=10.0.5.0/24` or an absolute path.
    fn from_str(text: &str) -> Result<Self, String> {
        if text.starts_with('/') {
            return Ok(Self::Unix(text.into()));
        }
        let (address, from) = match text.split_once(",from=") {
            Some((address, from)) => (address, Some(from)),
            None => (text, None),
        };
        let address: SocketAddr = address.parse().map_err(|_| {
            format!(
                "{address:?} is no address; write 127.0.0.1:9290, [::1]:9290 or the absolute path \
                 of a Unix socket"
            )
        })?;
        let from = from.map(|from| {
            from.parse::<IpNet>().map_err(|_| {
                format!("{from:?} is no network; write who may ask, such as from=10.0.5.0/24")
            })
        });
        match from.transpose()? {
            None if !address.ip().is_loopback() => Err(format!(
                "{text:?} can be reached from other machines; write a loopback address such as \
                 127.0.0.1:9290, the path of a Unix socket, or who may ask, such as \
                 {text},from=10.0.5.0/24"
            )),
            from => Ok(Self::Tcp { address, from }),
        }
    }
}

impl fmt::Display for MetricsAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { address, from } => {
                address.fmt(f)?;
                from.iter().try_for_each(|from| write!(f, ",from={from}"))
            }
            Self::Unix(path) => path.display().fmt(f),
        }
    }
}

/// The form of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// A sentence a line.
    #[default]
    Text,
    /// A JSON object a line.
    Json,
}

named! { LogFormat, "is no form of a log": Text = "text", Json = "json" }

/// The lowest level of log lines that are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Mending has stopped, or cannot begin.
    Error,
    /// Something is lost that the operator can give back.
    Warn,
    /// An operation of the operator is complete.
    #[default]
    Info,
    /// Every flow.
    Debug,
}

named! { LogLevel, "is no log level":
Error = "error", Warn = "warn", Info = "info", Debug = "debug" }

#[cfg(test)]
mod tests {
    use super::*;

    fn config(agent: &str) -> GatewayConfig {
        GatewayConfig::new("wlan0", AgentConfig::by_name(agent).unwrap())
    }

    #[test]
    fn every_difference_has_the_name_of_its_flag() {
        let running = config("snoop");
        assert_eq!(running.differences(&running), [""; 0]);
        let wanted = GatewayConfig {
            interface: "wlan1".into(),
            limits: Limits { flows: 7, cache_bytes: 1 << 20, ..Limits::default() },
            observe: true,
            rules: FlowRules::parse(["port:443"]).unwrap(),
            mark: 1,
            priority: Some(5),
            shape: Some(Shape::Auto),
            handoff: Some("group=239.1.2.3,key-file=k".parse().unwrap()),
            attach: Attach::Tcx,
            air_rate_bps: Some(6),
            pcap: Some("a".into()),
            trace: Some("t".into()),
            metrics: Some("/b".parse().unwrap()),
            socket: "c".into(),
            log: LogFormat::Json,
            log_level: LogLevel::Debug,
            keep_privileges: true,
            ..config("snoop95")
        };
        let all = "interface agent limit-memory limit-flows observe flows mark priority shape \
                   handoff attach air-rate pcap trace metrics socket log log-level keep-privileges";
        assert_eq!(running.differences(&wanted).join(" "), all);

        let mut set = running.clone();
        set.agent.set("hold_limit", "7ms").unwrap();
        assert_eq!(running.differences(&set), ["set"]);
    }

    #[test]
    fn a_shape_is_auto_or_a_rate_that_htb_has() {
        assert_eq!("auto".parse(), Ok(Shape::Auto));
        assert_eq!("20mbit".parse(), Ok(Shape::Rate(20_000_000)));
        assert_eq!(Shape::Rate(20_000_000).to_string().parse(), Ok(Shape::Rate(20_000_000)));
        for wrong in ["", "0", "1kbit", "60gbit", "fast", "-1mbit"] {
            let why = wrong.parse::<Shape>().unwrap_err();
            assert!(why.contains("auto"), "{wrong}: {why}");
        }
    }

    #[test]
    fn metrics_stay_on_this_machine_unless_it_is_said_who_may_ask() {
        let here = ["127.0.0.1:9290", "[::1]:9290", "/run/airmend/wlan0/metrics"];
        let beyond = ["0.0.0.0:9290,from=10.0.5.0/24", "[fd00::1]:9290,from=fd00::/64"];
        for right in here.into_iter().chain(beyond) {
            assert_eq!(right.parse::<MetricsAddress>().unwrap().to_string(), right);
        }
        let why = |text: &str| text.parse::<MetricsAddress>().unwrap_err();
        for wrong in ["0.0.0.0:9290", "192.0.2.1:80", "9290", "localhost", "metrics.sock", ""] {
            assert!(why(wrong).contains("127.0.0.1:9290"));
        }
        assert!(why("10.0.5.1:80").contains("10.0.5.1:80,from="), "{}", why("10.0.5.1:80"));
        for wrong in ["10.0.5.1:80,from=", "10.0.5.1:80,from=10.0.5.1/33"] {
            assert!(why(wrong).contains("from=10.0.5.0/24"), "{}", why(wrong));
        }
    }
}
