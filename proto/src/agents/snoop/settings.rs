//! The constants of `snoop`, for experiments. Properties of the path are estimated.

use crate::agents::settings::settings;
use crate::named;
use crate::settings::written_as_displayed;
use core::time::Duration;

/// What the agent does for data that the mobile sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Uplink {
    /// Nothing.
    Off,
    /// What fills a hole of the air gets the timestamp of the lost original [C-27].
    Timestamps,
}

named! {
    Uplink, "is no help for data of the mobile":
    Off = "off", Timestamps = "timestamps"
}
written_as_displayed!(Uplink);

settings! {
    /// The constants that an experiment may change.
    #[derive(Clone, Debug, PartialEq)]
    Settings, set, "snoop has no setting {:?}; it has {}";
    /// Whether loss signals of masked holes are suppressed. Without suppression the agent only
    /// repairs: the baseline `snoop-nosuppress` [C-18].
    suppress: bool = true;
    /// The share of the least round trip for which an agent in the sending host withholds an ACK
    /// that only signals losses [C-28]. Measured: 0 and 1/16 leave some transfers with many
    /// recoveries, and 1/4 makes long paths slower.
    hold_own: f64 = 0.125, number(0.0, 1.0);
    /// The longest time for which a hole may be masked, and that for which it is while the sender's
    /// round trip is unknown, which it always is without timestamps: less than the 200 ms by which
    /// the sender's retransmission timeout exceeds its round trip [C-13].
    hold_limit: Duration = Duration::from_millis(150), timeout();
    /// The round trip of the air hop before the first sample.
    initial_rtt: Duration = Duration::from_millis(20), timeout();
    /// What is done for data that the mobile sends.
    uplink: Uplink = Uplink::Timestamps, parsed();
    /// The time without a packet of either host after which a flow's state is freed [C-16].
    idle_timeout: Duration = Duration::from_secs(60), timeout();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_can_be_set_and_is_read_back() {
        let mut settings = Settings::default();
        for &name in Settings::NAMES {
            let before = settings.clone();
            let value = match name {
                "hold_own" => "0.7",
                "uplink" => "off",
                _ => "7ms",
            };
            settings.set(name, value).unwrap();
            assert_ne!(settings, before, "{name}");
        }
        let mut again = Settings::default();
        for word in alloc::string::ToString::to_string(&settings).split(' ') {
            let (name, value) = word.split_once('=').unwrap();
            again.set(name, value).unwrap();
        }
        assert_eq!(again, settings);
    }

    #[test]
    fn refuses_in_one_sentence() {
        let mut settings = Settings::default();
        let mut refusal = |name, value| settings.set(name, value).unwrap_err();
        assert!(refusal("hold", "1ms").contains("hold_limit"));
        assert!(refusal("hold_limit", "0ms").contains("more than 0"));
        assert!(refusal("hold_own", "-1").contains("from 0 to 1"));
        assert_eq!(settings, Settings::default());
    }
}
