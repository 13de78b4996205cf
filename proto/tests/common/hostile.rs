//! Arbitrary packets and times for an agent, and what must hold whatever they are.

use super::agents::checked;
use super::edits::{
    is_duplicate_report, is_marked, is_negative_ack, is_part, is_restored, is_stripped,
};
use super::packet::{Foreign, NEGATIVE_ACK, Tcp};
use airmend_proto::agents::{AgentConfig, Limits};
use airmend_proto::wire::tcp::{Flags, Segment};
use airmend_proto::{EgressLimits, Event, Forwarder, Instant, LinkType, Load, Packet, Port};
use std::collections::{HashMap, HashSet};
use std::time::Duration;

/// One thing that happens to the agent.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Time passes.
    Wait(Duration),
    /// A TCP packet arrives from its sender's side.
    Tcp(Tcp),
    /// Something else arrives.
    Foreign(Port, Foreign, u16),
    /// Any bytes arrive.
    Bytes(Port, LinkType, Vec<u8>),
    /// A side takes packets, or stops to.
    CanSend(Port, bool),
}

/// Limits so small that each of them is hit.
pub(crate) const TINY: Limits =
    Limits { flows: 3, cache_bytes: 3_000, egress: EgressLimits { air: 4, wired: 4 } };

/// Where the sequence numbers of every flow and host begin: just before they wrap.
pub(crate) const ISN: u32 = u32::MAX - 999;

/// The longest hold budget, and the repairs that a flow may have before anything was delivered.
const HOLD_LIMIT: Duration = Duration::from_millis(150);
const UNEARNED: u32 = 32;

/// Longer than any clean-up takes.
const REST: Duration = Duration::from_secs(200);

/// Plays the steps, then lets the agent come to rest; the error is a sentence and the story.
pub(crate) fn play(config: &AgentConfig, limits: Limits, steps: &[Step]) -> Result<(), String> {
    let mut world = World::new(checked(config, limits), limits);
    world.is_bounded = matches!(config.name(), "snoop" | "snoop-nosuppress");
    world.play(steps).map_err(|error| {
        format!("{} {}: {error}\n{}", config.name(), config.settings(), world.story.join("\n"))
    })
}

struct World {
    agent: Forwarder,
    limits: Limits,
    now: Instant,
    arrivals: u16,
    open: HashMap<Port, bool>,
    /// Packets that must still leave, and to which side.
    owed: Vec<(Port, Packet)>,
    /// Packets that may still leave: a queue dropped them, or an ACK of the agent.
    perhaps: Vec<(Port, Packet)>,
    /// Everything that ever came in, and to which side it leaves.
    seen: Vec<(Port, Packet)>,
    /// Flow and number of each ACK that the mobile sent.
    acks: HashSet<(u16, u32)>,
    repeated_acks: u32,
    /// Suppressed ACKs until they are forwarded; and the number of those to be forwarded.
    suppressed: Vec<Packet>,
    forwarded_loss_signals: u32,
    /// Retransmissions that were withheld since a repair was under way, until they are reported
    /// [C-29].
    duplicates: Vec<Packet>,
    /// The negative acknowledgments to the mobile that are announced, and the reported data that is
    /// sent on again [S0-40].
    negative_acks: usize,
    resends: usize,
    /// A rule that the agent has broken.
    broken: Option<String>,
    /// Since when the sender of each flow waits for a suppressed ACK, if the wired side takes
    /// packets.
    withheld: HashMap<u16, Instant>,
    /// Segments of data that came in, repairs, and the flows that had any data.
    segments: u32,
    repairs: u32,
    flows: HashSet<u16>,
    /// Whether the agent bounds its repairs and the hold of ACKs, as the papers' agents do not.
    is_bounded: bool,
    story: Vec<String>,
}

impl World {
    fn new(agent: Forwarder, limits: Limits) -> Self {
        Self {
            agent,
            limits,
            now: Instant::ZERO,
            arrivals: 0,
            open: HashMap::from([(Port::Air, true), (Port::Wired, true)]),
            owed: Vec::new(),
            perhaps: Vec::new(),
            seen: Vec::new(),
            acks: HashSet::new(),
            repeated_acks: 0,
            suppressed: Vec::new(),
            forwarded_loss_signals: 0,
            duplicates: Vec::new(),
            negative_acks: 0,
            resends: 0,
            broken: None,
            withheld: HashMap::new(),
            segments: 0,
            repairs: 0,
            flows: HashSet::new(),
            is_bounded: false,
            story: Vec::new(),
        }
    }

    fn play(&mut self, steps: &[Step]) -> Result<(), String> {
        for step in steps {
            self.step(step)?;
            if let Some(broken) = self.broken.take() {
                return Err(broken);
            }
        }
        for side in Port::BOTH {
            self.step(&Step::CanSend(side, true))?;
        }
        if let Some((side, packet)) = self.owed.first() {
            let packet = show(packet);
            return Err(format!("never left to {side:?}, and no event says why: {packet}"));
        }
        self.step(&Step::Wait(REST))?;
        match (self.agent.poll_timeout(), self.agent.load()) {
            (None, Load { flows: 0, cache_bytes: 0, cache_packets: 0 }) => Ok(()),
            (timer, load) => Err(format!("at rest: timer {timer:?}, {load:?}")),
        }
    }

    fn step(&mut self, step: &Step) -> Result<(), String> {
        self.arrivals += 1;
        match step {
            Step::Wait(time) => self.wait(self.now + *time),
            Step::CanSend(side, can_send) => {
                self.open.insert(*side, *can_send);
                self.withheld.clear();
                self.transmit()
            }
            Step::Tcp(tcp) => self.arrive(tcp.sender, tcp.packet(self.arrivals)),
            Step::Foreign(side, kind, len) => self.arrive(*side, kind.packet(self.arrivals, *len)),
            Step::Bytes(side, link_type, bytes) => {
                self.arrive(*side, Packet::new(*link_type, bytes.clone().into()))
            }
        }
    }

    fn arrive(&mut self, from: Port, packet: Packet) -> Result<(), String> {
        self.log(&format!("{from:?} < {}", show(&packet)));
        let tcp = Tcp::read(&packet);
        let is_new_ack = match &tcp {
            Some(tcp) if from == Port::Air => {
                tcp.ack.is_some_and(|ack| self.acks.insert((tcp.flow, ack)))
            }
            _ => false,
        };
        let to = from.opposite();
        if let Some(tcp) = tcp.as_ref().filter(|tcp| from == Port::Wired && tcp.len > 0) {
            self.flows.insert(tcp.flow);
            self.segments += tcp.segment_size.map_or(1, |size| tcp.len.div_ceil(size.get()).into());
        }
        let was_seen = tcp.as_ref().is_some_and(|tcp| self.has_all_of(to, tcp));
        self.seen.push((to, packet.clone()));
        self.agent.handle_packet(self.now, from, packet.clone());
        let events = self.events();
        if events.iter().any(|event| matches!(event, Event::DupAckSuppressed(..))) {
            let news = Flags::SYN.union(Flags::FIN).union(Flags::RST).union(Flags::URG);
            if let Some(tcp) = tcp.as_ref().filter(|_| self.open.get(&to) == Some(&true)) {
                self.withheld.entry(tcp.flow).or_insert(self.now);
            }
            let says_more = |tcp: Tcp| tcp.len > 0 || tcp.flags.intersects(news);
            if is_new_ack || tcp.is_none_or(says_more) {
                return Err(format!("suppressed with further information: {}", show(&packet)));
            }
            self.suppressed.push(packet);
        } else if events.iter().any(|event| is_own(event, "withheld_duplicates")) {
            if from != Port::Wired || !was_seen {
                return Err(format!("no duplicate: {}", show(&packet)));
            }
            self.duplicates.push(packet);
        } else if events.iter().any(|event| matches!(event, Event::EgressDropped(_))) {
            self.perhaps.push((to, packet));
        } else if !events.iter().any(|event| match event {
            Event::DataDiscarded(..) => from == Port::Wired && self.is_acknowledged(tcp.as_ref()),
            Event::SpuriousAckDropped(..) | Event::AckRepeated(..) => true,
            event if is_own(event, "consumed_negative_acks") => {
                from == Port::Air && tcp.as_ref().is_some_and(|tcp| tcp.dscp == NEGATIVE_ACK)
            }
            _ => false,
        }) {
            self.owed.push((to, packet));
        }
        let repeated = |event: &&Event| matches!(event, Event::AckRepeated(..));
        self.repeated_acks += events.iter().filter(repeated).count() as u32;
        self.transmit()
    }

    /// Whether all data of this segment came in before.
    fn has_all_of(&self, to: Port, tcp: &Tcp) -> bool {
        let seen: Vec<Tcp> = self
            .seen
            .iter()
            .filter(|(port, _)| *port == to)
            .filter_map(|(_, seen)| Tcp::read(seen))
            .filter(|seen| seen.flow == tcp.flow && seen.ipv6 == tcp.ipv6)
            .collect();
        (0..u32::from(tcp.len)).all(|offset| {
            let at = tcp.seq.wrapping_add(offset);
            seen.iter().any(|seen| at.wrapping_sub(seen.seq) < u32::from(seen.len))
        })
    }

    /// [C-29] Whether the packet reports a duplicate that was withheld; each is reported once.
    fn takes_report(&mut self, packet: &Packet) -> bool {
        let acks = || self.seen.iter().filter(|(to, _)| *to == Port::Wired);
        let is_reported =
            |duplicate: &Packet| acks().any(|(_, ack)| is_duplicate_report(packet, ack, duplicate));
        let index = self.duplicates.iter().position(is_reported);
        index.map(|index| self.duplicates.swap_remove(index)).is_some()
    }

    /// [S0-40] Whether the packet is a negative acknowledgment that was announced, or data of the
    /// mobile that is sent on again.
    fn takes_announced(&mut self, to: Port, packet: &Packet) -> bool {
        let mut seen = self.seen.iter().filter(|(port, _)| *port == to);
        let (announced, is_right) = match to {
            Port::Air => {
                (&mut self.negative_acks, seen.any(|(_, seen)| is_negative_ack(packet, seen)))
            }
            Port::Wired => {
                let is_again =
                    |seen: &Packet| seen == packet || self.is_bounded && is_restored(packet, seen);
                (&mut self.resends, seen.any(|(_, seen)| is_again(seen)))
            }
        };
        let is_announced = is_right && *announced > 0;
        *announced -= usize::from(is_announced);
        is_announced
    }

    /// Whether the mobile has acknowledged all of this segment.
    fn is_acknowledged(&self, tcp: Option<&Tcp>) -> bool {
        let Some(tcp) = tcp else { return false };
        let fin = u32::from(tcp.flags.intersects(Flags::FIN));
        let end = tcp.seq.wrapping_add(u32::from(tcp.len)).wrapping_add(fin);
        let above = |ack: u32| ack.wrapping_sub(end) < 1 << 30;
        self.acks.iter().any(|(flow, ack)| *flow == tcp.flow && above(*ack))
    }

    /// Goes through every deadline until `end`.
    fn wait(&mut self, end: Instant) -> Result<(), String> {
        while let Some(deadline) = self.agent.poll_timeout().filter(|due| due.at <= end) {
            self.now = self.now.max(deadline.at);
            self.agent.handle_timeout(self.now);
            if self.agent.poll_timeout().is_some_and(|next| next.at <= self.now) {
                return Err(format!("`{}` is due again at once at {}", deadline.why, self.now));
            }
            self.transmit()?;
            self.check_holds()?;
        }
        self.now = end;
        self.check_holds()?;
        // A spurious call is a no-op.
        self.agent.handle_timeout(self.now);
        self.transmit()
    }

    /// [C-25] No ACK is withheld for longer than the longest hold budget.
    fn check_holds(&self) -> Result<(), String> {
        let limit = |since: &&Instant| self.now.since(**since) > HOLD_LIMIT;
        match self.withheld.values().find(limit) {
            Some(since) if self.is_bounded => Err(format!("an ACK is withheld since {since}")),
            _ => Ok(()),
        }
    }

    fn transmit(&mut self) -> Result<(), String> {
        self.events();
        for side in Port::BOTH {
            while self.open.get(&side) == Some(&true) {
                let Some(packet) = self.agent.poll_transmit(self.now, side) else { break };
                let events = self.events();
                self.log(&format!("{side:?} > {}", show(&packet)));
                self.check_transmission(side, packet, &events)?;
            }
        }
        let load = self.agent.load();
        if load.flows > self.limits.flows || load.cache_bytes > self.limits.cache_bytes {
            return Err(format!("beyond the limits: {load:?}"));
        }
        Ok(())
    }

    /// A packet leaves because it came in, because it is retransmitted, or as a repeated ACK.
    fn check_transmission(
        &mut self,
        to: Port,
        packet: Packet,
        events: &[Event],
    ) -> Result<(), String> {
        let key = (to, packet);
        let tcp = Tcp::read(&key.1);
        if let Some(tcp) = tcp.as_ref().filter(|_| to == Port::Wired) {
            self.withheld.remove(&tcp.flow);
        }
        if to == Port::Wired
            && let Some((flow, ack)) = tcp.as_ref().and_then(|tcp| Some((tcp.flow, tcp.ack?)))
            && !self.acks.contains(&(flow, ack))
        {
            return Err(format!("the mobile never sent ACK {ack} of flow {flow}"));
        }
        if events.iter().any(|event| matches!(event, Event::LocalRetransmit { .. })) {
            let known = |(to, seen): &(Port, Packet)| *to == Port::Air && is_part(&key.1, seen);
            let known = self.seen.contains(&key) || self.seen.iter().any(known);
            let right = known && to == Port::Air;
            self.repairs += 1;
            // [C-23] What no delivery has earned, and what can have been delivered.
            let bound = UNEARNED * self.flows.len() as u32 + self.segments;
            if self.is_bounded && self.repairs > bound {
                return Err(format!("{} repairs, the bound is {bound}", self.repairs));
            }
            return if right { Ok(()) } else { Err("retransmits what never came in".into()) };
        }
        if events.iter().any(|event| matches!(event, Event::HandshakeRepeated { .. })) {
            let known = self.seen.contains(&key);
            return if known { Ok(()) } else { Err("repeats a SYN that never came in".into()) };
        }
        let edited = |(side, owed): &(Port, Packet)| match side {
            Port::Wired => is_stripped(&key.1, owed),
            Port::Air => is_marked(&key.1, owed),
        };
        for packets in [&mut self.owed, &mut self.perhaps] {
            let same = packets.iter().position(|packet| *packet == key);
            let index =
                same.or_else(|| packets.iter().position(|owed| owed.0 == to && edited(owed)));
            if let Some(index) = index {
                packets.remove(index);
                return Ok(());
            }
        }
        let restored = |owed: &(Port, Packet)| owed.0 == to && is_restored(&key.1, &owed.1);
        if self.is_bounded
            && let Some(index) = self.owed.iter().position(restored)
        {
            self.owed.remove(index);
            return Ok(());
        }
        let is_report = to == Port::Wired && self.takes_report(&key.1);
        if is_report || self.takes_announced(to, &key.1) {
            return Ok(());
        }
        let is_forwarded = |packet: &Packet| *packet == key.1 || is_stripped(&key.1, packet);
        if self.forwarded_loss_signals > 0 && self.suppressed.iter().any(is_forwarded) {
            self.forwarded_loss_signals -= 1;
            return Ok(());
        }
        if to == Port::Wired && self.repeated_acks > 0 && self.can_be_repeated(&key) {
            self.repeated_acks -= 1;
            return Ok(());
        }
        Err(format!("left to {to:?}, and no event says why: {}", show(&key.1)))
    }

    /// Whether this is an ACK by itself, or a signed one as it came: that one cannot be edited.
    fn can_be_repeated(&self, key: &(Port, Packet)) -> bool {
        let control = Flags::SYN.union(Flags::FIN).union(Flags::RST);
        let is_bare = |tcp: Tcp| tcp.len == 0 && !tcp.flags.intersects(control);
        let is_signed = |segment: Segment| segment.options.signed;
        Tcp::read(&key.1).is_some_and(is_bare)
            || Segment::parse(&key.1).is_ok_and(is_signed) && self.seen.contains(key)
    }

    fn events(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(event) = self.agent.poll_event() {
            self.log(&event.to_string());
            self.forwarded_loss_signals +=
                u32::from(matches!(event, Event::LossSignalForwarded(..)));
            self.negative_acks += usize::from(is_own(&event, "negative_acks"));
            self.resends += usize::from(is_own(&event, "resent_reported_data"));
            if let Event::RuleBroken(rule) = event {
                self.broken.get_or_insert(rule.to_string());
            }
            events.push(event);
        }
        events
    }

    fn log(&mut self, what: &str) {
        // Enough to see how it came about.
        if self.story.len() == 200 {
            self.story.remove(0);
        }
        self.story.push(format!("  {} {what}", self.now));
    }
}

fn is_own(event: &Event, counter: &str) -> bool {
    matches!(event, Event::Own(own) if own.counter == counter)
}

fn show(packet: &Packet) -> String {
    let Some(tcp) = Tcp::read(packet) else {
        let shown = packet.bytes().len().min(24);
        return format!("{} bytes: {:02x?}", packet.bytes().len(), &packet.bytes()[..shown]);
    };
    let Tcp { flow, seq, len, ack, flags, window, .. } = tcp;
    format!("flow {flow}: {seq}({len}) ack {ack:?} flags {:#x} window {window}", flags.0)
}
