//! What one laboratory run is.

use super::error::LabError;
use super::topology::MTU;
use airmend_proto::agents::egress::EgressLimits;
use airmend_proto::link::{ErrorModel, goodput_bound};
use airmend_proto::recording::RecordedAgent;
use std::path::PathBuf;
use std::time::Duration;

/// Frames that wait at most where neither the air nor the user sets a limit: a host's transmit
/// queue of Linux's default length.
pub(crate) const HOST_QUEUE_FRAMES: usize = 1000;

/// The sender's congestion control, always set explicitly on the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CongestionControl {
    /// CUBIC (RFC 9438).
    Cubic,
    /// Reno (RFC 5681), with NewReno recovery where SACK is off.
    Reno,
    /// BBR.
    Bbr,
}

impl CongestionControl {
    /// Its name in the kernel, in flags and in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cubic => "cubic",
            Self::Reno => "reno",
            Self::Bbr => "bbr",
        }
    }
}

/// Which way the data flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the fixed to the mobile host.
    Down,
    /// From the mobile to the fixed host.
    Up,
}

/// When a transfer is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// Each flow carries this many bytes.
    Bytes(u64),
    /// Each flow sends for this long.
    Time(Duration),
}

/// What joins the hosts to the emulated links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortKind {
    /// A veth pair and a packet socket: needs no device node, works for ordinary users.
    Veth,
    /// A TUN device: needs `/dev/net/tun`.
    Tun,
}

/// One hop: both directions alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hop {
    /// Bits per second, each way.
    pub rate_bps: u64,
    /// One-way propagation delay.
    pub delay: Duration,
}

/// One laboratory run.
#[derive(Clone, Debug)]
pub struct LabConfig {
    /// The sender's congestion control.
    pub cc: CongestionControl,
    /// Whether the hosts negotiate SACK.
    pub sack: bool,
    /// Whether the hosts negotiate timestamps.
    pub timestamps: bool,
    /// Which way the data flows.
    pub direction: Direction,
    /// Parallel flows.
    pub flows: u32,
    /// When each of them is over.
    pub amount: Amount,
    /// A run that has not finished by then is stopped and reported as not completed.
    pub time_limit: Duration,
    /// The air hop.
    pub air: Hop,
    /// The wired hop.
    pub wired: Hop,
    /// What the air does to frames, in each direction.
    pub errors: ErrorModel,
    /// Frames that wait at most for the air hop, in each direction.
    pub queue_frames: usize,
    /// The receivers' window in full segments, as in the days before it was tuned; `None` for the
    /// kernel's own tuning, which soon limits nothing.
    pub window_segments: Option<u32>,
    /// The seed of every random stream.
    pub seed: u64,
    /// IPv6 instead of IPv4.
    pub ipv6: bool,
    /// Record both sides of the base station into this pcapng file.
    pub pcap: Option<PathBuf>,
    /// What that file says of the agent, so that a replay builds the very same.
    pub recorded_agent: Option<RecordedAgent>,
    /// What joins the hosts to the links.
    pub port: PortKind,
}

impl Default for LabConfig {
    fn default() -> Self {
        let mut config = Self {
            cc: CongestionControl::Cubic,
            sack: true,
            timestamps: true,
            direction: Direction::Down,
            flows: 1,
            amount: Amount::Bytes(10_000_000),
            time_limit: Duration::from_secs(600),
            air: Hop { rate_bps: 20_000_000, delay: Duration::from_millis(2) },
            wired: Hop { rate_bps: 100_000_000, delay: Duration::from_millis(40) },
            errors: ErrorModel::None,
            queue_frames: 0,
            window_segments: None,
            seed: 1,
            ipv6: false,
            pcap: None,
            recorded_agent: None,
            port: PortKind::Veth,
        };
        config.queue_frames = config.default_queue_frames();
        config.window_segments = Some(config.default_window_segments());
        config
    }
}

impl LabConfig {
    /// Two bandwidth-delay products of the whole path in full frames, at least 64.
    pub fn default_queue_frames(&self) -> usize {
        (2 * self.path_frames()).max(64)
    }

    /// What the air's queue holds, shared by the flows, and at least 10 segments: a repaired hole
    /// may release a whole window at once. Without a limit, a sender without SACK would spend the
    /// run on what its slow start overflowed, one packet a round trip, whatever the air does.
    pub fn default_window_segments(&self) -> u32 {
        let share = self.queue_frames / self.flows.max(1) as usize;
        u32::try_from(share).unwrap_or(u32::MAX).max(10)
    }

    /// Segments of one flow that can be on their way at once: its window, or without a limit what
    /// the path and the air's queue hold.
    pub fn outstanding_segments(&self) -> usize {
        self.window_segments
            .map_or(self.path_frames() + self.queue_frames, |segments| segments as usize)
    }

    /// One bandwidth-delay product of the whole path in full frames.
    fn path_frames(&self) -> usize {
        let rate = self.air.rate_bps.min(self.wired.rate_bps) as f64;
        let round_trip = 2.0 * (self.air.delay + self.wired.delay).as_secs_f64();
        (rate * round_trip / f64::from(8 * MTU)).ceil() as usize
    }

    /// The limits of the agent's queues: the air's as configured, the wired side's as a host's.
    pub fn egress_limits(&self) -> EgressLimits {
        EgressLimits { air: self.queue_frames, wired: HOST_QUEUE_FRAMES }
    }

    /// Application payload of a full frame, in bytes.
    pub fn payload_per_frame(&self) -> u32 {
        let ip_header = if self.ipv6 { 40 } else { 20 };
        let tcp_header = if self.timestamps { 20 + 12 } else { 20 };
        MTU - ip_header - tcp_header
    }

    /// What a packet of `bytes` takes from host to host when nothing is queued: serialisation and
    /// propagation on both hops.
    pub fn path_delay(&self, bytes: u32) -> Duration {
        let hop = |hop: Hop| {
            hop.delay + Duration::from_secs_f64(f64::from(bytes) * 8.0 / hop.rate_bps as f64)
        };
        hop(self.wired) + hop(self.air)
    }

    /// What no scheme can pass, in application bits per second: bound (1) on both hops.
    pub fn bound_bps(&self) -> f64 {
        goodput_bound(
            self.air.rate_bps,
            self.wired.rate_bps,
            self.payload_per_frame(),
            MTU,
            self.errors.frame_error(u64::from(MTU) * 8),
        )
    }

    /// Refuses what cannot be run.
    pub(crate) fn check(&self) -> Result<(), LabError> {
        let refuse = |wrong: bool, why| if wrong { Err(LabError::Config(why)) } else { Ok(()) };
        let no_rate = self.air.rate_bps == 0 || self.wired.rate_bps == 0;
        refuse(no_rate, "a link of 0 bit/s carries nothing: give both hops a rate above 0")?;
        refuse(self.flows == 0, "a run without flows measures nothing: ask for at least 1")?;
        refuse(self.queue_frames == 0, "the air's queue must hold at least 1 frame")
    }
}
