//! The configuration of one laboratory run.

pub use super::air_queue::{AirQueue, FarQueue};
pub use super::air_trace::AirTrace;
pub use super::far_wired::FarWired;
pub use super::handoff::plan::HandoffPlan;
pub use super::short::Short;
use crate::gateway::Shape;
use airmend_proto::link::mac::MacParams;
use airmend_proto::link::{ErrorModel, Fate, goodput_bound};
use airmend_proto::recording::RecordedAgent;
use airmend_proto::{EgressLimits, Instant, named, with_defaults};
use std::path::PathBuf;
use std::time::Duration;

/// Frames that wait at most where neither the air nor the user sets a limit: a host's transmit
/// queue of Linux's default length.
pub(crate) const HOST_QUEUE_FRAMES: usize = 1000;

/// The path's MTU, in bytes.
pub const MTU: u32 = 1500;
/// The receiver of flow `n` listens on this port plus `n`.
pub(crate) const FIRST_PORT: u16 = 5001;
/// The receiver of short flows listens on this port, above those of all other flows.
pub(crate) const SHORT_PORT: u16 = 6001;
/// The number that names the air hop's random streams.
pub(crate) const AIR_STREAM: u32 = 0;
/// The time by which a link takes a frame ahead, so that a late wake-up leaves no gap on it: at
/// least this, and at least two full frames.
const LOOKAHEAD: Duration = Duration::from_millis(1);
/// The hop to a modem: what Ethernet has.
const MODEM_HOP: Hop = Hop { rate_bps: 1_000_000_000, delay: Duration::ZERO };

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

named! { CongestionControl, "is no congestion control":
Cubic = "cubic", Reno = "reno", Bbr = "bbr" }

/// Which way the data flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the fixed to the mobile host.
    Down,
    /// From the mobile to the fixed host.
    Up,
}

named! { Direction, "is no direction": Down = "down", Up = "up" }

/// Where an agent of one end stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// At the base station, between the wired hop and the air.
    Base,
    /// In the mobile host, between the host's kernel and the air. The base station forwards.
    Mobile,
    /// At both: one in the mobile host, which another one at the base station helps.
    Both,
}

named! {
    Place, "is no place of an agent": Base = "base", Mobile = "mobile", Both = "both"
}

impl Place {
    /// Whether an agent of one end is in the mobile host.
    pub fn is_in_mobile(self) -> bool {
        self != Self::Base
    }
}

/// When a transfer is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// Each flow carries this many bytes.
    Bytes(u64),
    /// Each flow sends for this long.
    Time(Duration),
}

/// The kind of device between the hosts and the emulated links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceKind {
    /// A veth pair and a packet socket: needs no device node, works for ordinary users.
    Veth,
    /// A TUN device: needs `/dev/net/tun`.
    Tun,
}

named! { DeviceKind, "is no kind of port": Veth = "veth", Tun = "tun" }

/// What the base station forwards with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// An agent inside the loop that emulates the links.
    Inline,
    /// A kernel between two interfaces of its own, and nothing else: what [`Self::Gateway`] is
    /// compared with.
    Kernel,
    /// The same kernel with a gateway, a process of its own, on the air interface.
    Gateway,
}

named! { Path, "is no path": Inline = "inline", Kernel = "kernel", Gateway = "gateway" }

/// One hop: both directions alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hop {
    /// Bits per second, each way.
    pub rate_bps: u64,
    /// One-way propagation delay.
    pub delay: Duration,
}

impl Hop {
    /// The time by which a link takes the next frame before the last bit of the one before it.
    pub(crate) fn lookahead(self) -> Duration {
        let two_frames = Duration::from_secs_f64(2.0 * f64::from(MTU) * 8.0 / self.rate_bps as f64);
        LOOKAHEAD.max(two_frames)
    }
}

with_defaults! {
    /// One laboratory run.
    #[derive(Clone, Debug)]
    LabConfig;
    /// What the base station forwards with.
    path: Path = Path::Inline;
    /// Where the agent stands.
    place: Place = Place::Base;
    /// What queues towards the air where a kernel forwards.
    air_queue: AirQueue = AirQueue::default();
    /// The queue of a modem between the base station and the air: data then waits for the air
    /// there, and the hop to the modem is a fast one. `None` without a modem.
    far_queue: Option<FarQueue> = None;
    /// The gateway shapes the interface of the base station, which then has no queue of its own.
    shape: Option<Shape> = None;
    /// A gateway there only observes, and tells what mending would gain.
    observe: bool = false;
    /// A gateway that observes records the hop into this file.
    record_trace: Option<PathBuf> = None;
    /// The sender's congestion control.
    cc: CongestionControl = CongestionControl::Cubic;
    /// Whether the hosts negotiate SACK.
    sack: bool = true;
    /// Whether the hosts negotiate timestamps.
    timestamps: bool = true;
    /// Which way the data flows.
    direction: Direction = Direction::Down;
    /// Parallel flows.
    flows: u32 = 1;
    /// Further flows, between two hosts of their own, that the agent does not see: they share
    /// links and queues with those that it mends.
    unmended_flows: u32 = 0;
    /// Pairs of hosts that share the air; the mended flows are dealt to them in turn.
    pairs: u32 = 1;
    /// Short flows beside the others, one after another between the hosts of each pair.
    short: Option<Short> = None;
    /// When each of them is over.
    amount: Amount = Amount::Bytes(10_000_000);
    /// How often all flows begin anew, one set after the other; 1 for a single transfer.
    sequential: u32 = 1;
    /// What timed flows carry in their first so much time does not count as goodput.
    warmup: Duration = Duration::ZERO;
    /// Send a small UDP packet to and fro every 10 ms beside the flows.
    ping: bool = false;
    /// A run that has not finished by then is stopped and reported as not completed.
    time_limit: Duration = Duration::from_secs(600);
    /// The air hop.
    air: Hop = Hop { rate_bps: 20_000_000, delay: Duration::from_millis(2) };
    /// The air is one channel that half-duplex radios share, which take so long to turn round
    /// from receiving to sending; `None` for a full-duplex air.
    turnaround: Option<Duration> = None;
    /// The wired hop.
    wired: Hop = Hop { rate_bps: 100_000_000, delay: Duration::from_millis(40) };
    /// The wired hop beyond the air; `None` where the mobile hosts have the radio themselves.
    far_wired: Option<FarWired> = None;
    /// Several base stations, between which the mobile host moves; `None` for one.
    handoff: Option<HandoffPlan> = None;
    /// What the air does to frames, in each direction.
    errors: ErrorModel = ErrorModel::None;
    /// By what the air varies; its rate, delay and errors are then the means. `None` for nothing.
    trace: Option<AirTrace> = None;
    /// Frames that wait at most for the air hop, in each direction: those of
    /// [`Self::default_queue_frames`] where both hops are the usual ones.
    queue_frames: usize = 280;
    /// Frames that wait at most for the wired hop where the data meets it: behind the fixed host
    /// (down) or in the base station (up). ACKs meet a host's queue of 1000 frames.
    wired_queue_frames: usize = HOST_QUEUE_FRAMES;
    /// The receivers' window in full segments, as in the days before it was tuned; `None` for the
    /// kernel's own tuning, which soon limits nothing.
    window_segments: Option<u32> = None;
    /// The seed of every random stream.
    seed: u64 = 1;
    /// IPv6 instead of IPv4.
    ipv6: bool = false;
    /// Record both sides of the agent into this pcapng file.
    pcap: Option<PathBuf> = None;
    /// Which agent it is: the recording names it, so that a replay builds the same one, and the
    /// sequence-time plot reads the frames of a link protocol.
    recorded_agent: Option<RecordedAgent> = None;
    /// What joins the hosts to the links.
    port: DeviceKind = DeviceKind::Veth;
}

impl LabConfig {
    /// Two bandwidth-delay products of the whole path in full frames, at least 64.
    pub fn default_queue_frames(&self) -> usize {
        (2 * self.path_frames()).max(64)
    }

    /// With SACK, the kernel's own tuning. Without, what the air's queue holds, shared by the
    /// flows, and at least 10 segments: a repaired hole may release a whole window at once, and a
    /// sender without SACK and limit would spend the run on what its slow start overflowed, one
    /// packet a round trip, whatever the air does.
    pub fn default_window_segments(&self) -> Option<u32> {
        let share = self.queue_frames / self.all_flows().max(1) as usize;
        (!self.sack).then(|| u32::try_from(share).unwrap_or(u32::MAX).max(10))
    }

    /// Flows at a time, mended or not.
    pub fn all_flows(&self) -> u32 {
        self.flows.saturating_add(self.unmended_flows)
    }

    /// The ports of the flows that pass unmended.
    pub fn unmended_ports(&self) -> impl Iterator<Item = u16> {
        let port = |flow: u32| FIRST_PORT.saturating_add(u16::try_from(flow).unwrap_or(u16::MAX));
        (self.flows..self.all_flows()).map(port)
    }

    /// Segments of one flow that can be on their way at once: its window, or without a limit what
    /// the path, the air's queue and that of a slower wired hop hold.
    pub fn outstanding_segments(&self) -> usize {
        let is_wired_slower = self.wired.rate_bps < self.air.rate_bps;
        let wired_queue = if is_wired_slower { self.wired_queue_frames } else { 0 };
        let far_queue = self.far_queue.map_or(0, FarQueue::frames);
        let path = self.path_frames() + self.queue_frames + far_queue + wired_queue;
        self.window_segments.map_or(path, |segments| segments as usize)
    }

    /// The hop behind the base station's interface to the air: the air itself, or the hop to the
    /// modem.
    pub(crate) fn station_hop(&self) -> Hop {
        if self.far_queue.is_some() || self.has_queue_in_air() { MODEM_HOP } else { self.air }
    }

    /// The queueing discipline of that interface where a kernel forwards. In front of a modem
    /// nothing waits there, and it has one FIFO.
    pub(crate) fn station_queue(&self) -> AirQueue {
        let is_beyond = self.far_queue.is_some() || self.has_queue_in_air();
        if is_beyond { AirQueue::Fifo } else { self.air_queue }
    }

    /// One bandwidth-delay product of the whole path in full frames.
    fn path_frames(&self) -> usize {
        let rate = self.air.rate_bps.min(self.least_wired_rate()) as f64;
        let far = self.far_wired.map_or(Duration::ZERO, |far| far.delay);
        let round_trip = 2.0 * (self.air.delay + self.wired.delay + far).as_secs_f64();
        (rate * round_trip / f64::from(8 * MTU)).ceil() as usize
    }

    /// The limits of the agent's queues. That towards a mobile host's own kernel never fills.
    pub fn egress_limits(&self) -> EgressLimits {
        match self.place {
            Place::Base => self.station_limits(),
            Place::Mobile | Place::Both => {
                EgressLimits { air: self.queue_frames, wired: HOST_QUEUE_FRAMES }
            }
        }
    }

    /// The limits of the base station's queues: the air's as configured, and the wired side's where
    /// it carries the data; for ACKs it is a host's.
    pub(crate) fn station_limits(&self) -> EgressLimits {
        let wired = match self.direction {
            Direction::Down => HOST_QUEUE_FRAMES,
            Direction::Up => self.wired_queue_frames,
        };
        EgressLimits { air: self.queue_frames, wired }
    }

    /// The radios and their floor acquisition, if the air is half duplex: frames as those of
    /// 802.11 at a rate of today, and FAMA-NCS with MAC acceleration. Backoffs are up to ten times
    /// an RTS, or ten times the propagation delay where that is longer, since a station that begins
    /// within it collides [Fullmer and Garcia-Luna-Aceves, SIGCOMM '97].
    pub fn mac(&self) -> Option<MacParams> {
        let mut mac = MacParams {
            rate_bps: self.air.rate_bps,
            delay: self.air.delay,
            preamble: Duration::from_micros(20),
            header_bytes: 34,
            rts_bytes: 20,
            turnaround: self.turnaround?,
            backoff_rts: 10,
            acceleration: true,
            queue_frames: self.queue_frames,
        };
        let delays = mac.delay.as_nanos().div_ceil(mac.rts_time().as_nanos().max(1)).max(1);
        mac.backoff_rts *= u32::try_from(delays).unwrap_or(u32::MAX / 10);
        Some(mac)
    }

    /// Application payload of a full frame, in bytes.
    pub fn payload_per_frame(&self) -> u32 {
        let ip_header = if self.ipv6 { 40 } else { 20 };
        let tcp_header = if self.timestamps { 20 + 12 } else { 20 };
        MTU - ip_header - tcp_header
    }

    /// The delay of a packet of `bytes` from host to host when nothing is queued: serialisation and
    /// propagation on both hops.
    pub fn path_delay(&self, bytes: u32) -> Duration {
        let hop = |hop: Hop| {
            hop.delay + Duration::from_secs_f64(f64::from(bytes) * 8.0 / hop.rate_bps as f64)
        };
        let far = self.far_hop().map_or(Duration::ZERO, hop);
        hop(self.wired) + hop(self.air) + far
    }

    /// The wired hop beyond the air, if there is one.
    pub fn far_hop(&self) -> Option<Hop> {
        self.far_wired.map(|FarWired { rate_bps, delay, .. }| Hop { rate_bps, delay })
    }

    /// The rate of the slower wired hop, in bits per second.
    fn least_wired_rate(&self) -> u64 {
        self.far_wired.map_or(u64::MAX, |far| far.rate_bps).min(self.wired.rate_bps)
    }

    /// The upper bound of goodput in the long run, in application bits per second: bound (1) on
    /// both hops.
    pub fn bound_bps(&self) -> f64 {
        let frame_error = self.errors.frame_error(self.frame_bits());
        let varying = self.arriving_bps(frame_error, None);
        varying.map_or_else(|| self.bound_at(frame_error), |bps| self.bound_of(bps as u64, 0.0))
    }

    /// The upper bound of goodput between two times: where the air varies as a trace says, that of
    /// this time.
    pub fn bound_between_bps(&self, from: Instant, to: Instant) -> f64 {
        let frame_error = self.errors.frame_error(self.frame_bits());
        let varying = self.arriving_bps(frame_error, Some([from, to]));
        varying.map_or_else(|| self.bound_bps(), |bps| self.bound_of(bps as u64, 0.0))
    }

    /// The bound with the fades of this run between two times, where the air fades.
    ///
    /// Fades come with time: they are those of the seed whatever is sent. A scheme can do no more
    /// than keep the air busy all the time, so the bound takes the time that the channel was bad,
    /// not the share of frames that met it, which a sender can lower by staying silent; and it
    /// takes the loss within fades at its probability, since that is drawn for each frame.
    ///
    /// The other processes have none: independent errors have no run-wide state, and bursts come
    /// with bytes, as many in every run.
    pub fn realised_bound_bps(&self, from: Instant, to: Instant) -> Option<f64> {
        if self.trace.is_some() {
            return None;
        }
        let ErrorModel::Fading { bad_loss, good_ber, .. } = self.errors else { return None };
        let good_error = ErrorModel::Ber(good_ber).frame_error(self.frame_bits());
        let share = self.bad_share(from, to);
        Some(self.bound_at(share * bad_loss + (1.0 - share) * good_error))
    }

    /// The share of the time that the air was bad, by sounding it every 0.1 ms: the same channel,
    /// made to lose everything in its bad state and nothing in the good one.
    fn bad_share(&self, from: Instant, to: Instant) -> f64 {
        const STEP: Duration = Duration::from_micros(100);
        let ErrorModel::Fading { good, bad, .. } = self.errors else { return 0.0 };
        let sounded = ErrorModel::Fading { good, bad, bad_loss: 1.0, good_ber: 0.0 };
        let mut channel = sounded.process(self.seed, AIR_STREAM, 0);
        let (mut at, mut steps, mut lost) = (from, 0u32, 0u32);
        while at < to {
            steps += 1;
            lost += u32::from(channel.draw(at, STEP, 1) != Fate::Intact);
            at += STEP;
        }
        f64::from(lost) / f64::from(steps.max(1))
    }

    /// Bits of a full frame on the air.
    fn frame_bits(&self) -> u64 {
        self.mac().map_or(u64::from(MTU) * 8, |mac| mac.packet_bits(MTU))
    }

    /// Half duplex, each frame takes the mean time of an exchange, with a TCP ACK for every second
    /// one, as the simulator reckons.
    fn bound_at(&self, frame_error: f64) -> f64 {
        let payload = self.payload_per_frame();
        let air_rate_bps = self.mac().map_or(self.air.rate_bps, |mac| {
            let exchange = mac.mean_exchange(MTU, MTU - payload, 0.5);
            (f64::from(8 * MTU) / exchange.as_secs_f64()) as u64
        });
        self.bound_of(air_rate_bps, frame_error)
    }

    fn bound_of(&self, air_rate_bps: u64, frame_error: f64) -> f64 {
        let payload = self.payload_per_frame();
        // What is lost beyond the air crosses the air again.
        let far_loss = self.far_wired.map_or(0.0, |far| far.loss);
        let error = 1.0 - (1.0 - frame_error) * (1.0 - far_loss);
        goodput_bound(air_rate_bps, self.least_wired_rate(), payload, MTU, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_queue_is_that_of_the_usual_hops() {
        let usual = LabConfig::default();
        assert_eq!(usual.queue_frames, usual.default_queue_frames());
        assert_eq!(usual.window_segments, usual.default_window_segments());
    }

    #[test]
    fn the_wired_queue_is_where_the_data_meets_it() {
        let down = LabConfig { wired_queue_frames: 43, ..LabConfig::default() };
        assert_eq!(down.egress_limits(), EgressLimits { air: 280, wired: HOST_QUEUE_FRAMES });
        let up = LabConfig { direction: Direction::Up, ..down };
        assert_eq!(up.egress_limits(), EgressLimits { air: 280, wired: 43 });
        // It is the base station's also where the agent is not.
        let mobile = LabConfig { place: Place::Mobile, ..up };
        assert_eq!(mobile.station_limits(), EgressLimits { air: 280, wired: 43 });
        assert_eq!(mobile.egress_limits(), EgressLimits { air: 280, wired: HOST_QUEUE_FRAMES });
    }

    #[test]
    fn only_a_sender_without_sack_has_a_window_of_its_own() {
        let config = LabConfig::default();
        assert_eq!((config.sack, config.window_segments), (true, None));
        let old = LabConfig { sack: false, ..config };
        assert_eq!(old.default_window_segments(), Some(280));
        assert_eq!(LabConfig { flows: 4, ..old.clone() }.default_window_segments(), Some(70));
        let both = LabConfig { flows: 2, unmended_flows: 2, ..old };
        assert_eq!(both.default_window_segments(), Some(70));
    }

    #[test]
    fn an_agents_cache_must_hold_the_queue_of_the_slower_hop() {
        let near = LabConfig { wired_queue_frames: 43, ..LabConfig::default() };
        assert_eq!(near.outstanding_segments(), 140 + 280);
        let slow = Hop { rate_bps: 10_000_000, ..near.wired };
        let far = LabConfig { wired: slow, ..near };
        assert_eq!(far.outstanding_segments(), 70 + 280 + 43);
    }

    #[test]
    fn behind_a_modem_the_station_has_a_fast_hop_and_the_cache_holds_the_far_queue() {
        let near = LabConfig { air_queue: AirQueue::Prio, ..LabConfig::default() };
        assert_eq!((near.station_hop(), near.station_queue()), (near.air, AirQueue::Prio));
        let far = LabConfig { far_queue: Some(FarQueue::Fifo(35)), ..near.clone() };
        assert_eq!((far.station_hop(), far.station_queue()), (MODEM_HOP, AirQueue::Fifo));
        assert_eq!(far.outstanding_segments(), near.outstanding_segments() + 35);
        assert!(far.check().is_ok());
        assert!(LabConfig { direction: Direction::Up, ..far.clone() }.check().is_err());
        assert!(LabConfig { turnaround: Some(Duration::ZERO), ..far.clone() }.check().is_err());
        assert!(LabConfig { far_queue: Some(FarQueue::Fifo(0)), ..far }.check().is_err());
    }

    #[test]
    fn the_realised_bound_is_the_formula_in_the_long_run_and_the_channel_at_any_time() {
        let [good, bad] = [300, 30].map(Duration::from_millis);
        let fading = |bad_loss| LabConfig {
            errors: ErrorModel::Fading { good, bad, bad_loss, good_ber: 0.0 },
            ..LabConfig::default()
        };
        let config = fading(0.5);
        let seconds = |seconds| Instant::ZERO + Duration::from_secs_f64(seconds);
        let bound = |config: &LabConfig, from, to| {
            config.realised_bound_bps(seconds(from), seconds(to)).unwrap_or(0.0)
        };
        let long = bound(&config, 0.0, 2_000.0) / config.bound_bps();
        assert!((long - 1.0).abs() < 0.005, "{long}");
        // In a millisecond the channel is good or bad, and the formula's mean is neither.
        let best = config.bound_at(0.0);
        let moments = (0..2_000).map(|n| f64::from(n) * 0.01);
        let seen: Vec<f64> = moments.map(|at| bound(&config, at, at + 0.000_1) / best).collect();
        assert!(seen.iter().all(|share| *share == 1.0 || *share == 0.5));
        assert!(seen.contains(&1.0) && seen.contains(&0.5));
        // The same fades, whatever is lost in them.
        let half = best - bound(&config, 3.0, 8.0);
        let whole = best - bound(&fading(1.0), 3.0, 8.0);
        assert!((whole - 2.0 * half).abs() < 1.0);
        let burst = ErrorModel::Burst { frames: 2, every_bytes: 65_536 };
        let bursts = LabConfig { errors: burst, ..config };
        assert_eq!(bursts.realised_bound_bps(Instant::ZERO, seconds(1.0)), None);
    }
}
