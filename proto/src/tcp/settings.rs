//! The knobs of a profile by name, for scenario files, flags and packet scripts.

use super::profile::{BackoffReset, CongestionControl, Estimator, Growth, Profile, Recovery};
use crate::units::{self, UnitError};
use alloc::format;
use alloc::string::String;
use core::time::Duration;

impl Profile {
    /// The names that [`Profile::named`] knows.
    pub const PROFILES: [&str; 3] = ["bsd95", "opnet02", "linux"];

    /// The names that [`Profile::set`] knows.
    pub const NAMES: [&str; 32] = [
        "mss",
        "initial_window",
        "receive_window",
        "window_scaling",
        "send_buffer",
        "sack",
        "dsack",
        "timestamps",
        "recovery",
        "impatient",
        "rack",
        "tlp",
        "frto",
        "congestion",
        "growth",
        "dupack_threshold",
        "limited_transmit",
        "hold_ssthresh",
        "nagle",
        "sws_avoidance",
        "rto_initial",
        "rto_min",
        "rto_max",
        "rto_tick",
        "rto_estimator",
        "backoff_reset",
        "ack_every",
        "ack_delay",
        "ack_free_running",
        "quick_acks",
        "compressed_acks",
        "time_wait",
    ];

    /// The profile of this name.
    pub fn named(name: &str) -> Result<Self, String> {
        match name {
            "bsd95" => Ok(Self::bsd95()),
            "opnet02" => Ok(Self::opnet02()),
            "linux" => Ok(Self::linux()),
            _ => {
                let known = Self::PROFILES.join(", ");
                Err(format!("there is no TCP profile {name:?}; there are {known}"))
            }
        }
    }

    /// Sets one knob from text, such as `rto_min` to `200ms` or `recovery` to `newreno`.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let knob = Knob { name, value };
        match name {
            "mss" => self.mss = knob.count(64, 65_000)? as u16,
            "initial_window" => self.initial_window = knob.count(1, 1_000)?,
            "receive_window" => self.receive_window = knob.bytes()?.min(1 << 30) as u32,
            "window_scaling" => self.window_scaling = knob.switch()?,
            "send_buffer" => self.send_buffer = knob.bytes()?,
            "sack" => self.sack = knob.switch()?,
            "dsack" => self.dsack = knob.switch()?,
            "timestamps" => self.timestamps = knob.switch()?,
            "recovery" => self.recovery = knob.one_of(&RECOVERIES)?,
            "impatient" => self.impatient = knob.switch()?,
            "rack" => self.rack = knob.switch()?,
            "tlp" => self.tlp = knob.switch()?,
            "frto" => self.frto = knob.switch()?,
            "congestion" => self.congestion = knob.one_of(&CONGESTION_CONTROLS)?,
            "growth" => self.growth = knob.one_of(&GROWTHS)?,
            "dupack_threshold" => self.dupack_threshold = knob.count(1, 1_000)?,
            "limited_transmit" => self.limited_transmit = knob.switch()?,
            "hold_ssthresh" => self.hold_ssthresh = knob.switch()?,
            "nagle" => self.nagle = knob.switch()?,
            "sws_avoidance" => self.sws_avoidance = knob.switch()?,
            "rto_initial" => self.rto.initial = knob.duration()?,
            "rto_min" => self.rto.min = knob.duration()?,
            "rto_max" => self.rto.max = knob.duration()?,
            "rto_tick" => self.rto.tick = knob.duration()?,
            "rto_estimator" => self.rto.estimator = knob.one_of(&ESTIMATORS)?,
            "backoff_reset" => self.rto.backoff_reset = knob.one_of(&BACKOFF_RESETS)?,
            "ack_every" => self.ack.every = knob.count(1, 1_000)?,
            "ack_delay" => self.ack.delay = knob.duration()?,
            "ack_free_running" => self.ack.free_running = knob.switch()?,
            "quick_acks" => self.ack.quick = knob.count(0, 1_000_000)?,
            "compressed_acks" => self.ack.compress = knob.count(0, 1_000_000)?,
            "time_wait" => self.time_wait = knob.duration()?,
            _ => {
                let known = Self::NAMES.join(", ");
                return Err(format!("a TCP profile has no knob {name:?}; it has {known}"));
            }
        }
        Ok(())
    }
}

const RECOVERIES: [(&str, Recovery); 3] =
    [("tahoe", Recovery::Tahoe), ("reno", Recovery::Reno), ("newreno", Recovery::NewReno)];
const CONGESTION_CONTROLS: [(&str, CongestionControl); 3] = [
    ("reno", CongestionControl::Reno),
    ("cubic", CongestionControl::Cubic { hystart: false }),
    ("cubic-hystart", CongestionControl::Cubic { hystart: true }),
];
const GROWTHS: [(&str, Growth); 2] = [("per-ack", Growth::PerAck), ("per-byte", Growth::PerByte)];
const ESTIMATORS: [(&str, Estimator); 3] =
    [("rfc6298", Estimator::Rfc6298), ("linux", Estimator::Linux), ("bsd", Estimator::Bsd)];
const BACKOFF_RESETS: [(&str, BackoffReset); 3] = [
    ("clean-sample", BackoffReset::CleanSample),
    ("any-ack", BackoffReset::AnyAck),
    ("never", BackoffReset::Never),
];

/// A knob and the text that it is set to.
struct Knob<'a> {
    name: &'a str,
    value: &'a str,
}

impl Knob<'_> {
    fn count(&self, least: u32, most: u32) -> Result<u32, String> {
        match self.value.parse() {
            Ok(count) if (least..=most).contains(&count) => Ok(count),
            _ => Err(self.refusal(&format!("a whole number from {least} to {most}"))),
        }
    }

    fn switch(&self) -> Result<bool, String> {
        match self.value {
            "on" | "true" => Ok(true),
            "off" | "false" => Ok(false),
            _ => Err(self.refusal("on or off")),
        }
    }

    fn bytes(&self) -> Result<u64, String> {
        match units::parse_size(self.value).map_err(|error| self.explain(&error))? {
            0 => Err(self.refusal("more than 0 bytes")),
            bytes => Ok(bytes),
        }
    }

    fn duration(&self) -> Result<Duration, String> {
        units::parse_duration(self.value).map_err(|error| self.explain(&error))
    }

    fn one_of<T: Copy>(&self, choices: &[(&str, T)]) -> Result<T, String> {
        let known = || choices.iter().map(|(name, _)| *name).collect::<alloc::vec::Vec<_>>();
        let choice = choices.iter().find(|(name, _)| *name == self.value);
        choice.map(|(_, choice)| *choice).ok_or_else(|| self.refusal(&known().join(", ")))
    }

    fn refusal(&self, must: &str) -> String {
        let Self { name, value } = self;
        format!("{name} {value:?} must be {must}")
    }

    fn explain(&self, error: &UnitError) -> String {
        format!("{}: {error}", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A value of each knob that no named profile has.
    const ODD: [&str; 32] = [
        "999", "7", "12345", "", "54321", "", "", "", "tahoe", "", "", "", "", "cubic", "", "9",
        "", "", "", "", "77ms", "78ms", "79s", "80ms", "rfc6298", "never", "5", "81ms", "", "6",
        "7", "82s",
    ];

    #[test]
    fn every_knob_turns_something() {
        for (name, odd) in Profile::NAMES.into_iter().zip(ODD) {
            let turned =
                if odd.is_empty() { ["on", "off", "per-ack", "per-byte"] } else { [odd; 4] };
            let differs = turned.into_iter().any(|value| {
                let mut profile = Profile::linux();
                profile.set(name, value).is_ok() && profile != Profile::linux()
            });
            assert!(differs, "{name}");
        }
    }

    #[test]
    fn refusals_say_what_would_be_right() {
        let refused = |name, value| Profile::linux().set(name, value).unwrap_err();
        assert_eq!(refused("sack", "yes"), r#"sack "yes" must be on or off"#);
        assert_eq!(refused("mss", "0"), r#"mss "0" must be a whole number from 64 to 65000"#);
        let recovery = r#"recovery "vegas" must be tahoe, reno, newreno"#;
        assert_eq!(refused("recovery", "vegas"), recovery);
        assert!(refused("rto_min", "5").starts_with("rto_min: duration \"5\" must be"));
        assert!(refused("rtomin", "5s").starts_with("a TCP profile has no knob \"rtomin\""));
        assert!(Profile::named("bsd").is_err());
    }
}
