//! Hosts: a named TCP profile and what differs from it.

use super::value::{Size, Time};
use airmend_proto::tcp::{BackoffReset, CongestionControl, Estimator, Growth, Profile, Recovery};
use serde::Deserialize;
use toml::Spanned;

/// One host, or a number of like ones.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HostSpec {
    pub(super) profile: ProfileName,
    pub(super) count: Option<Spanned<u32>>,
    mss: Option<u16>,
    initial_window: Option<u32>,
    pub(super) receive_window: Option<Spanned<Size>>,
    window_scaling: Option<bool>,
    send_buffer: Option<Size>,
    sack: Option<bool>,
    dsack: Option<bool>,
    timestamps: Option<bool>,
    recovery: Option<RecoveryName>,
    congestion: Option<CongestionName>,
    growth: Option<GrowthName>,
    dupack_threshold: Option<u32>,
    limited_transmit: Option<bool>,
    hold_ssthresh: Option<bool>,
    nagle: Option<bool>,
    sws_avoidance: Option<bool>,
    #[serde(default)]
    rto: RtoSpec,
    #[serde(default)]
    ack: AckSpec,
    time_wait: Option<Time>,
}

/// The profiles by name.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ProfileName {
    Bsd95,
    Opnet02,
    Linux,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RecoveryName {
    Tahoe,
    Reno,
    NewReno,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum CongestionName {
    Reno,
    Cubic,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum GrowthName {
    PerAck,
    PerByte,
}

/// What differs in the retransmission timer.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RtoSpec {
    initial: Option<Time>,
    min: Option<Time>,
    max: Option<Time>,
    tick: Option<Time>,
    estimator: Option<EstimatorName>,
    backoff_reset: Option<BackoffResetName>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum EstimatorName {
    Rfc6298,
    Linux,
    Bsd,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum BackoffResetName {
    CleanSample,
    AnyAck,
    Never,
}

/// What differs in acknowledging.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct AckSpec {
    every: Option<u32>,
    delay: Option<Time>,
    free_running: Option<bool>,
    quick: Option<u32>,
}

impl HostSpec {
    /// The profile with all that differs.
    pub(super) fn profile(&self) -> Profile {
        let mut profile = match self.profile {
            ProfileName::Bsd95 => Profile::bsd95(),
            ProfileName::Opnet02 => Profile::opnet02(),
            ProfileName::Linux => Profile::linux(),
        };
        set(&mut profile.mss, self.mss);
        set(&mut profile.initial_window, self.initial_window);
        let window = self.receive_window.as_ref().map(|size| size.get_ref().0);
        set(&mut profile.receive_window, window.and_then(|bytes| u32::try_from(bytes).ok()));
        set(&mut profile.window_scaling, self.window_scaling);
        set(&mut profile.send_buffer, self.send_buffer.map(|Size(bytes)| bytes));
        set(&mut profile.sack, self.sack);
        set(&mut profile.dsack, self.dsack);
        set(&mut profile.timestamps, self.timestamps);
        set(&mut profile.recovery, self.recovery.map(RecoveryName::value));
        set(&mut profile.congestion, self.congestion.map(CongestionName::value));
        set(&mut profile.growth, self.growth.map(GrowthName::value));
        set(&mut profile.dupack_threshold, self.dupack_threshold);
        set(&mut profile.limited_transmit, self.limited_transmit);
        set(&mut profile.hold_ssthresh, self.hold_ssthresh);
        set(&mut profile.nagle, self.nagle);
        set(&mut profile.sws_avoidance, self.sws_avoidance);
        set(&mut profile.time_wait, self.time_wait.map(|Time(time)| time));
        self.rto.apply(&mut profile);
        self.ack.apply(&mut profile);
        profile
    }
}

impl RtoSpec {
    fn apply(&self, profile: &mut Profile) {
        let rto = &mut profile.rto;
        set(&mut rto.initial, self.initial.map(|Time(time)| time));
        set(&mut rto.min, self.min.map(|Time(time)| time));
        set(&mut rto.max, self.max.map(|Time(time)| time));
        set(&mut rto.tick, self.tick.map(|Time(time)| time));
        set(&mut rto.estimator, self.estimator.map(EstimatorName::value));
        set(&mut rto.backoff_reset, self.backoff_reset.map(BackoffResetName::value));
    }
}

impl AckSpec {
    fn apply(&self, profile: &mut Profile) {
        let ack = &mut profile.ack;
        set(&mut ack.every, self.every);
        set(&mut ack.delay, self.delay.map(|Time(time)| time));
        set(&mut ack.free_running, self.free_running);
        set(&mut ack.quick, self.quick);
    }
}

fn set<T>(field: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *field = value;
    }
}

impl RecoveryName {
    fn value(self) -> Recovery {
        match self {
            Self::Tahoe => Recovery::Tahoe,
            Self::Reno => Recovery::Reno,
            Self::NewReno => Recovery::NewReno,
        }
    }
}

impl CongestionName {
    fn value(self) -> CongestionControl {
        match self {
            Self::Reno => CongestionControl::Reno,
            Self::Cubic => CongestionControl::Cubic { hystart: true },
        }
    }
}

impl GrowthName {
    fn value(self) -> Growth {
        match self {
            Self::PerAck => Growth::PerAck,
            Self::PerByte => Growth::PerByte,
        }
    }
}

impl EstimatorName {
    fn value(self) -> Estimator {
        match self {
            Self::Rfc6298 => Estimator::Rfc6298,
            Self::Linux => Estimator::Linux,
            Self::Bsd => Estimator::Bsd,
        }
    }
}

impl BackoffResetName {
    fn value(self) -> BackoffReset {
        match self {
            Self::CleanSample => BackoffReset::CleanSample,
            Self::AnyAck => BackoffReset::AnyAck,
            Self::Never => BackoffReset::Never,
        }
    }
}
