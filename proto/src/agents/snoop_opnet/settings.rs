//! The constants of the agent by name; the defaults are those of the paper.

use crate::agents::settings::settings;
use crate::named;
use crate::settings::written_as_displayed;
use core::time::Duration;

/// The period of the retransmission timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimerPeriod {
    /// A constant, as in the paper [snoop-opnet §2.2; S3-08].
    Fixed,
    /// By the measured round trip [snoop-opnet §4.1; S3-32].
    Adaptive,
}

named! { TimerPeriod, "is no period of a timer": Fixed = "fixed", Adaptive = "adaptive" }
written_as_displayed!(TimerPeriod);

/// The packets that a duplicate ACK or the timer retransmits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Resend {
    /// All unacknowledged packets, as in the paper: go-back-N [snoop-opnet §3.5; S3-07, S3-08].
    All,
    /// The oldest unacknowledged packet.
    First,
}

named! { Resend, "is no choice of packets": All = "all", First = "first" }
written_as_displayed!(Resend);

settings! {
    /// Every constant of `snoop-opnet`. Where the paper is silent, the value says so.
    #[derive(Clone, Debug, PartialEq, Eq)]
    Settings, set, "snoop-opnet has no setting {:?}; it has {}";
    /// The period of the retransmission timer.
    timer: TimerPeriod = TimerPeriod::Fixed, parsed();
    /// The period of the fixed timer [snoop-opnet §4.1]: 1 s. Of the adaptive timer, the period
    /// before the first sample, and the longest one unless the round trip is longer.
    timeout: Duration = Duration::from_secs(1), timeout();
    /// The least time by which the period of the adaptive timer exceeds the smoothed round trip.
    /// Not stated: 50 ms.
    min_timeout: Duration = Duration::from_millis(50), timeout();
    /// How long a receiver may delay the ACK of a packet alone; for the adaptive timer until one
    /// has been measured. [S3-10]: 200 ms.
    ack_delay: Duration = Duration::from_millis(200), duration();
    /// The packets that a duplicate ACK or the timer retransmits.
    resend: Resend = Resend::All, parsed();
    /// The size of the cache of all flows together, in packets: `SNOOP_CACHE_SIZE`. Not stated:
    /// 1000.
    cache_packets: usize = 1_000, count(1, 1_000_000);
    /// The time without a packet of either host after which a flow's state is freed. Not stated: 60
    /// s.
    idle_timeout: Duration = Duration::from_secs(60), timeout();
}

impl Settings {
    /// The agent with the adaptive timer [S3-32]. Before the first sample and in doubt it waits
    /// 250 ms: an ACK that the receiver delays by 200 ms, and a local round trip.
    pub fn adaptive() -> Self {
        let timeout = Duration::from_millis(250);
        Self { timer: TimerPeriod::Adaptive, timeout, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn every_name_can_be_set_and_is_read_back() {
        let mut settings = Settings::default();
        for &name in Settings::NAMES {
            let before = settings.clone();
            let set = ["7", "7ms", "adaptive", "first"]
                .iter()
                .any(|value| settings.set(name, value).is_ok());
            assert!(set && settings != before, "{name}");
        }
        let mut again = Settings::default();
        for word in settings.to_string().split(' ') {
            let (name, value) = word.split_once('=').unwrap();
            again.set(name, value).unwrap();
        }
        assert_eq!(again, settings);
    }

    #[test]
    fn refuses_in_one_sentence() {
        let mut settings = Settings::default();
        let mut refusal = |name, value| settings.set(name, value).unwrap_err();
        assert!(refusal("persist", "1s").contains("it has timer, timeout, min_timeout, ack_delay"));
        assert!(refusal("timer", "slow").contains("fixed or adaptive"));
        assert!(refusal("resend", "none").contains("all or first"));
        assert!(refusal("timeout", "0s").contains("more than 0"));
        assert_eq!(settings, Settings::default());
    }
}
