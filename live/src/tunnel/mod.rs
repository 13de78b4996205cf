//! A virtual interface between two machines, or a bridge between two LANs: packets cross to the
//! peer as frames of an agent, over UDP or raw Ethernet, encrypted with Noise.
//!
//! ```text
//! kernel – TUN device ╮
//!                     ├ agent – channel (Noise) – carrier (UDP, Ethernet) – peer
//! LAN – packet socket ╯
//! ```
//!
//! One thread, one loop. The agent sees packets of wire size on its wired side and frames on its
//! air side; super-packets are split before it, and joined behind it for a TUN device.

mod carrier;
mod channel;
mod config;
mod counters;
mod datagram;
mod endpoint;
mod error;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod inbound;
mod interface;
mod key;
mod liveness;
mod message;
mod meter;
mod names;
mod noise;
mod notice;
mod outbound;
mod padding;
mod parts;
mod path_mtu;
mod peer;
mod plain;
pub(crate) mod random;
mod reload;
mod security;
mod status;
mod told;

pub use crate::sys::{inherited, send_file};
pub use carrier::{Address, IPV6_MIN_MTU};
pub use config::{CarrierConfig, DeviceConfig, Remote, TunConfig, TunnelConfig};
pub use counters::Counters;
pub use endpoint::Endpoint;
pub use error::{KeyError, TunnelError};
pub use key::{PresharedKey, PrivateKey, PublicKey};
pub use noise::{Keys, Rekey};
pub use notice::Notice;
pub use padding::Padding;
pub use security::Security;
pub use status::{LinkStatus, PathStatus};
pub use told::Told;

use crate::clock::Clock;
use airmend_proto::agents::Limits;
use airmend_proto::agents::LinkProtocol;
use airmend_proto::{Agent, Forwarder, Instant, LinkType, Packet, Port, drain};
use bytes::BytesMut;
use inbound::{Arrival, Inbound};
use interface::Interface;
use liveness::Liveness;
use message::Message;
use meter::Meter;
use names::Name;
use nix::poll::{PollFd, PollFlags, ppoll};
use outbound::Outbound;
use path_mtu::{MtuProbe, PathMtu};
use random::hash_seed;
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use told::Limiter;

/// The longest wait of an idle loop, so that the caller can stop it.
const IDLE: Duration = Duration::from_millis(50);
/// The interval of questions about the way to the peer and the interface; a datagram that is too
/// long for the way's interface fails at once.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// Probes answered at most in one step.
const MAX_ANSWERS: usize = 16;

/// One end of a tunnel, running.
pub struct Tunnel {
    config: TunnelConfig,
    clock: Clock,
    /// The time since 1970 when the clock started.
    since_1970: Duration,
    interface: Interface,
    forwarder: Forwarder,
    outbound: Outbound,
    packets: Vec<Packet>,
    /// Bytes that the agent adds to each packet.
    frame_overhead: usize,
    /// The peer's address before a session tells it.
    configured: Option<Address>,
    /// What leads there.
    name: Option<Name>,
    liveness: Liveness,
    /// The path to the peer at this address.
    path: Option<(Address, PathMtu)>,
    /// The route to the peer leads into the TUN device.
    is_loop: bool,
    inbound: Inbound,
    next_look: Instant,
    /// When both are read without news.
    next_read: Instant,
    deadline: Option<Instant>,
    /// Whether the device and the socket may have something: a call that finds nothing costs time.
    has_packets: bool,
    has_frames: bool,
    notices: VecDeque<Notice>,
    limiter: Limiter,
    meter: Meter,
    agent_counters: BTreeMap<&'static str, u64>,
}

/// The state and the counters of a tunnel.
#[derive(Clone, Debug)]
pub struct TunnelReport {
    /// The TUN device, or the interface of the LAN.
    pub device: String,
    /// The MTU of the device.
    pub mtu: u32,
    /// The peer's address, once it is there.
    pub peer: Option<Address>,
    /// The route to the peer leads into the TUN device, so that nothing reaches it.
    pub route_loop: bool,
    /// Seconds since the newest session began.
    pub handshake_seconds_ago: Option<f64>,
    /// Seconds since the peer was last heard.
    pub heard_seconds_ago: Option<f64>,
    /// Nothing has come from the peer for too long.
    pub is_silent: bool,
    /// The counters of the tunnel.
    pub counters: Counters,
    /// The counters of the agent, by event.
    pub agent_counters: BTreeMap<&'static str, u64>,
}

impl Tunnel {
    /// Makes or opens the device and opens the carrier, in the calling thread's network namespace.
    ///
    /// `agent` is one end of `link`, or passthrough without one.
    ///
    /// A TUN device that somebody `kept` open, with packets that wait in it, is used if it has the
    /// right name.
    ///
    /// # Errors
    /// The configuration cannot be used on this machine.
    pub fn open(
        config: &TunnelConfig,
        kept: Option<File>,
        agent: Box<dyn Agent + Send>,
        link: Option<&LinkProtocol>,
    ) -> Result<Self, TunnelError> {
        // A clock before 1970 counts as 1970.
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let (carrier, channel) = (config.open_carrier()?, config.open_channel(since_1970));
        let device = config.open_device(kept)?;
        let mut tunnel = Self {
            config: config.clone(),
            clock: Clock::start(),
            since_1970,
            interface: Interface::new(&config.device).map_err(config.device_failed())?,
            forwarder: forwarder(agent, link),
            outbound: Outbound::new(device, carrier, channel, config.padding),
            packets: Vec::new(),
            frame_overhead: link.map_or(0, |link| link.frame_overhead),
            configured: config.peer(),
            name: config.name(),
            liveness: Liveness::new(Instant::ZERO),
            path: None,
            is_loop: false,
            inbound: Inbound::default(),
            next_look: Instant::ZERO,
            next_read: Instant::ZERO,
            deadline: None,
            has_packets: true,
            has_frames: true,
            notices: VecDeque::new(),
            limiter: Limiter::default(),
            meter: Meter::default(),
            agent_counters: BTreeMap::new(),
        };
        let compressor = link.and_then(|link| link.compressor);
        tunnel.outbound.compressor = compressor.map(|new| new(config.compression, hash_seed()));
        tunnel.set_first_mtu().map_err(config.device_failed())?;
        config.set_up_device()?;
        if let Err(error) = tunnel.interface.set_up() {
            tunnel.interface.remove_blackholes();
            return Err(error);
        }
        tunnel.outbound.device.set_carrier(true).ok();
        // The kernel may otherwise delay a wake-up by 50 microseconds to save energy.
        nix::sys::prctl::set_timerslack(1).ok();
        Ok(tunnel)
    }

    /// Ends the tunnel as an operator means it: the interface goes, and what it left for the case
    /// of another end. The process that drops a tunnel without that leaves the blackholes, so that
    /// nothing goes another way until it is back.
    pub fn close(self) {
        self.interface.remove_blackholes();
    }

    /// The TUN device, for whoever keeps it open while this process is not there.
    pub fn device(&self) -> Option<BorrowedFd<'_>> {
        (!self.interface.is_lan()).then(|| self.outbound.device.readable())
    }

    /// The MTU of the device.
    pub fn mtu(&self) -> u32 {
        self.interface.mtu()
    }

    /// The report of the tunnel so far.
    pub fn report(&mut self) -> TunnelReport {
        let now = self.clock.now();
        let ago = |at: Option<Instant>| at.map(|at| (now - at).as_secs_f64());
        TunnelReport {
            device: self.interface.name().to_owned(),
            mtu: self.mtu(),
            peer: self.outbound.channel.peer(),
            route_loop: self.is_loop,
            handshake_seconds_ago: ago(self.outbound.channel.established()),
            heard_seconds_ago: ago(self.liveness.heard()),
            is_silent: self.liveness.is_lost(),
            counters: self.outbound.counters(),
            agent_counters: self.agent_counters.clone(),
        }
    }

    /// The next thing that an operator should know; of each kind five at once, and then one in ten
    /// seconds.
    pub fn poll_notice(&mut self) -> Option<Told> {
        let now = self.clock.now();
        loop {
            let notice = self.notices.pop_front();
            let Some(notice) = notice.or_else(|| self.outbound.channel.poll_notice()) else {
                return self.limiter.poll(now);
            };
            if let Some(told) = self.limiter.take(now, notice) {
                return Some(told);
            }
        }
    }

    /// Waits for something to do, at most for a twentieth of a second, and does it.
    ///
    /// # Errors
    /// The device or the socket is gone.
    pub fn step(&mut self) -> Result<(), TunnelError> {
        let now = self.clock.now();
        let more_packets =
            self.has_packets && self.take_from_device(now).map_err(failed("reading the device"))?;
        let more_frames =
            self.has_frames && self.take_from_peer(now).map_err(failed("reading the socket"))?;
        self.outbound.channel.handle_timeout(now);
        self.inbound.expire(now);
        self.outbound.now = now;
        let counters = &mut self.agent_counters;
        let mut on_event = |event: airmend_proto::Event| {
            *counters.entry(event.counter()).or_insert(0) += 1;
        };
        let deadline = drain(&mut self.forwarder, now, &mut self.outbound, &mut on_event);
        self.deadline = deadline.map(|deadline| deadline.at);
        self.outbound.flush().map_err(failed("writing to the device"))?;
        self.follow_peer(now);
        self.follow_path(now).map_err(failed("setting the MTU"))?;
        let wait = if more_packets || more_frames { Duration::ZERO } else { self.wait() };
        self.sleep(wait).map_err(failed("waiting for packets"))?;
        self.has_packets |= more_packets;
        self.has_frames |= more_frames;
        // An interface that was set down before it vanished tells nobody, but whoever reads.
        if self.next_read <= now {
            self.next_read = now + LOOK_INTERVAL;
            self.measure(now);
            (self.has_packets, self.has_frames) = (true, true);
        }
        Ok(())
    }

    /// Hands the agent what the kernel has sent. Packets wait in the device's own queue while
    /// there is no room, or nobody to send them to: that is where TCP expects them. The link's own
    /// datagrams would go round for ever.
    fn take_from_device(&mut self, now: Instant) -> io::Result<bool> {
        if !self.outbound.has_room() {
            return Ok(false);
        }
        let Outbound { device, carrier, channel, own: counters, .. } = &mut self.outbound;
        let more = device.receive(&mut self.packets)?;
        let peer = channel.peer().filter(|_| !self.interface.is_lan());
        for packet in self.packets.drain(..) {
            if peer.is_some_and(|peer| carrier.is_own(peer, &packet)) {
                counters.looped += 1;
                continue;
            }
            counters.packets_in += 1;
            counters.bytes_in += u64::from(packet.wire_len());
            self.forwarder.handle_packet(now, Port::Wired, packet);
        }
        Ok(more)
    }

    /// Hands the agent the frames of datagrams that have arrived and are authentic.
    fn take_from_peer(&mut self, now: Instant) -> io::Result<bool> {
        let Outbound { carrier, channel, compressor, own, .. } = &mut self.outbound;
        let forwarder = &mut self.forwarder;
        let (mut buffer, mut answers) = (BytesMut::new(), Vec::new());
        let more = carrier.receive(&mut |from, ecn, datagram| {
            if buffer.capacity() < datagram.len() {
                // Frames of one batch share their buffers.
                buffer = BytesMut::with_capacity(datagram.len().max(1 << 16));
            }
            if !channel.receive(now, from, datagram, &mut buffer) {
                return;
            }
            match self.inbound.take(now, buffer.split().freeze(), ecn) {
                Some(Arrival::Frame(frame, ecn)) => {
                    let packet = Packet::new(LinkType::Frame, frame).with_outer_ecn(ecn);
                    let frame = match compressor {
                        Some(compressor) => compressor.expand(packet),
                        None => Ok(packet),
                    };
                    match frame {
                        Ok(frame) => forwarder.handle_packet(now, Port::Air, frame),
                        Err(_) => own.unreadable += 1,
                    }
                }
                Some(Arrival::Probe { number }) if answers.len() < MAX_ANSWERS => {
                    answers.push(Message::Answer { number, length: datagram.len() as u16 });
                }
                Some(Arrival::Answer { number, length }) => {
                    if let Some((_, path)) = &mut self.path {
                        path.handle_answer(now, number, usize::from(length));
                    }
                }
                _ => {}
            }
        })?;
        self.outbound.now = now;
        self.outbound.tell_epochs();
        answers.into_iter().for_each(|answer| self.outbound.send_message(answer, 0));
        Ok(more)
    }

    /// Probes what the path carries; the length of datagrams and the device's MTU follow.
    fn follow_path(&mut self, now: Instant) -> io::Result<()> {
        let peer = self.outbound.channel.peer();
        let is_known = |at: &Address| peer.is_none_or(|peer| at.is_same_host(peer));
        let is_elsewhere =
            !self.is_loop && self.path.as_ref().map_or(peer.is_some(), |(at, _)| !is_known(at));
        if is_elsewhere || self.next_look <= now || self.outbound.carrier.is_path_new() {
            self.next_look = now + LOOK_INTERVAL;
            self.look(now);
        }
        let Some((_, path)) = self.path.as_mut().filter(|_| peer.is_some()) else { return Ok(()) };
        path.handle_sent(std::mem::take(&mut self.outbound.longest_sent));
        while let Some(MtuProbe { number, length }) = path.poll_probe(now) {
            self.outbound.send_message(Message::Probe { number }, length);
        }
        self.outbound.limit = path.limit();
        self.outbound.padded_limit = path.limit();
        let settled = path.settled();
        let fits = self.fits(settled);
        if self.interface.follow(fits)? {
            self.notices.push_back(Notice::Mtu(self.mtu()));
        }
        Ok(())
    }

    /// Looks what has become of the interface, and of the way to the peer.
    fn look(&mut self, now: Instant) {
        self.interface.put_back();
        let Outbound { carrier, channel, .. } = &mut self.outbound;
        let Some(to) = channel.peer().or(self.configured) else { return };
        let Some(way) = carrier.way(to) else { return };
        let was_loop = std::mem::replace(&mut self.is_loop, self.interface.is(way.interface));
        if self.is_loop {
            // The link itself is no path whose MTU is worth knowing.
            let notice = (!was_loop).then_some(Notice::Loop(to));
            return self.notices.extend(notice);
        }
        let Some(peer) = channel.peer() else { return };
        self.path.take_if(|(at, _)| !at.is_same_host(peer));
        let floor = carrier.min_datagram(peer);
        let (_, path) =
            self.path.get_or_insert_with(|| (peer, PathMtu::new(now, floor, way.ceiling)));
        path.set_ceiling(now, way.ceiling);
        path.set_report(now, way.report);
    }

    /// Sets the device's MTU to what is right from the beginning, so that it need not be changed
    /// when the peer is there.
    fn set_first_mtu(&mut self) -> io::Result<()> {
        let carrier = &mut self.outbound.carrier;
        let way = self.configured.and_then(|peer| carrier.way(peer));
        let datagram = way.map_or_else(|| carrier.usual_datagram(), |way| way.ceiling);
        self.interface.follow(self.fits(datagram)).map(drop)
    }

    /// The longest packet that fits a datagram of this length.
    fn fits(&self, datagram: usize) -> usize {
        datagram.saturating_sub(self.outbound.overhead() + self.frame_overhead)
    }

    fn wait(&self) -> Duration {
        let channel = self.outbound.channel.poll_timeout();
        // Without a peer the agent cannot send, however long its frames wait.
        let own = self.deadline.into_iter();
        let own = own.chain(self.path.as_ref().and_then(|(_, path)| path.poll_timeout()));
        let own = own.min().filter(|_| self.outbound.channel.peer().is_some());
        let next = channel.into_iter().chain(own).min();
        next.map_or(IDLE, |at| self.clock.until(at).min(IDLE))
    }

    fn sleep(&mut self, wait: Duration) -> io::Result<()> {
        let socket = if self.outbound.is_full() {
            PollFlags::POLLIN | PollFlags::POLLOUT
        } else {
            PollFlags::POLLIN
        };
        let device = if self.outbound.has_room() { PollFlags::POLLIN } else { PollFlags::empty() };
        let mut ports = [
            PollFd::new(self.outbound.carrier.socket(), socket),
            PollFd::new(self.outbound.device.readable(), device),
        ];
        match ppoll(&mut ports, Some(wait.into()), None) {
            Ok(_) | Err(nix::Error::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        // An error is read like data.
        let has_news = |port: &PollFd<'_>| {
            port.revents().is_none_or(|events| !(events - PollFlags::POLLOUT).is_empty())
        };
        let news = [has_news(&ports[1]), has_news(&ports[0])];
        [self.has_packets, self.has_frames] = news;
        Ok(())
    }
}

/// The agent with its queue; debug builds check its invariants.
fn forwarder(agent: Box<dyn Agent + Send>, link: Option<&LinkProtocol>) -> Forwarder {
    let limits = Limits::default().egress;
    match cfg!(debug_assertions) {
        true => Forwarder::checked(agent, limits, link),
        false => Forwarder::new(agent, limits),
    }
}

fn failed(what: &'static str) -> impl FnOnce(io::Error) -> TunnelError {
    move |source| TunnelError::Io { what, source }
}
