//! The few numbers of `snoop`, for experiments: everything about the path is estimated.

use crate::agents::value::duration;
use alloc::format;
use alloc::string::String;
use core::fmt;
use core::time::Duration;

/// What an experiment may change.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Whether what reveals a covered hole is kept from the sender. Without it the agent repairs
    /// and hides nothing: the baseline `snoop-nosuppress` [C-18].
    pub suppress: bool,
    /// Share of the sender's round trip for which a hole may be hidden: beyond it the sender would
    /// send a tail loss probe [C-13, RFC 8985 §7.2].
    pub hold_share: f64,
    /// The longest that a hole may be hidden: below the sender's least retransmission timeout of
    /// 200 ms beyond its round trip [C-13].
    pub hold_limit: Duration,
    /// How long a hole may be hidden while the sender's round trip is unknown, as it stays without
    /// timestamps. 60 ms fits the budget of every sender farther away than 75 ms, and is less than
    /// half of what would cause a timeout.
    pub hold_unknown: Duration,
    /// The air hop's round trip before the first sample.
    pub initial_rtt: Duration,
    /// Silence of both hosts after which a flow's state is freed [C-16].
    pub idle_timeout: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            suppress: true,
            hold_share: 0.8,
            hold_limit: Duration::from_millis(150),
            hold_unknown: Duration::from_millis(60),
            initial_rtt: Duration::from_millis(20),
            idle_timeout: Duration::from_secs(60),
        }
    }
}

impl Settings {
    /// The names that [`Settings::set`] knows.
    pub const NAMES: [&str; 5] =
        ["hold_share", "hold_limit", "hold_unknown", "initial_rtt", "idle_timeout"];

    /// Sets one number from text, such as `hold_limit` to `100ms`.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "hold_share" => self.hold_share = share(name, value)?,
            "hold_limit" => self.hold_limit = duration(name, value)?,
            "hold_unknown" => self.hold_unknown = duration(name, value)?,
            "initial_rtt" => self.initial_rtt = duration(name, value)?,
            "idle_timeout" => self.idle_timeout = duration(name, value)?,
            _ => {
                let known = Self::NAMES.join(", ");
                return Err(format!("snoop has no setting {name:?}; it has {known}"));
            }
        }
        Ok(())
    }
}

/// Every number as [`Settings::set`] takes it: `hold_share=0.8 hold_limit=150000000ns …`.
impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "hold_share={} hold_limit={}ns hold_unknown={}ns initial_rtt={}ns idle_timeout={}ns",
            self.hold_share,
            self.hold_limit.as_nanos(),
            self.hold_unknown.as_nanos(),
            self.initial_rtt.as_nanos(),
            self.idle_timeout.as_nanos(),
        )
    }
}

fn share(name: &str, value: &str) -> Result<f64, String> {
    match value.parse() {
        Ok(number) if (0.0..=10.0).contains(&number) => Ok(number),
        _ => Err(format!("{name} {value:?} must be a number from 0 to 10")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_can_be_set_and_is_read_back() {
        let mut settings = Settings::default();
        for name in Settings::NAMES {
            let before = settings.clone();
            let value = if name == "hold_share" { "0.5" } else { "7ms" };
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
        assert!(refusal("hold_share", "-1").contains("from 0 to 10"));
        assert_eq!(settings, Settings::default());
    }
}
