//! Handoff between gateways: a mobile host that moves to another gateway's air keeps its transfers.
//!
//! The kernel forwards, so copies of data and ACKs are what the handoff learns from, and what it
//! forwards itself is sent on the air interface like any host's packet: its copy comes back, and
//! the agent sees it then. A host is here when a packet of it comes over the air.

mod air_host;
mod attachments;
mod config;
mod links;
mod own;
mod word;

pub use config::HandoffConfig;
pub use word::{Movement, Word};

use super::error::GatewayError;
use super::interface::Interface;
use super::telemetry::HandoffStatus;
use crate::clock::{self, Clock};
use crate::device::transmitter::Transmitter;
use crate::group_socket::GroupSocket;
use crate::sys::{self, PacketSocket};
use crate::tunnel::random::random;
use crate::tunnel::{KeyError, PresharedKey};
use air_host::{AirHost, Mac};
use airmend_proto::agents::handoff::{Handoff, Key, Mobile, Output, StationId};
use airmend_proto::wire::edit::segments;
use airmend_proto::wire::flow::FlowKey;
use airmend_proto::wire::ip::Network;
use airmend_proto::{Instant, LinkSignal, LinkType, Packet, Port};
use attachments::Attachments;
use links::Links;
use nix::ifaddrs::getifaddrs;
use own::OwnPackets;
use std::collections::{BTreeMap, HashMap};
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// Messages that are read or sent at most in one turn.
const MESSAGES: usize = 64;
/// Hosts on the air that a turn looks at.
const HOSTS: usize = 64;
/// A host that has moved may not come back before: its last packets here may still wait in a queue.
const HOLD_DOWN: Duration = Duration::from_millis(20);
/// Hosts that have moved, and are remembered, at most.
const MAX_LEFT: usize = 8_192;

/// What the gateway must do for a handoff.
pub(super) enum ForGateway {
    Signal(LinkSignal),
    /// Send a packet to its mobile host that the agent shall not see.
    Unseen(Packet),
}

/// The handoff of a gateway, and its place among the stations.
pub(super) struct Cooperation {
    station: StationId,
    handoff: Handoff,
    group: GroupSocket,
    heard: PacketSocket,
    /// Sends packets for mobile hosts as the kernel would: without mark and priority.
    forwarding: Transmitter,
    link_type: LinkType,
    mac: Mac,
    links: Links,
    /// When the mobile host went to another station.
    left: HashMap<Mobile, Instant>,
    own: OwnPackets,
    attachments: Attachments,
    counters: BTreeMap<&'static str, u64>,
    /// More outputs wait for the next turn.
    has_more: bool,
}

impl Cooperation {
    /// Joins the group of the stations.
    pub(super) fn open(
        config: &HandoffConfig,
        interface: &Interface,
    ) -> Result<Self, GatewayError> {
        let key = PresharedKey::read(&config.key_file).map_err(GatewayError::HandoffKey)?;
        let (backbone, address) = backbone(config)?;
        let failed = |source| GatewayError::HandoffGroup {
            group: config.group,
            interface: backbone.clone(),
            source,
        };
        let group = GroupSocket::join(config.group, &backbone, address).map_err(failed)?;
        let heard = PacketSocket::open_headers(interface.index).map_err(GatewayError::Socket)?;
        let forwarding = Transmitter::open(interface.index, 0, 0).map_err(GatewayError::Socket)?;
        let station = StationId(address.into());
        let mut epoch = [0; 8];
        random(&mut epoch).map_err(|()| GatewayError::HandoffKey(KeyError::NoRandom))?;
        Ok(Self {
            station,
            handoff: Handoff::new(station, u64::from_ne_bytes(epoch), Key(*key.bytes())),
            group,
            heard,
            forwarding,
            link_type: interface.link_type,
            mac: sys::mac_address(&interface.name).unwrap_or_default(),
            links: Links::default(),
            left: HashMap::new(),
            own: OwnPackets::default(),
            attachments: Attachments::default(),
            counters: BTreeMap::new(),
            has_more: false,
        })
    }

    /// The socket for the headers of packets from the air.
    pub(super) fn heard(&self) -> &PacketSocket {
        &self.heard
    }

    /// For `poll`: readable when a host was heard on the air, and when a message has come.
    pub(super) fn readable(&self) -> [BorrowedFd<'_>; 2] {
        [self.heard.as_fd(), self.group.readable()]
    }

    /// Takes note of an error of the interface: until then its socket would seem readable.
    pub(super) fn take_error(&self) {
        self.heard.take_error().ok();
    }

    /// When it must be served.
    pub(super) fn next_deadline(&self, now: Instant) -> Instant {
        if self.has_more { now } else { self.handoff.poll_timeout() }
    }

    /// A packet has crossed the air interface.
    pub(super) fn packet(&mut self, now: Instant, from: Port, packet: &Packet) {
        if from == Port::Air || !self.own.is_own(packet) {
            self.handoff.handle_copy(now, from, packet);
        }
    }

    pub(super) fn status(&self) -> HandoffStatus {
        HandoffStatus {
            station: Ipv4Addr::from(self.station.0).to_string(),
            stations_known: self.handoff.peers() as u64,
            mobiles: self.handoff.mobiles() as u64,
            counters: self
                .counters
                .iter()
                .map(|(name, count)| ((*name).to_owned(), *count))
                .collect(),
        }
    }

    /// Does what the operator's word says.
    pub(super) fn obey(&mut self, now: Instant, word: &Word) {
        match word.movement {
            Movement::Approaching => self.handoff.mobile_approaches(now, word.address()),
            Movement::Attached => self.handoff.mobile_attached(now, word.address()),
            Movement::Receding => self.handoff.mobile_recedes(word.address()),
        }
    }

    /// Looks who is on the air.
    fn learn(&mut self, now: Instant, clock: &Clock) {
        let monotonic = clock::from_realtime();
        for _ in 0..HOSTS {
            let Some(copied) = self.heard.receive_copy() else { return };
            let at = clock.at(monotonic(copied.at));
            let Some(host) = AirHost::of(self.link_type, copied, self.mac) else { continue };
            let is_late = self.left.get(&host.address).is_some_and(|left| at < *left + HOLD_DOWN);
            if is_late {
                continue;
            }
            let is_news = self.handoff.is_news(now, &host.address);
            let is_known = self.links.get(&host.address) == Some(&host.link);
            if is_news && !self.attachments.admit(now, host.link.sender(), is_known) {
                continue;
            }
            self.links.heard(now, host.address, host.link);
            self.left.remove(&host.address);
            if is_news {
                self.handoff.mobile_attached(now, host.address);
            }
        }
    }

    /// The packet as this interface sends it to its mobile host. Where none of the host's packets
    /// has come over the air yet, the link header of the station that had it is the best there is.
    fn carry(&self, packet: &Packet) -> Option<Packet> {
        let mobile = Network::walk(packet).ok()?.destination;
        match self.links.get(&mobile) {
            Some(link) => link.carry(packet),
            None => Some(packet.clone()).filter(|packet| packet.link_type() == self.link_type),
        }
    }

    /// Forwards a packet to its mobile host.
    fn forward(&mut self, now: Instant, packet: &Packet) {
        for segment in segments(packet) {
            self.own.sent(now, &segment);
            // What is refused is lost like any packet.
            self.forwarding.send(&segment).ok();
        }
    }
}

impl Cooperation {
    /// Reads what others say, and acts on what is due.
    pub(super) fn receive(
        &mut self,
        now: Instant,
        clock: &Clock,
        air_round_trip: &dyn Fn(&FlowKey) -> Option<Duration>,
    ) {
        self.learn(now, clock);
        for _ in 0..MESSAGES {
            // A backbone that is down says nothing, and mending goes on.
            let Ok(Some(message)) = self.group.receive() else { break };
            self.handoff.handle_message(now, message, air_round_trip);
        }
        if self.handoff.poll_timeout() <= now {
            self.handoff.handle_timeout(now);
        }
    }

    /// Sends what is to be sent to others and to mobile hosts; the signals for the agent, and the
    /// packets that the agent must not see, are left to the caller.
    pub(super) fn poll_output(&mut self, now: Instant) -> Option<ForGateway> {
        self.has_more = true;
        for _ in 0..MESSAGES {
            let Some(output) = self.handoff.poll_output() else {
                self.has_more = false;
                break;
            };
            match output {
                Output::Message(_, message) => {
                    self.group.send(&message);
                }
                Output::Arrival { packet, is_resent } => match self.carry(&packet) {
                    Some(packet) if is_resent => return Some(ForGateway::Unseen(packet)),
                    Some(packet) => self.forward(now, &packet),
                    None => {}
                },
                Output::Left(mobile) => {
                    if self.left.len() >= MAX_LEFT {
                        self.left.retain(|_, left| now < *left + HOLD_DOWN);
                    }
                    self.left.insert(mobile, now);
                    return Some(ForGateway::Signal(LinkSignal::MobileLeft(mobile)));
                }
                Output::RoundTrip(sample) => {
                    return Some(ForGateway::Signal(LinkSignal::AirRoundTrip(sample)));
                }
            }
        }
        while let Some(event) = self.handoff.poll_event() {
            *self.counters.entry(event.counter()).or_default() += 1;
        }
        None
    }
}

/// The interface to the other stations and this one's address there, by which they know it.
fn backbone(config: &HandoffConfig) -> Result<(String, Ipv4Addr), GatewayError> {
    let wanted = match &config.interface {
        Some(_) => None,
        None => Some(
            local_address(config.group)
                .map_err(|source| GatewayError::HandoffRoute { group: config.group, source })?,
        ),
    };
    let none =
        || GatewayError::HandoffAddress { interface: config.interface.clone().unwrap_or_default() };
    getifaddrs()
        .map_err(|_| none())?
        .filter_map(|found| {
            let address = found.address?.as_sockaddr_in()?.ip();
            Some((found.interface_name, address))
        })
        .find(|(name, address)| match (&config.interface, wanted) {
            (Some(interface), _) => name == interface,
            (None, wanted) => Some(*address) == wanted,
        })
        .ok_or_else(none)
}

/// The address from which packets to the group would be sent.
fn local_address(group: SocketAddrV4) -> std::io::Result<Ipv4Addr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    socket.connect(group)?;
    match socket.local_addr()?.ip() {
        std::net::IpAddr::V4(address) => Ok(address),
        std::net::IpAddr::V6(_) => Err(std::io::ErrorKind::AddrNotAvailable.into()),
    }
}
