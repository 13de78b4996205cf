//! What one laboratory run is.

use airmend_proto::link::ErrorModel;
use std::path::PathBuf;
use std::time::Duration;

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
    /// The seed of every random stream.
    pub seed: u64,
    /// IPv6 instead of IPv4.
    pub ipv6: bool,
    /// Record both sides of the base station into this pcapng file.
    pub pcap: Option<PathBuf>,
    /// What joins the hosts to the links.
    pub port: PortKind,
}
