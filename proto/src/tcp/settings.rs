//! The knobs of a profile by name, for scenario files, flags and packet scripts.

use super::profile::{
    BackoffReset, CongestionControl, Estimator, Growth, Profile, Recovery, SackRecovery,
};
use crate::named;
use crate::settings::setters;
use alloc::format;
use alloc::string::String;

impl Profile {
    /// The names that [`Profile::named`] knows.
    pub const PROFILES: [&str; 4] = ["bsd95", "opnet02", "bsd", "linux"];

    /// The profile of this name.
    pub fn named(name: &str) -> Result<Self, String> {
        match name {
            "bsd95" => Ok(Self::bsd95()),
            "opnet02" => Ok(Self::opnet02()),
            "bsd" => Ok(Self::bsd()),
            "linux" => Ok(Self::linux()),
            _ => {
                let known = Self::PROFILES.join(", ");
                Err(format!("there is no TCP profile {name:?}; there are {known}"))
            }
        }
    }
}

setters! { Profile, set, "a TCP profile has no knob {:?}; it has {}";
    mss => mss = count(64, 65_000);
    initial_window => initial_window = count(1, 1_000);
    receive_window => receive_window = bytes(1 << 30);
    moderate_rcvbuf => moderate_rcvbuf = switch();
    window_scaling => window_scaling = switch();
    send_buffer => send_buffer = bytes(u64::MAX);
    sack => sack = switch();
    sack_alone => sack_alone = switch();
    dsack => dsack = switch();
    timestamps => timestamps = switch();
    recovery => recovery = parsed();
    impatient => impatient = switch();
    sack_recovery => sack_recovery = parsed();
    rack => rack = switch();
    tlp => tlp = switch();
    frto => frto = switch();
    congestion => congestion = one_of(&CONGESTION_CONTROLS);
    growth => growth = parsed();
    dupack_threshold => dupack_threshold = count(1, 1_000);
    limited_transmit => limited_transmit = switch();
    hold_ssthresh => hold_ssthresh = switch();
    nagle => nagle = switch();
    sws_avoidance => sws_avoidance = switch();
    rto_initial => rto.initial = duration();
    rto_min => rto.min = duration();
    rto_max => rto.max = duration();
    rto_tick => rto.tick = duration();
    rto_estimator => rto.estimator = parsed();
    backoff_reset => rto.backoff_reset = parsed();
    ack_every => ack.every = count(1, 1_000);
    ack_delay => ack.delay = duration();
    ack_free_running => ack.free_running = switch();
    quick_acks => ack.quick = count(0, 1_000_000);
    ack_push => ack.push = switch();
    ack_adaptive => ack.adaptive = switch();
    compressed_acks => ack.compress = count(0, 1_000_000);
    time_wait => time_wait = duration();
}

named! { Recovery, "is no loss recovery": Tahoe = "tahoe", Reno = "reno", NewReno = "newreno" }
named! { SackRecovery, "is no loss recovery with SACK": Rfc6675 = "rfc6675", Linux = "linux" }
named! { Growth, "is no growth of a window": PerAck = "per-ack", PerByte = "per-byte" }
named! { Estimator, "is no estimator": Rfc6298 = "rfc6298", Linux = "linux", Bsd = "bsd" }
named! { BackoffReset, "ends no back-off":
CleanSample = "clean-sample", AnyAck = "any-ack", Never = "never" }

const CONGESTION_CONTROLS: [(&str, CongestionControl); 4] = [
    ("reno", CongestionControl::Reno),
    ("cubic", CongestionControl::Cubic { hystart: false }),
    ("cubic-hystart", CongestionControl::Cubic { hystart: true }),
    ("bbr", CongestionControl::Bbr),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// A value of each knob that no named profile has.
    const ODD: [&str; 37] = [
        "999", "7", "12345", "", "", "54321", "", "", "", "", "tahoe", "", "rfc6675", "", "", "",
        "cubic", "", "9", "", "", "", "", "77ms", "78ms", "79s", "80ms", "rfc6298", "never", "5",
        "81ms", "", "6", "", "", "7", "82s",
    ];

    #[test]
    fn every_knob_turns_something() {
        for (name, odd) in Profile::NAMES.iter().copied().zip(ODD) {
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
        let recovery = r#"recovery: "vegas" is no loss recovery; write tahoe, reno or newreno"#;
        assert_eq!(refused("recovery", "vegas"), recovery);
        assert!(refused("rto_min", "5").starts_with("rto_min: duration \"5\" must be"));
        assert!(refused("rtomin", "5s").starts_with("a TCP profile has no knob \"rtomin\""));
        assert!(Profile::named("bsd59").is_err());
    }
}
