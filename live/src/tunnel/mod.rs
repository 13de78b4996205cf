//! A virtual interface between machines, or a bridge between two LANs: packets cross to a peer as
//! frames of an agent, over UDP or raw Ethernet, encrypted with Noise.
//!
//! ```text
//! kernel – TUN device ╮           ╭ agent – channel (Noise) ╮
//!                     ├ addresses ┤                         ├ carrier (UDP, Ethernet) – peers
//! LAN – packet socket ╯           ╰ agent – channel         ╯
//! ```
//!
//! Each peer has an agent, a channel and all else of its own (`peer.rs`); `peers/` knows which of
//! them a packet or a datagram is for. One thread, one loop. An agent sees packets of wire size on
//! its wired side and frames on its air side; super-packets are split before it, and joined behind
//! it for a TUN device.

mod carrier;
mod channel;
mod config;
mod counters;
mod datagram;
mod endpoint;
mod error;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod inbound;
mod initial_window;
mod interface;
mod key;
mod liveness;
mod message;
mod names;
mod noise;
mod notice;
mod outbound;
mod padding;
mod parts;
mod path_mtu;
mod peer;
mod peers;
mod plain;
pub(crate) mod random;
mod reload;
mod report;
mod routing;
mod security;
mod status;
mod told;

pub use crate::sys::{inherited, send_file};
pub use carrier::{Address, IPV6_MIN_MTU};
pub use config::{
    CarrierConfig, DeviceConfig, PeerConfig, Protocol, Remote, TunConfig, TunnelConfig,
};
pub use counters::Counters;
pub use endpoint::Endpoint;
pub use error::{KeyError, TunnelError};
pub use key::{PresharedKey, PrivateKey, PublicKey};
pub use noise::{Keys, Rekey};
pub use notice::Notice;
pub use padding::Padding;
pub use peers::MAX_PEERS;
pub use report::TunnelReport;
pub use routing::{Network, masked};
pub use security::Security;
pub use status::{LinkStatus, PathStatus, PeerStatus};
pub use told::Told;

use crate::clock::Clock;
use airmend_proto::{Ecn, Instant, Packet};
use bytes::BytesMut;
use initial_window::initial_window;
use interface::Interface;
use nix::poll::{PollFd, PollFlags, ppoll};
use outbound::Io;
use peer::{IDLE, LOOK_INTERVAL, Peer};
use peers::Peers;
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use told::Limiter;

/// How long a notice may wait: asking many peers after each packet would take longer than these.
const NOTICE_INTERVAL: Duration = Duration::from_millis(10);

/// One end of a tunnel, running.
pub struct Tunnel {
    config: TunnelConfig,
    clock: Clock,
    interface: Interface,
    io: Io,
    peers: Peers,
    packets: Vec<Packet>,
    /// When both the device and the socket are read without news, and the interface is looked at.
    next_read: Instant,
    /// Whether the device and the socket may have something: a call that finds nothing costs time.
    has_packets: bool,
    has_frames: bool,
    has_carrier: bool,
    notices: VecDeque<Notice>,
    /// When peers are next asked for notices.
    next_notices: Instant,
    limiter: Limiter,
}

impl Tunnel {
    /// Makes or opens the device and opens the carrier, in the calling thread's network namespace.
    ///
    /// A TUN device that somebody `kept` open, with packets that wait in it, is used if it has the
    /// right name.
    ///
    /// # Errors
    /// The configuration cannot be used on this machine.
    pub fn open(
        config: &TunnelConfig,
        kept: Option<File>,
        protocol: &Protocol<'_>,
    ) -> Result<Self, TunnelError> {
        // A clock before 1970 counts as 1970.
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let peers = Peers::new(config, protocol, since_1970);
        let carrier = config.open_carrier()?;
        let device = config.open_device(kept)?;
        let mut tunnel = Self {
            config: config.clone(),
            clock: Clock::start(),
            interface: Interface::new(&config.device).map_err(config.device_failed())?,
            io: Io::new(device, carrier, peers.routing()),
            peers,
            packets: Vec::new(),
            next_read: Instant::ZERO,
            has_packets: true,
            has_frames: true,
            has_carrier: true,
            notices: VecDeque::new(),
            next_notices: Instant::ZERO,
            limiter: Limiter::default(),
        };
        tunnel.set_first_mtu().map_err(config.device_failed())?;
        config.set_up_device()?;
        if let Err(error) = tunnel.interface.set_up() {
            tunnel.interface.remove_blackholes();
            return Err(error);
        }
        tunnel.io.device.set_carrier(true).ok();
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
        (!self.interface.is_lan()).then(|| self.io.device.readable())
    }

    /// The MTU of the device.
    pub fn mtu(&self) -> u32 {
        self.interface.mtu()
    }

    /// The next thing that an operator should know; of each kind, and of each peer, five at once,
    /// and then one in ten seconds.
    pub fn poll_notice(&mut self) -> Option<Told> {
        let now = self.clock.now();
        if now < self.next_notices {
            return None;
        }
        let are_several = self.peers.are_several();
        for peer in self.peers.iter_mut() {
            if let Some((notice, left_out)) = peer.poll_notice(now) {
                let name = are_several.then(|| Arc::from(peer.config.title()));
                return Some(Told { notice, left_out, peer: name });
            }
        }
        self.notices.extend(self.peers.notices.drain(..));
        let mut told = None;
        while let (None, Some(notice)) = (told, self.notices.pop_front()) {
            told = self.limiter.take(now, notice);
        }
        let Some((notice, left_out)) = told.or_else(|| self.limiter.poll(now)) else {
            self.next_notices = now + NOTICE_INTERVAL;
            return None;
        };
        Some(Told { notice, left_out, peer: None })
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
            self.has_frames && self.take_from_peers(now).map_err(failed("reading the socket"))?;
        if self.io.carrier.is_path_new() {
            self.peers.iter_mut().for_each(|peer| (peer.next_look, peer.due) = (now, now));
        }
        let is_path_new = self.peers.turns(now, &mut self.io, &self.interface);
        self.io.flush().map_err(failed("writing to the device"))?;
        if is_path_new {
            self.follow_mtu().map_err(failed("setting the MTU"))?;
        }
        self.follow_peers();
        let wait = if more_packets || more_frames { Duration::ZERO } else { self.wait() };
        self.sleep(wait).map_err(failed("waiting for packets"))?;
        self.has_packets |= more_packets;
        self.has_frames |= more_frames;
        // An interface that was set down before it vanished tells nobody, but whoever reads.
        if self.next_read <= now {
            self.next_read = now + LOOK_INTERVAL;
            self.interface.put_back();
            self.set_initial_windows();
            self.measure(now);
            (self.has_packets, self.has_frames) = (true, true);
        }
        Ok(())
    }

    /// Hands the agents what the kernel has sent. Packets wait in the device's own queue while
    /// the socket has no room, or there is nobody to send them to: that is where TCP expects them.
    fn take_from_device(&mut self, now: Instant) -> io::Result<bool> {
        if !self.has_room() {
            return Ok(false);
        }
        let more = self.io.device.receive(&mut self.packets)?;
        for packet in self.packets.drain(..) {
            self.peers.take(now, &self.io, self.interface.is_lan(), packet);
        }
        Ok(more)
    }

    /// Whether frames can leave now.
    fn has_room(&self) -> bool {
        !self.io.is_full && self.peers.iter().any(|peer| peer.outbound.channel.peer().is_some())
    }

    /// Hands the agents the frames of datagrams that have arrived and are authentic.
    fn take_from_peers(&mut self, now: Instant) -> io::Result<bool> {
        let peers = &mut self.peers;
        let carrier = &mut self.io.carrier;
        let is_crowded = || carrier.received().is_some_and(|buffer| buffer.is_crowded());
        peers.shares.begin(peers.shares.is_behind && is_crowded());
        let mut buffer = BytesMut::new();
        let more = carrier.receive(&mut |from, ecn: Ecn, datagram| {
            if buffer.capacity() < datagram.len() {
                // Frames of one batch share their buffers.
                buffer = BytesMut::with_capacity(datagram.len().max(1 << 16));
            }
            peers.receive(now, (from, ecn), datagram, &mut buffer);
        })?;
        self.peers.shares.is_behind = more;
        Ok(more)
    }

    /// The interface's MTU is that of the widest path: what is too long for another one crosses
    /// that in parts.
    fn follow_mtu(&mut self) -> io::Result<()> {
        let known = self.peers.iter().filter(|peer| peer.path.is_some());
        let Some(fits) = known.map(|peer| peer.fits).max() else { return Ok(()) };
        if self.interface.follow(fits)? {
            self.notices.push_back(Notice::Mtu(self.mtu()));
        }
        Ok(())
    }

    /// This host's connections begin with what the path to their peer holds, or with the least of
    /// all paths where the peer is not known.
    fn set_initial_windows(&mut self) {
        let (mtu, routing) = (self.interface.mtu(), &self.io.routing);
        let window = |peer: &Peer| initial_window(peer.forwarder.path(), mtu);
        let (peers, least) = (&self.peers, self.peers.iter().map(window).min().unwrap_or(0));
        let set = self.interface.set_initial_windows(|network| {
            let place = network.and_then(|address| routing.place_of(address));
            let peer = place.and_then(|place| peers.at(place));
            peer.map_or(least, window)
        });
        let notice = |(network, segments)| Notice::InitialWindow(network, segments);
        self.notices.extend(set.into_iter().map(notice));
    }

    /// The interface has a carrier while one of the peers is there. A kernel before Linux 5.0
    /// cannot be told, and a LAN has a carrier of its own.
    fn follow_peers(&mut self) {
        let has_carrier = self.peers.iter().any(|peer| !peer.liveness.is_lost());
        if std::mem::replace(&mut self.has_carrier, has_carrier) != has_carrier
            && self.config.device.follows_peer()
        {
            self.io.device.set_carrier(has_carrier).ok();
        }
    }

    /// Sets the device's MTU to what is right from the beginning, so that it need not be changed
    /// when the peers are there.
    fn set_first_mtu(&mut self) -> io::Result<()> {
        let carrier = &mut self.io.carrier;
        for peer in self.peers.iter_mut() {
            let way = peer.configured.and_then(|at| carrier.way(at));
            let datagram = way.map_or_else(|| carrier.usual_datagram(), |way| way.ceiling);
            peer.fits = peer.fits(datagram);
        }
        let fits = self.peers.iter().map(|peer| peer.fits).max().unwrap_or(0);
        self.interface.follow(fits).map(drop)
    }

    fn wait(&self) -> Duration {
        self.peers.due().map_or(IDLE, |at| self.clock.until(at).min(IDLE))
    }

    fn sleep(&mut self, wait: Duration) -> io::Result<()> {
        let socket = if self.io.is_full {
            PollFlags::POLLIN | PollFlags::POLLOUT
        } else {
            PollFlags::POLLIN
        };
        let device = if self.has_room() { PollFlags::POLLIN } else { PollFlags::empty() };
        let mut ports = [
            PollFd::new(self.io.carrier.socket(), socket),
            PollFd::new(self.io.device.readable(), device),
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

fn failed(what: &'static str) -> impl FnOnce(io::Error) -> TunnelError {
    move |source| TunnelError::Io { what, source }
}
