//! The comments of a recording that its replay needs: the agent with its settings, and the times of
//! its timers.

use crate::agents::{AgentConfig, Limits};
use core::fmt;
use core::str::FromStr;
use core::time::Duration;

/// The recorded agent with every setting and its limits: the comment of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedAgent {
    /// The agent.
    pub config: AgentConfig,
    /// The limits.
    pub limits: Limits,
}

/// `agent snoop95 flows=100000 …`, settings last.
impl fmt::Display for RecordedAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Limits { flows, cache_bytes, egress } = self.limits;
        write!(f, "agent {} flows={flows} cache_bytes={cache_bytes}", self.config.name())?;
        write!(f, " air_queue={} wired_queue={}", egress.air, egress.wired)?;
        match self.config.settings() {
            none if none.is_empty() => Ok(()),
            settings => write!(f, " {settings}"),
        }
    }
}

/// The comment is not of airmend, or has names that this version does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownComment;

impl FromStr for RecordedAgent {
    type Err = UnknownComment;

    fn from_str(comment: &str) -> Result<Self, UnknownComment> {
        let mut words = comment.strip_prefix("agent ").ok_or(UnknownComment)?.split(' ');
        let name = words.next().unwrap_or_default();
        let mut config = AgentConfig::by_name(name).map_err(|_| UnknownComment)?;
        let mut limits = Limits::default();
        for word in words {
            let (key, value) = word.split_once('=').ok_or(UnknownComment)?;
            let limit = match key {
                "flows" => &mut limits.flows,
                "cache_bytes" => &mut limits.cache_bytes,
                "air_queue" => &mut limits.egress.air,
                "wired_queue" => &mut limits.egress.wired,
                _ => {
                    config.set(key, value).map_err(|_| UnknownComment)?;
                    continue;
                }
            };
            *limit = value.parse().map_err(|_| UnknownComment)?;
        }
        Ok(Self { config, limits })
    }
}

/// The comment of a packet that had departed when the agent saw a copy of it: the other side has no
/// record of it.
pub const COPIED: &str = "copied after it had left";

/// The comment of a packet of the agent that departed from a queue of the kernel: the agent had
/// sent it before, in a record of its own.
pub const DEPARTED: &str = "departed from the kernel's queue";

/// The comment of the packet before which the agent's timers ran, and the time between the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimersRan(pub Duration);

impl fmt::Display for TimersRan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "timers ran {} ns before", self.0.as_nanos())
    }
}

impl FromStr for TimersRan {
    type Err = UnknownComment;

    fn from_str(comment: &str) -> Result<Self, UnknownComment> {
        let number = comment.strip_prefix("timers ran ").and_then(|c| c.strip_suffix(" ns before"));
        let nanos = number.and_then(|number| number.parse().ok()).ok_or(UnknownComment)?;
        Ok(Self(Duration::from_nanos(nanos)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forwarder::EgressLimits;
    use alloc::string::ToString;

    #[test]
    fn an_agent_is_read_back_with_every_setting() {
        let mut config = AgentConfig::by_name("snoop95").unwrap();
        for (key, value) in [
            ("dupack_threshold", "3"),
            ("srtt_gain", "0.1"),
            ("initial_srtt", "1234567ns"),
            ("round_trip_factor", "3.3"),
            ("round_trip_floor", "17us"),
            ("timer_spans_recovery", "false"),
            ("persist_timeout", "2s"),
            ("cache_packets", "777"),
            ("high_water", "0.7"),
            ("fast_queue", "false"),
            ("repeat_ack", "false"),
            ("idle_timeout", "5s"),
        ] {
            let before = config.clone();
            config.set(key, value).unwrap();
            assert_ne!(config, before, "{key}");
        }
        let egress = EgressLimits { air: 3, wired: 4 };
        let limits = Limits { flows: 1, cache_bytes: 2, egress };
        for config in [config, AgentConfig::plain()] {
            let recorded = RecordedAgent { config, limits };
            assert_eq!(recorded.to_string().parse(), Ok(recorded));
        }
    }

    #[test]
    fn an_end_of_a_link_is_read_back_with_every_setting() {
        for name in crate::agents::link_names() {
            let mut config = AgentConfig::by_name(name).unwrap();
            config.set("classes", "udp:443>9=2s,esp>120=reliable").unwrap();
            config.set("ack_delay", "3ms").unwrap();
            let recorded = RecordedAgent { config, limits: Limits::default() };
            assert_eq!(recorded.to_string().parse(), Ok(recorded), "{name}");
        }
    }

    #[test]
    fn other_comments_are_not_ours() {
        for comment in ["", "agent", "agent snoop96", "agent plain x=1", "agent plain flows=many"] {
            assert_eq!(comment.parse::<RecordedAgent>(), Err(UnknownComment), "{comment:?}");
        }
        assert_eq!("timers ran soon".parse::<TimersRan>(), Err(UnknownComment));
    }

    #[test]
    fn timers_are_read_back() {
        let ran = TimersRan(Duration::from_nanos(1_234_567_890_123));
        assert_eq!(ran.to_string(), "timers ran 1234567890123 ns before");
        assert_eq!(ran.to_string().parse(), Ok(ran));
    }
}
