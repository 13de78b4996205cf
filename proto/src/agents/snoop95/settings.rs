//! The thresholds of the 1995 paper, by name; the defaults are those of the paper.

use crate::agents::settings::settings;
use crate::named;
use crate::settings::written_as_displayed;
use core::time::Duration;

/// What the agent does for data that a mobile host sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Uplink {
    /// Nothing.
    Off,
    /// It reports to the mobile what the air has lost, as SACK information [S0-40].
    Sack,
}

named! {
    Uplink, "is no help for data of the mobile":
    Off = "off", Sack = "sack"
}
written_as_displayed!(Uplink);

settings! {
    /// Every threshold of `snoop95`. Where the paper is silent, the value and its source are named.
    #[derive(Clone, Debug, PartialEq)]
    Settings, set, "snoop95 has no setting {:?}; it has {}";
    /// Unexpected duplicate ACKs that trigger a local retransmission. The paper acts on the first
    /// [snoop95 §3.1.2]; ns-2 on the second and RFC 3135 on the third.
    dupack_threshold: u32 = 1, count(1, 1_000_000);
    /// Weight α of a new round-trip sample in `srtt` [snoop95 §4]: 0.25.
    srtt_gain: f64 = 0.25, share();
    /// `srtt` before the first sample. Not stated in the paper: 20 ms, with which the round-trip
    /// timer begins at its floor. A channel so bad that no sample can be taken needs it most.
    initial_srtt: Duration = Duration::from_millis(20), timeout();
    /// Whether the round trip of the last packet sent is a sample. Its ACK may have waited for a
    /// second one, up to 200 ms in hosts of 1995. The paper makes no exception [snoop95 §3.1.2].
    lone_samples: bool = true, switch();
    /// The period of the round-trip timer in `srtt` [snoop95 §4]: 2.
    round_trip_factor: f64 = 2.0, number(0.1, 1_000.0);
    /// The least period of the round-trip timer [snoop95 §4]: 40 ms.
    round_trip_floor: Duration = Duration::from_millis(40), timeout();
    /// Whether the round-trip timer, once a duplicate ACK has started it, runs until all data sent
    /// by then is acknowledged, or only until the packet is that the duplicate ACK asked for. The
    /// paper says "after the first retransmission of a packet" [snoop95 §4].
    timer_spans_recovery: bool = true, switch();
    /// The time without a packet of either host after which the oldest packet is retransmitted
    /// [snoop95 §4]: 200 ms.
    persist_timeout: Duration = Duration::from_millis(200), timeout();
    /// The size of a flow's cache, in packets. The paper asks for the maximum transmission window;
    /// 100 is its 64 KB in 1460-byte segments with a margin, as in ns-2.
    cache_packets: usize = 100, count(1, 1_000_000);
    /// The share of the cache above which only older packets are accepted [snoop95 §4]. The paper
    /// does not state it: 0.9.
    high_water: f64 = 0.9, share();
    /// Whether retransmissions are sent in the priority class, the paper's fast queue [snoop95
    /// §3.1.2].
    fast_queue: bool = true, switch();
    /// Whether data that the mobile already acknowledged is answered with its last ACK
    /// [snoop95 §3.1.1 case 2].
    repeat_ack: bool = true, switch();
    /// Whether window probes and keep-alives are left to the hosts. The paper is silent: with this
    /// off, they are cached, resent and answered like other data.
    pass_probes: bool = true, switch();
    /// What is done for data that mobile hosts send [snoop95 §3.2]. Off, since it is for mobile
    /// hosts that take SACK blocks from the base station; what their SYN offers is not looked at.
    uplink: Uplink = Uplink::Off, parsed();
    /// Packets of the mobile after which what is missing is reported to it [S0-41]. Not stated: 3.
    nack_threshold: u32 = 3, count(1, 1_000_000);
    /// The time without packets of the mobile after which what is missing is reported to it
    /// [S0-41]. Not stated: 40 ms, the least period of the paper's other timers.
    nack_silence: Duration = Duration::from_millis(40), timeout();
    /// The time without a packet of either host after which a flow's state is freed. Not stated: 60
    /// s.
    idle_timeout: Duration = Duration::from_secs(60), timeout();
}

impl Settings {
    /// Reports to an agent in the mobile host. It repairs at the first report and takes a repair
    /// for lost at a later one, so that these are few.
    pub(in crate::agents) fn reporting() -> Self {
        Self {
            uplink: Uplink::Sack,
            nack_threshold: 20,
            nack_silence: Duration::from_millis(10),
            ..Self::default()
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_can_be_set() {
        for &name in Settings::NAMES {
            let accepted = ["3", "0.5", "7ms", "false", "sack"]
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
