//! One peer: its channel, its agent, its path, and whether it is there. Nothing here is shared with
//! other peers but what it is given for a turn.

use super::carrier::Address;
use super::config::{PeerConfig, Protocol, Remote, TunnelConfig};
use super::counters::Counters;
use super::inbound::{Arrival, Inbound};
use super::interface::Interface;
use super::liveness::{Change, Liveness};
use super::message::Message;
use super::names::{Answer, Lookups, Name};
use super::noise::Names;
use super::notice::Notice;
use super::outbound::{Exit, Io, Outbound};
use super::path_mtu::PathMtu;
use super::random::hash_seed;
use super::security;
use super::told::Limiter;
use crate::meter::{Meter, Transfer};
use airmend_proto::agents::Limits;
use airmend_proto::{Ecn, Forwarder, Instant, LinkType, Packet, Port, drain};
use bytes::BytesMut;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// The longest wait between two turns, and of an idle loop, so that the caller can stop it.
pub(super) const IDLE: Duration = Duration::from_millis(50);
/// The interval of questions about the way to the peer and the interface; a datagram that is too
/// long for the way's interface fails at once.
pub(super) const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// The number of probes that ask whether the peer is there; those of the path's MTU begin above it.
const ARE_YOU_THERE: u32 = 0;
/// Probes answered at most in one turn.
const MAX_ANSWERS: usize = 16;

/// A peer as it is now.
pub(super) struct Peer {
    pub(super) config: PeerConfig,
    pub(super) place: usize,
    pub(super) limits: Limits,
    pub(super) forwarder: Forwarder,
    pub(super) outbound: Outbound,
    /// Bytes that the agent adds to each packet.
    frame_overhead: usize,
    /// Its address before a session tells it.
    pub(super) configured: Option<Address>,
    /// What leads there.
    name: Option<Name>,
    pub(super) liveness: Liveness,
    /// The path to it at this address.
    pub(super) path: Option<(Address, PathMtu)>,
    /// The route to it leads into the TUN device.
    pub(super) is_loop: bool,
    inbound: Inbound,
    /// Probes to answer: their numbers and lengths.
    answers: Vec<(u32, u16)>,
    pub(super) next_look: Instant,
    /// When it has its next turn.
    pub(super) due: Instant,
    /// The longest packet that fits one datagram.
    pub(super) fits: usize,
    pub(super) notices: VecDeque<Notice>,
    pub(super) limiter: Limiter,
    pub(super) meter: Meter,
    pub(super) transfer: Transfer,
    pub(super) agent_counters: BTreeMap<&'static str, u64>,
}

/// What a peer's parts are made of.
pub(super) struct Plan<'a> {
    pub(super) tunnel: &'a TunnelConfig,
    pub(super) protocol: &'a Protocol<'a>,
    pub(super) limits: Limits,
    pub(super) names: &'a Names,
    pub(super) lookups: &'a Lookups,
    /// The time since 1970 at `Instant::ZERO`.
    pub(super) since_1970: Duration,
}

impl Peer {
    /// A peer from which nothing has come yet.
    pub(super) fn new(now: Instant, place: usize, config: &PeerConfig, plan: &Plan<'_>) -> Self {
        let Plan { tunnel, protocol, limits, names, lookups, since_1970 } = *plan;
        let (configured, name) = match &config.remote {
            Some(Remote::Address(address)) => (Some(*address), None),
            Some(Remote::Name(name)) => (None, Some(Name::new(name, lookups))),
            None => (None, None),
        };
        let (security, names) = (&config.security, names.of(place));
        let mut channel = security::open(security, names, configured, since_1970);
        if name.is_some() {
            channel.initiate(&[]);
        }
        let compressor = protocol.link.and_then(|link| link.compressor);
        let compressor = compressor.map(|new| new(tunnel.compression, hash_seed()));
        Self {
            config: config.clone(),
            place,
            limits,
            forwarder: protocol.forwarder(limits),
            outbound: Outbound::new(channel, tunnel.padding, compressor),
            frame_overhead: protocol.link.map_or(0, |link| link.frame_overhead),
            configured,
            name,
            liveness: Liveness::new(now),
            path: None,
            is_loop: false,
            inbound: Inbound::new(limits.cache_bytes),
            answers: Vec::new(),
            next_look: now,
            due: now,
            fits: 0,
            notices: VecDeque::new(),
            limiter: Limiter::default(),
            meter: Meter::default(),
            transfer: Transfer::default(),
            agent_counters: BTreeMap::new(),
        }
    }

    /// What is between the ends begins anew, as after a restart of one of them; figures and what
    /// the operator was told go on.
    pub(super) fn begin_anew(
        &mut self,
        now: Instant,
        io: &mut Io,
        config: &PeerConfig,
        plan: &Plan<'_>,
    ) {
        self.outbound.give_up(io);
        let mut new = Self::new(now, self.place, config, plan);
        new.outbound.channel.resume(*self.outbound.channel.counters());
        new.outbound.own = self.outbound.own;
        std::mem::swap(&mut new.liveness, &mut self.liveness);
        std::mem::swap(&mut new.notices, &mut self.notices);
        std::mem::swap(&mut new.limiter, &mut self.limiter);
        std::mem::swap(&mut new.meter, &mut self.meter);
        new.transfer = self.transfer;
        std::mem::swap(&mut new.agent_counters, &mut self.agent_counters);
        new.fits = self.fits;
        *self = new;
    }

    /// From now on its packets may take so much memory: others have come or gone.
    pub(super) fn limit(&mut self, limits: Limits) {
        self.limits = limits;
        self.forwarder.limit_cache(limits.cache_bytes);
        self.inbound.limit_cache(limits.cache_bytes);
    }

    /// Whether packets for it may be taken: it is there.
    pub(super) fn is_there(&self) -> bool {
        self.outbound.channel.peer().is_some() && !self.liveness.is_lost()
    }

    /// The longest packet that fits a datagram of this length.
    pub(super) fn fits(&self, datagram: usize) -> usize {
        datagram.saturating_sub(self.outbound.overhead() + self.frame_overhead)
    }

    /// Hands the agent a packet of the hosts.
    pub(super) fn take(&mut self, now: Instant, packet: Packet) {
        self.due = now;
        self.outbound.own.packets_in += 1;
        self.outbound.own.bytes_in += u64::from(packet.wire_len());
        self.transfer.add(now, packet.wire_len().into());
        self.forwarder.handle_packet(now, Port::Wired, packet);
    }

    /// Hands the agent the frame of a datagram, if that is authentic; frames of one batch share
    /// `buffer`.
    pub(super) fn receive(
        &mut self,
        now: Instant,
        (from, ecn): (Address, Ecn),
        datagram: &[u8],
        buffer: &mut BytesMut,
    ) {
        self.due = now;
        if !self.outbound.channel.receive(now, from, datagram, buffer) {
            return;
        }
        match self.inbound.take(now, buffer.split().freeze(), ecn) {
            Some(Arrival::Frame(frame, ecn)) => {
                let packet = Packet::new(LinkType::Frame, frame).with_outer_ecn(ecn);
                let frame = match &mut self.outbound.compressor {
                    Some(compressor) => compressor.expand(packet),
                    None => Ok(packet),
                };
                match frame {
                    Ok(frame) => self.forwarder.handle_packet(now, Port::Air, frame),
                    Err(_) => self.outbound.own.unreadable += 1,
                }
            }
            Some(Arrival::Probe { number }) if self.answers.len() < MAX_ANSWERS => {
                self.answers.push((number, datagram.len() as u16));
            }
            Some(Arrival::Answer { number, length }) => {
                if let Some((_, path)) = &mut self.path {
                    path.handle_answer(now, number, usize::from(length));
                }
            }
            _ => {}
        }
    }

    /// Does all that is to be done now.
    pub(super) fn turn(&mut self, now: Instant, io: &mut Io, interface: &Interface) {
        self.outbound.now = now;
        self.outbound.tell_epochs(io);
        for (number, length) in std::mem::take(&mut self.answers) {
            self.outbound.send_message(io, Message::Answer { number, length }, 0);
        }
        self.outbound.channel.handle_timeout(now);
        self.inbound.expire(now);
        let counters = &mut self.agent_counters;
        let mut on_event = |event: airmend_proto::Event| {
            *counters.entry(event.counter()).or_insert(0) += 1;
        };
        let mut exit = Exit { io, outbound: &mut self.outbound, place: self.place };
        let deadline = drain(&mut self.forwarder, now, &mut exit, &mut on_event);
        self.outbound.flush(io);
        self.follow_liveness(now, io);
        self.follow_path(now, io, interface);
        self.due = self.next(now, deadline.map(|deadline| deadline.at));
    }

    /// When the next turn is due; `deadline` is the agent's.
    fn next(&self, now: Instant, deadline: Option<Instant>) -> Instant {
        let channel = self.outbound.channel.poll_timeout();
        // Without a peer the agent cannot send, however long its frames wait.
        let own = deadline.into_iter();
        let own = own.chain(self.path.as_ref().and_then(|(_, path)| path.poll_timeout()));
        let own = own.min().filter(|_| self.outbound.channel.peer().is_some());
        channel.into_iter().chain(own).min().map_or(now + IDLE, |at| at.min(now + IDLE))
    }

    /// Asks the peer, and notices that it is gone or back, or that its name leads elsewhere.
    fn follow_liveness(&mut self, now: Instant, io: &mut Io) {
        let received = self.outbound.channel.counters().frames_received;
        if self.liveness.poll(now, received) == Some(Change::Lost) {
            self.outbound.channel.handle_silence(now);
        }
        if self.outbound.channel.peer().is_some() && self.liveness.poll_question(now) {
            self.outbound.send_message(io, Message::Probe { number: ARE_YOU_THERE }, 0);
        }
        let is_lost = self.liveness.is_lost();
        match self.name.as_mut().and_then(|name| name.poll(now, is_lost)) {
            Some(Answer::Addresses(found)) => {
                let found: Vec<_> = found.into_iter().map(Address::Udp).collect();
                self.configured = found.first().copied();
                self.outbound.channel.initiate(&found);
            }
            Some(Answer::Nothing) => self.notices.push_back(Notice::NoAddress),
            None => {}
        }
    }

    /// Probes what the path carries; the length of datagrams follows.
    fn follow_path(&mut self, now: Instant, io: &mut Io, interface: &Interface) {
        let peer = self.outbound.channel.peer();
        let is_known = |at: &Address| peer.is_none_or(|peer| at.is_same_host(peer));
        let is_elsewhere =
            !self.is_loop && self.path.as_ref().map_or(peer.is_some(), |(at, _)| !is_known(at));
        if is_elsewhere || self.next_look <= now {
            self.next_look = now + LOOK_INTERVAL;
            self.look(now, io, interface);
        }
        let Some((_, path)) = self.path.as_mut().filter(|_| peer.is_some()) else { return };
        path.handle_sent(std::mem::take(&mut self.outbound.longest_sent));
        while let Some(probe) = path.poll_probe(now) {
            let number = probe.number;
            self.outbound.send_message(io, Message::Probe { number }, probe.length);
        }
        self.outbound.limit = path.limit();
        self.outbound.padded_limit = path.limit();
        let settled = path.settled();
        self.fits = self.fits(settled);
    }

    /// Looks what has become of the way to the peer.
    fn look(&mut self, now: Instant, io: &mut Io, interface: &Interface) {
        let channel = &self.outbound.channel;
        let Some(to) = channel.peer().or(self.configured) else { return };
        let Some(way) = io.carrier.way(to) else { return };
        let was_loop = std::mem::replace(&mut self.is_loop, interface.is(way.interface));
        if self.is_loop {
            // The link itself is no path whose MTU is worth knowing.
            let notice = (!was_loop).then_some(Notice::Loop(to));
            return self.notices.extend(notice);
        }
        let Some(peer) = channel.peer() else { return };
        self.path.take_if(|(at, _)| !at.is_same_host(peer));
        let floor = io.carrier.min_datagram(peer);
        let (_, path) =
            self.path.get_or_insert_with(|| (peer, PathMtu::new(now, floor, way.ceiling)));
        path.set_ceiling(now, way.ceiling);
        path.set_report(now, way.report);
    }

    /// Bytes of frames in parts.
    pub(super) fn parts_bytes(&self) -> usize {
        self.inbound.bytes()
    }

    /// The counters so far.
    pub(super) fn counters(&self) -> Counters {
        self.outbound.counters()
    }

    /// The next thing that the operator should know, if it is within the rate.
    pub(super) fn poll_notice(&mut self, now: Instant) -> Option<(Notice, u64)> {
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
}
