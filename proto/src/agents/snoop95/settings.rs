//! The thresholds of the 1995 paper, by name; the defaults are the paper's.

use crate::agents::value::{duration, switch};
use alloc::format;
use alloc::string::String;
use core::fmt;
use core::time::Duration;

/// Every threshold of `snoop95`. Where the paper is silent, the value and its source are named.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Unexpected duplicate ACKs that trigger a local retransmission. The paper acts on the first
    /// [snoop95 §3.1.2]; ns-2 on the second and RFC 3135 on the third.
    pub dupack_threshold: u32,
    /// Weight α of a new round-trip sample in `srtt` [snoop95 §4]: 0.25.
    pub srtt_gain: f64,
    /// `srtt` before the first sample. Not stated in the paper: 20 ms, with which the round-trip
    /// timer begins at its floor. A channel so bad that no sample can be taken needs it most.
    pub initial_srtt: Duration,
    /// The round-trip timer waits this many `srtt` [snoop95 §4]: 2.
    pub round_trip_factor: f64,
    /// The round-trip timer fires at most once in this time [snoop95 §4]: 40 ms.
    pub round_trip_floor: Duration,
    /// Whether the round-trip timer, once a duplicate ACK has armed it, guards the first packet
    /// until all is acknowledged that had been sent by then, or only the packet that the duplicate
    /// ACK named. The paper says "after the first retransmission of a packet" [snoop95 §4].
    pub timer_spans_recovery: bool,
    /// Silence of both hosts after which a packet is retransmitted [snoop95 §4]: 200 ms.
    pub persist_timeout: Duration,
    /// Packets that a flow's cache holds. The paper asks for the maximum transmission window;
    /// 100 is its 64 KB in 1460-byte segments with a margin, as in ns-2.
    pub cache_packets: usize,
    /// Share of the cache above which only older packets are accepted [snoop95 §4]. The paper does
    /// not state it: 0.9.
    pub high_water: f64,
    /// Whether retransmissions use the fast queue [snoop95 §3.1.2].
    pub fast_queue: bool,
    /// Whether data that the mobile already acknowledged is answered with its last ACK
    /// [snoop95 §3.1.1 case 2].
    pub repeat_ack: bool,
    /// Silence of both hosts after which a flow's state is freed. Not stated: 60 s.
    pub idle_timeout: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            dupack_threshold: 1,
            srtt_gain: 0.25,
            initial_srtt: Duration::from_millis(20),
            round_trip_factor: 2.0,
            round_trip_floor: Duration::from_millis(40),
            timer_spans_recovery: true,
            persist_timeout: Duration::from_millis(200),
            cache_packets: 100,
            high_water: 0.9,
            fast_queue: true,
            repeat_ack: true,
            idle_timeout: Duration::from_secs(60),
        }
    }
}

impl Settings {
    /// The names that [`Settings::set`] knows.
    pub const NAMES: [&str; 12] = [
        "dupack_threshold",
        "srtt_gain",
        "initial_srtt",
        "round_trip_factor",
        "round_trip_floor",
        "timer_spans_recovery",
        "persist_timeout",
        "cache_packets",
        "high_water",
        "fast_queue",
        "repeat_ack",
        "idle_timeout",
    ];

    /// Sets one threshold from text, such as `persist_timeout` to `200ms`.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "dupack_threshold" => self.dupack_threshold = count(name, value)?,
            "srtt_gain" => self.srtt_gain = share(name, value)?,
            "initial_srtt" => self.initial_srtt = duration(name, value)?,
            "round_trip_factor" => self.round_trip_factor = factor(name, value)?,
            "round_trip_floor" => self.round_trip_floor = duration(name, value)?,
            "timer_spans_recovery" => self.timer_spans_recovery = switch(name, value)?,
            "persist_timeout" => self.persist_timeout = duration(name, value)?,
            "cache_packets" => self.cache_packets = count(name, value)? as usize,
            "high_water" => self.high_water = share(name, value)?,
            "fast_queue" => self.fast_queue = switch(name, value)?,
            "repeat_ack" => self.repeat_ack = switch(name, value)?,
            "idle_timeout" => self.idle_timeout = duration(name, value)?,
            _ => {
                let known = Self::NAMES.join(", ");
                return Err(format!("snoop95 has no setting {name:?}; it has {known}"));
            }
        }
        Ok(())
    }

    /// [S0-36] Makes the cache hold a window of this many packets below its high-water mark.
    pub(crate) fn hold_window(&mut self, packets: usize) {
        let needed = libm::ceil(packets as f64 / self.high_water) as usize + 1;
        self.cache_packets = self.cache_packets.max(needed);
    }

    /// Packets above which only older packets enter the cache.
    pub(super) fn high_water_packets(&self) -> usize {
        (self.cache_packets as f64 * self.high_water) as usize
    }
}

/// Every threshold as [`Settings::set`] takes it: `dupack_threshold=1 srtt_gain=0.25 …`.
impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "dupack_threshold={} srtt_gain={} initial_srtt={}ns round_trip_factor={} \
             round_trip_floor={}ns timer_spans_recovery={} persist_timeout={}ns \
             cache_packets={} high_water={} fast_queue={} repeat_ack={} idle_timeout={}ns",
            self.dupack_threshold,
            self.srtt_gain,
            self.initial_srtt.as_nanos(),
            self.round_trip_factor,
            self.round_trip_floor.as_nanos(),
            self.timer_spans_recovery,
            self.persist_timeout.as_nanos(),
            self.cache_packets,
            self.high_water,
            self.fast_queue,
            self.repeat_ack,
            self.idle_timeout.as_nanos(),
        )
    }
}

fn count(name: &str, value: &str) -> Result<u32, String> {
    match value.parse() {
        Ok(number @ 1..=1_000_000) => Ok(number),
        _ => Err(format!("{name} {value:?} must be a whole number from 1 to 1000000")),
    }
}

fn share(name: &str, value: &str) -> Result<f64, String> {
    match value.parse() {
        Ok(number) if number > 0.0 && number <= 1.0 => Ok(number),
        _ => Err(format!("{name} {value:?} must be more than 0 and at most 1")),
    }
}

fn factor(name: &str, value: &str) -> Result<f64, String> {
    match value.parse() {
        Ok(number) if (0.1..=1_000.0).contains(&number) => Ok(number),
        _ => Err(format!("{name} {value:?} must be a number from 0.1 to 1000")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_can_be_set() {
        for name in Settings::NAMES {
            let accepted = ["3", "0.5", "7ms", "false"]
                .iter()
                .any(|value| Settings::default().set(name, value).is_ok());
            assert!(accepted, "{name}");
        }
    }

    #[test]
    fn refuses_in_one_sentence() {
        let mut settings = Settings::default();
        let mut refusal = |name, value| settings.set(name, value).unwrap_err();
        assert!(refusal("persist", "1ms").contains("persist_timeout"));
        assert!(refusal("persist_timeout", "0ms").contains("more than 0"));
        assert!(refusal("high_water", "1.5").contains("at most 1"));
        assert!(refusal("dupack_threshold", "0").contains("from 1"));
        assert_eq!(settings, Settings::default());
    }
}
