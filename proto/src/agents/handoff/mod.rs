//! Handoff between base stations [snoop95 §3.3]: a mobile host that moves keeps its transfers, with
//! any agent.
//!
//! A station that the mobile may move to joins: it gets copies of the mobile's packets, and keeps
//! them without forwarding them. When the mobile has come, the station claims it; the station that
//! served it answers with the state of its flows, and from then on relays what still arrives there.
//! The claiming station forwards at once what the mobile lacks.
//!
//! The state is soft. A message that is lost, late, repeated or forged costs time: after
//! [`CLAIMS`](mobile::CLAIMS) claims the flows begin without state, and the agents rebuild theirs
//! from the packets. `docs/handoff.md` has the format and the reasons.

mod buffer;
mod claim;
mod counters;
mod message;
mod mobile;
mod peers;
#[cfg(test)]
mod tests;

pub use counters::COUNTERS;
#[cfg(feature = "fuzzing")]
pub use message::authenticate;
pub use message::{DATA_OVERHEAD, Key, Mobile, StationId, To, wire_len};

use crate::agent::{Agent, LinkSignal};
use crate::event::Event;
use crate::forwarder::Forwarder;
use crate::packet::Packet;
use crate::port::Port;
use crate::time::Instant;
use crate::wire::edit::segments;
use crate::wire::flow::FlowKey;
use crate::wire::ip::Network;
use crate::wire::seq::SeqNumber;
use crate::wire::tcp::Segment;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::time::Duration;
use counters::Counted;
use message::{Body, Header, Refusal};
use mobile::{FEED, JOIN_INTERVAL, MobileHost, RELAY, Role};
use peers::{Peers, Stale};

/// The interval of hellos.
const HELLO_INTERVAL: Duration = Duration::from_secs(1);
/// The least time between two hellos.
const LEAST_HELLO_INTERVAL: Duration = Duration::from_millis(10);
/// The most mobile hosts. One without packets makes room, of these the one that was heard of least
/// recently.
const MAX_MOBILES: usize = 1_024;

/// Where a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// To the agent, and on.
    Onward,
    /// Nowhere: it is kept, or another station has got it.
    Kept,
}

/// What the runner must do.
#[derive(Debug)]
pub enum Output {
    /// Send a message to other stations.
    Message(To, Vec<u8>),
    /// Forward a packet as if it had arrived from the wired side. The agent is not shown a packet
    /// that its sender has retransmitted: it leaves the sender's duplicate ACKs alone [S0-22].
    Arrival {
        /// The packet.
        packet: Packet,
        /// Whether the sender has retransmitted it.
        is_resent: bool,
    },
    /// Signal to the agent that a mobile host has left.
    Left(Mobile),
    /// Tell the agent the round trip that the last station measured.
    RoundTrip(Duration),
}

impl Output {
    /// Does it with a forwarder; returns a message for the runner to send.
    pub fn apply<A: Agent + ?Sized>(
        self,
        now: Instant,
        forwarder: &mut Forwarder<A>,
    ) -> Option<(To, Vec<u8>)> {
        match self {
            Self::Message(to, message) => return Some((to, message)),
            Self::Arrival { packet, is_resent: false } => {
                forwarder.handle_packet(now, Port::Wired, packet);
            }
            Self::Arrival { packet, is_resent: true } => {
                forwarder.forward_unseen(Port::Wired, packet);
            }
            Self::Left(mobile) => forwarder.handle_link(now, LinkSignal::MobileLeft(mobile)),
            Self::RoundTrip(sample) => {
                forwarder.handle_link(now, LinkSignal::AirRoundTrip(sample));
            }
        }
        None
    }
}

/// The handoff of one base station.
#[derive(Debug)]
pub struct Handoff {
    own: StationId,
    epoch: u64,
    key: Key,
    counter: u64,
    peers: Peers,
    mobiles: BTreeMap<Mobile, MobileHost>,
    hello_at: Instant,
    hello_sent: Option<Instant>,
    outputs: VecDeque<Output>,
    events: VecDeque<Event>,
}

impl Handoff {
    /// A station. `epoch` must be another one in each run of the station: a random number.
    pub fn new(own: StationId, epoch: u64, key: Key) -> Self {
        Self {
            own,
            epoch,
            key,
            counter: 0,
            peers: Peers::new(own, epoch),
            mobiles: BTreeMap::new(),
            hello_at: Instant::ZERO,
            hello_sent: None,
            outputs: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    /// The number of other stations that are known.
    pub fn peers(&self) -> usize {
        self.peers.known()
    }

    /// The number of mobile hosts that are served here.
    pub fn mobiles(&self) -> usize {
        self.mobiles.keys().filter(|mobile| self.serves(mobile)).count()
    }

    /// Whether a mobile host is served here.
    pub fn serves(&self, mobile: &Mobile) -> bool {
        let role = self.mobiles.get(mobile).map(|host| &host.role);
        matches!(role, Some(Role::Serving | Role::Claiming { .. }))
    }

    /// A mobile host may move here soon: a strong signal, or the operator's word.
    pub fn mobile_approaches(&mut self, now: Instant, mobile: Mobile) {
        if self.serves(&mobile) || matches!(self.role(&mobile), Some(Role::Joined { .. })) {
            return;
        }
        self.host(now, mobile).role = Role::Joined { refresh_at: now + JOIN_INTERVAL };
        self.send(To::Group, &Body::Join(mobile));
    }

    /// It will not.
    pub fn mobile_recedes(&mut self, mobile: Mobile) {
        if matches!(self.role(&mobile), Some(Role::Joined { .. })) {
            self.mobiles.remove(&mobile);
            self.send(To::Group, &Body::Leave(mobile));
        }
    }

    /// A packet arrived at `from`. A packet from the air side shows that its host is here only if
    /// the runner says so with [`Handoff::mobile_attached`]. On a real network `packet` must have
    /// been captured whole: another station may have to forward it.
    pub fn handle_packet(&mut self, now: Instant, from: Port, packet: &Packet) -> Way {
        self.pass(now, from, packet, false)
    }

    /// The same for a packet that the kernel has forwarded already: if its host is here, it is not
    /// forwarded again when the state of its flow arrives.
    pub fn handle_copy(&mut self, now: Instant, from: Port, packet: &Packet) {
        self.pass(now, from, packet, true);
    }

    fn pass(&mut self, now: Instant, from: Port, packet: &Packet, is_copy: bool) -> Way {
        if self.mobiles.is_empty() {
            return Way::Onward;
        }
        let Ok(network) = Network::walk(packet) else { return Way::Onward };
        let mobile = if from == Port::Air { network.source } else { network.destination };
        let segment = Segment::parse(packet).ok();
        let flow = segment.map(|segment| (FlowKey::of(&segment, from), segment));
        let Some(host) = self.mobiles.get_mut(&mobile) else { return Way::Onward };
        host.active_at = now;
        match from {
            Port::Air => {
                if let Some((key, segment)) = flow {
                    host.buffer.acknowledge(&key, &segment);
                }
                Way::Onward
            }
            Port::Wired => self.handle_inbound(now, mobile, flow, packet, is_copy),
        }
    }

    /// A packet for a mobile host arrived from the wired side.
    fn handle_inbound(
        &mut self,
        now: Instant,
        mobile: Mobile,
        flow: Option<(FlowKey, Segment)>,
        packet: &Packet,
        is_copy: bool,
    ) -> Way {
        let has_peers = self.peers.known() > 0;
        let Some(host) = self.mobiles.get_mut(&mobile) else { return Way::Onward };
        if let Role::Moved { to, until, .. } = &mut host.role {
            if now >= *until {
                return Way::Onward;
            }
            *until = now + RELAY;
            let to = To::Station(*to);
            self.send_data(to, packet, false, None);
            self.count(Counted::Relayed);
            return Way::Kept;
        }
        let Some((key, segment)) = flow.filter(|_| has_peers) else { return Way::Onward };
        let is_fed = host.is_fed(now);
        let holds = match host.role {
            Role::Claiming { holds, .. } => holds,
            Role::Joined { .. } => true,
            _ => false,
        };
        let is_resent = segment.seq_len() > 0 && host.buffer.insert(key, &segment, packet, is_fed);
        if is_copy && !matches!(host.role, Role::Joined { .. }) {
            host.buffer.note_forwarded(&key, &segment);
        }
        if is_fed && matches!(host.role, Role::Serving) {
            self.feed(now, mobile, packet, is_resent);
        }
        match holds && segment.seq_len() > 0 {
            true => Way::Kept,
            false => Way::Onward,
        }
    }

    /// A message of another station. `air_round_trip` is what the agent has measured for a flow.
    pub fn handle_message(
        &mut self,
        now: Instant,
        message: &[u8],
        air_round_trip: &dyn Fn(&FlowKey) -> Option<Duration>,
    ) {
        let (header, body) = match message::open(&self.key, message) {
            Ok(opened) => opened,
            Err(Refusal::Version) => return self.count(Counted::OtherVersion),
            Err(Refusal::Forged) => return self.count(Counted::Forged),
            Err(Refusal::Malformed) => return self.count(Counted::Malformed),
        };
        // The group loops messages back to their sender.
        let is_for_this = header.to == To::Group || header.to == To::Station(self.own);
        if header.from == self.own || !is_for_this {
            return;
        }
        if let Body::Hello(heard) = &body {
            return self.handle_hello(now, &header, heard);
        }
        match self.peers.accept(&header) {
            Ok(()) => self.handle_body(now, header.from, body, air_round_trip),
            Err(Stale::Replayed) => self.count(Counted::Replayed),
            Err(Stale::Unknown) => self.count(Counted::UnknownRun),
        }
    }

    fn handle_hello(&mut self, now: Instant, header: &Header, heard: &[(StationId, u64)]) {
        match self.peers.accept_hello(header, heard) {
            Ok(true) => {
                let earliest = self.hello_sent.map_or(now, |sent| sent + LEAST_HELLO_INTERVAL);
                self.hello_at = self.hello_at.min(earliest.max(now));
            }
            Ok(false) => {}
            Err(Stale::Replayed) => self.count(Counted::Replayed),
            Err(Stale::Unknown) => self.count(Counted::TooManyStations),
        }
    }

    fn handle_body(
        &mut self,
        now: Instant,
        from: StationId,
        body: Body,
        air_round_trip: &dyn Fn(&FlowKey) -> Option<Duration>,
    ) {
        match body {
            Body::Join(mobile) => self.handle_join(now, from, mobile),
            Body::Leave(mobile) => {
                if let Some(host) = self.mobiles.get_mut(&mobile) {
                    host.listeners.remove(&from);
                }
            }
            Body::Claim(mobile, number) => {
                self.handle_claim(now, from, mobile, number, air_round_trip);
            }
            Body::Attached(mobile, number) => self.handle_attached(now, mobile, number),
            Body::State(mobile, number, flows) => self.handle_state(mobile, number, &flows),
            Body::Data { packet, is_resent, acked } => {
                let flow = Segment::parse(&packet).ok();
                let flow = flow.map(|segment| (FlowKey::of(&segment, Port::Wired), segment));
                self.handle_data(now, flow, packet, is_resent, acked);
            }
            Body::Hello(_) => {}
        }
    }

    /// A station that the mobile may move to wants its packets: those that it lacks at once.
    fn handle_join(&mut self, now: Instant, from: StationId, mobile: Mobile) {
        let Some(host) = self.mobiles.get_mut(&mobile) else { return };
        if host.role != Role::Serving {
            return;
        }
        let before = host.listeners.insert(from, now + FEED);
        let attached = Body::Attached(mobile, host.number);
        if before.is_none_or(|until| until <= now) {
            let packets: Vec<_> = host.buffer.unacknowledged().collect();
            host.buffer.note_fed();
            self.send(To::Station(from), &attached);
            for held in packets {
                self.send_data(To::Station(from), &held.packet, held.is_resent, None);
            }
        }
    }

    /// A packet that another station has got for a mobile host.
    fn handle_data(
        &mut self,
        now: Instant,
        flow: Option<(FlowKey, Segment)>,
        packet: Packet,
        is_resent: bool,
        acked: Option<SeqNumber>,
    ) {
        let Ok(network) = Network::walk(&packet) else { return self.count(Counted::Malformed) };
        let Some(host) = self.mobiles.get_mut(&network.destination) else {
            return self.count(Counted::Stray);
        };
        let data = flow.filter(|(_, segment)| segment.seq_len() > 0);
        if let Some((key, segment)) = &data {
            host.buffer.insert(*key, segment, &packet, false);
            if is_resent {
                host.buffer.mark(key, &[(segment.seq, segment.end())]);
            }
            if let Some(acked) = acked {
                host.buffer.synchronise(key, acked, None, &[]);
            }
        }
        match &mut host.role {
            Role::Joined { .. } if data.is_some() => {
                host.active_at = now;
                self.count(Counted::Primed);
            }
            Role::Claiming { holds, .. } if data.is_some() => *holds = true,
            Role::Claiming { .. } | Role::Serving => {
                self.outputs.push_back(Output::Arrival { packet, is_resent });
            }
            Role::Joined { .. } | Role::Moved { .. } => self.count(Counted::Stray),
        }
    }

    /// Acts on what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.hello_at <= now {
            self.hello_at = now + HELLO_INTERVAL;
            self.hello_sent = Some(now);
            let heard = self.peers.heard();
            self.send(To::Group, &Body::Hello(heard));
        }
        let due = |host: &MobileHost| host.due().is_some_and(|due| due <= now);
        let due: Vec<Mobile> =
            self.mobiles.iter().filter(|(_, host)| due(host)).map(|(mobile, _)| *mobile).collect();
        for mobile in due {
            self.handle_due(now, mobile);
        }
    }

    fn handle_due(&mut self, now: Instant, mobile: Mobile) {
        let Some(host) = self.mobiles.get_mut(&mobile) else { return };
        match &mut host.role {
            Role::Joined { refresh_at } => {
                *refresh_at = now + JOIN_INTERVAL;
                self.send(To::Group, &Body::Join(mobile));
            }
            Role::Claiming { .. } => self.retry_claim(now, mobile),
            Role::Moved { .. } => {
                self.mobiles.remove(&mobile);
            }
            Role::Serving => {}
        }
    }

    /// When [`Handoff::handle_timeout`] must be called.
    pub fn poll_timeout(&self) -> Instant {
        let due = self.mobiles.values().filter_map(MobileHost::due).min();
        due.map_or(self.hello_at, |due| due.min(self.hello_at))
    }

    /// What the runner must do next.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// The next event to be counted.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn role(&self, mobile: &Mobile) -> Option<&Role> {
        self.mobiles.get(mobile).map(|host| &host.role)
    }

    /// The state of a mobile host, which may be new.
    fn host(&mut self, now: Instant, mobile: Mobile) -> &mut MobileHost {
        if self.mobiles.len() >= MAX_MOBILES && !self.mobiles.contains_key(&mobile) {
            // Whoever invents hosts must not take the places of those that have packets here.
            let worth = |host: &MobileHost| (!host.buffer.is_empty(), host.active_at);
            let least = self.mobiles.iter().min_by_key(|(_, host)| worth(host));
            if let Some(least) = least.map(|(mobile, _)| *mobile) {
                self.mobiles.remove(&least);
            }
        }
        let new = || MobileHost::new(now, Role::Joined { refresh_at: now });
        let host = self.mobiles.entry(mobile).or_insert_with(new);
        host.active_at = now;
        host
    }

    /// Sends a packet to the stations that the mobile may move to.
    fn feed(&mut self, now: Instant, mobile: Mobile, packet: &Packet, is_resent: bool) {
        let Some(host) = self.mobiles.get_mut(&mobile) else { return };
        host.listeners.retain(|_, until| now < *until);
        let to = match (host.listeners.len(), host.listeners.keys().next()) {
            (1, Some(only)) => To::Station(*only),
            _ => To::Group,
        };
        let key = Segment::parse(packet).ok().map(|segment| FlowKey::of(&segment, Port::Wired));
        let acked = key.and_then(|key| host.buffer.acked(&key));
        self.send_data(to, packet, is_resent, acked);
    }

    fn send_data(&mut self, to: To, packet: &Packet, is_resent: bool, acked: Option<SeqNumber>) {
        for packet in segments(packet) {
            self.send(to, &Body::Data { packet, is_resent, acked });
        }
    }

    fn send(&mut self, to: To, body: &Body) {
        self.counter += 1;
        let header = Header { from: self.own, to, epoch: self.epoch, counter: self.counter };
        self.outputs.push_back(Output::Message(to, message::seal(&self.key, &header, body)));
    }

    fn count(&mut self, what: Counted) {
        self.events.push_back(Event::Own(what.event()));
    }
}
