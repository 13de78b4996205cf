//! The peers of one end, behind one interface and one socket: which of them a packet or a datagram
//! is for, and their turns.
//!
//! A datagram of a session names it, whatever address it comes from. An initiation names nobody: it
//! is compared with the keys of the peers, first of those at its source.

mod shares;

use super::carrier::{Address, Batch};
use super::config::{PeerConfig, Protocol, TunnelConfig};
use super::datagram::Datagram;
use super::interface::Interface;
use super::names::Lookups;
use super::noise::{Names, Strangers};
use super::notice::Notice;
use super::outbound::Io;
use super::peer::{Peer, Plan};
use super::routing::Routing;
use airmend_proto::agents::Limits;
use airmend_proto::wire::ip::Network;
use airmend_proto::{Ecn, Instant, Packet};
use bytes::BytesMut;
use shares::Shares;
use std::time::Duration;

/// Peers of one end at most.
pub const MAX_PEERS: usize = 256;
/// Replies to strangers that wait at most.
const REPLIES: usize = 64;

/// All peers; a place that one has left is another's later.
pub(super) struct Peers {
    places: Vec<Option<Peer>>,
    names: Names,
    lookups: Lookups,
    since_1970: Duration,
    pub(super) strangers: Strangers,
    replies: Vec<(Address, Vec<u8>)>,
    pub(super) shares: Shares,
    pub(super) notices: Vec<Notice>,
    /// The place of the only one.
    only: Option<usize>,
    /// Who has the first turn.
    first: usize,
}

impl Peers {
    /// The peers of this configuration. `since_1970` is the time at `Instant::ZERO`.
    pub(super) fn new(
        config: &TunnelConfig,
        protocol: &Protocol<'_>,
        since_1970: Duration,
    ) -> Self {
        let mut peers = Self {
            places: Vec::new(),
            names: Names::default(),
            lookups: Lookups::default(),
            since_1970,
            strangers: Strangers::new(config.public_key().as_ref()),
            replies: Vec::new(),
            shares: Shares::default(),
            notices: Vec::new(),
            only: (config.peers.len() == 1).then_some(0),
            first: 0,
        };
        peers.places = {
            let plan = peers.plan(config, protocol);
            let new = |(place, peer)| Some(Peer::new(Instant::ZERO, place, peer, &plan));
            config.peers.iter().enumerate().map(new).collect()
        };
        peers
    }

    fn plan<'a>(&'a self, tunnel: &'a TunnelConfig, protocol: &'a Protocol<'a>) -> Plan<'a> {
        let limits = limits(tunnel.peers.len());
        let (names, lookups, since_1970) = (&self.names, &self.lookups, self.since_1970);
        Plan { tunnel, protocol, limits, names, lookups, since_1970 }
    }

    /// From now on the peers are those of `config`: one that was there before, by its key, stays,
    /// and begins anew only if `is_new` or something that crosses to it has changed.
    pub(super) fn reload(
        &mut self,
        now: Instant,
        io: &mut Io,
        config: &TunnelConfig,
        protocol: &Protocol<'_>,
        is_new: bool,
    ) {
        let mut wanted: Vec<_> = config.peers.iter().map(Some).collect();
        for place in 0..self.places.len() {
            let Some(mut peer) = self.places.get_mut(place).and_then(Option::take) else {
                continue;
            };
            let is_it = |wanted: &&mut Option<&PeerConfig>| {
                wanted.is_some_and(|wanted| wanted.is_same(&peer.config))
            };
            let Some(wanted) = wanted.iter_mut().find(is_it).and_then(Option::take) else {
                peer.outbound.give_up(io);
                continue;
            };
            if is_new || !wanted.crosses_alike(&peer.config) {
                peer.begin_anew(now, io, wanted, &self.plan(config, protocol));
            } else {
                peer.config = wanted.clone();
                peer.limit(limits(config.peers.len()));
            }
            self.places[place] = Some(peer);
        }
        for peer in wanted.into_iter().flatten() {
            let free = self.places.iter().position(Option::is_none);
            let place = free.unwrap_or_else(|| {
                self.places.push(None);
                self.places.len() - 1
            });
            let peer = Peer::new(now, place, peer, &self.plan(config, protocol));
            self.places[place] = Some(peer);
        }
        let mut strangers = Strangers::new(config.public_key().as_ref());
        strangers.counters = self.strangers.counters;
        self.strangers = strangers;
        let only = self.iter().next().map(|peer| peer.place);
        self.only = only.filter(|_| !self.are_several());
        io.routing = self.routing();
    }

    /// Whose addresses are whose.
    pub(super) fn routing(&self) -> Routing {
        if let Some(place) = self.only {
            return Routing::everything(place);
        }
        let mut routing = Routing::default();
        for peer in self.iter() {
            let networks = &peer.config.allowed;
            networks.iter().for_each(|network| routing.add(*network, peer.place));
        }
        routing
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Peer> {
        self.places.iter().flatten()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Peer> {
        self.places.iter_mut().flatten()
    }

    /// The peer in this place.
    pub(super) fn at(&self, place: usize) -> Option<&Peer> {
        self.places.get(place)?.as_ref()
    }

    fn get(&mut self, place: usize) -> Option<&mut Peer> {
        self.places.get_mut(place)?.as_mut()
    }

    /// Whether there are several, so that people want to know which is meant.
    pub(super) fn are_several(&self) -> bool {
        self.iter().nth(1).is_some()
    }

    /// Hands a packet of the hosts to the peer that has its destination, if that is there. Of a
    /// datagram of the link itself, which would go round for ever, nothing is sent.
    pub(super) fn take(&mut self, now: Instant, io: &Io, is_lan: bool, packet: Packet) {
        let only = io.routing.only();
        let to = || io.routing.place(Network::walk(&packet).ok()?.destination);
        let Some(peer) = only.or_else(to).and_then(|place| self.get(place)) else {
            self.strangers.counters.no_peer += 1;
            return;
        };
        let at = peer.outbound.channel.peer().filter(|_| !is_lan);
        if at.is_some_and(|at| io.carrier.is_own(at, &packet)) {
            peer.outbound.own.looped += 1;
        } else if only.is_none() && !peer.is_there() {
            peer.outbound.own.no_peer += 1;
        } else {
            peer.take(now, packet);
        }
    }

    /// Hands a datagram to the peer that it is from.
    pub(super) fn receive(
        &mut self,
        now: Instant,
        (from, ecn): (Address, Ecn),
        datagram: &[u8],
        buffer: &mut BytesMut,
    ) {
        // All that comes is an only peer's, or it refuses it.
        let place = self.only.or_else(|| self.find(now, from, datagram));
        let Some(place) = place else { return };
        let is_admitted = self.only.is_some() || self.shares.admits(place);
        match self.get(place) {
            Some(peer) if is_admitted => peer.receive(now, (from, ecn), datagram, buffer),
            Some(peer) => peer.outbound.own.crowded_out += 1,
            None => {}
        }
    }

    /// The place of the peer that a datagram is from.
    fn find(&mut self, now: Instant, from: Address, datagram: &[u8]) -> Option<usize> {
        let mut is_initiation = false;
        match Datagram::parse(datagram) {
            Some(Datagram::Sealed(id, ..) | Datagram::Response(id, _)) => {
                let place = self.names.place(id);
                return place.or_else(|| self.refuse(now, from, datagram));
            }
            Some(Datagram::Initiation(_)) if !self.strangers.has_mac1(datagram) => {
                return self.refuse(now, from, datagram);
            }
            Some(Datagram::Initiation(_)) => is_initiation = true,
            _ => {}
        }
        let count = self.places.len();
        let mut compare = |is_here: bool| {
            self.places.iter_mut().flatten().find_map(|peer| {
                let channel = &mut peer.outbound.channel;
                let is_among = (channel.peer() == Some(from)) == is_here;
                (is_among && channel.is_for(now, from, datagram)).then_some(peer.place)
            })
        };
        if let Some(place) = compare(true) {
            return Some(place);
        }
        if is_initiation && !self.strangers.may_compare(now, count) {
            self.strangers.refused();
            return None;
        }
        if let Some(place) = compare(false) {
            return Some(place);
        }
        if is_initiation && self.notices.is_empty() {
            self.notices.push(Notice::NoPeer(from));
        }
        self.refuse(now, from, datagram)
    }

    /// Counts what is for nobody, and answers it if it was sealed.
    fn refuse(&mut self, now: Instant, from: Address, datagram: &[u8]) -> Option<usize> {
        let reply = self.strangers.refuse(now, datagram)?;
        if self.replies.len() < REPLIES {
            self.replies.push((from, reply));
        }
        None
    }

    /// The turns of all peers that have something to do; another one begins each time, so that none
    /// always finds the socket full. True if a path carries more or less than before.
    pub(super) fn turns(&mut self, now: Instant, io: &mut Io, interface: &Interface) -> bool {
        let mut is_path_new = false;
        let count = self.places.len();
        self.first = (self.first + 1) % count.max(1);
        let (before, after) = self.places.split_at_mut(self.first);
        for peer in after.iter_mut().chain(before).flatten() {
            if peer.due <= now || peer.outbound.is_waiting() {
                let before = (peer.path.is_some(), peer.fits);
                peer.turn(now, io, interface);
                is_path_new |= before != (peer.path.is_some(), peer.fits);
            }
        }
        for (to, reply) in self.replies.drain(..) {
            io.carrier.send(to, &Batch::single(reply));
        }
        is_path_new
    }

    /// When the first of them has something to do.
    pub(super) fn due(&self) -> Option<Instant> {
        self.iter().map(|peer| peer.due).min()
    }
}

/// The limits of each of so many peers: together they have what one has alone.
fn limits(peers: usize) -> Limits {
    let all = Limits::default();
    Limits { cache_bytes: all.cache_bytes / peers.max(1), ..all }
}

#[cfg(test)]
mod tests;
