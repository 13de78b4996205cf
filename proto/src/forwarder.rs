//! An agent with the queues in front of its ports, and the one loop that knows the polling order.
//!
//! Every agent has the same queues, passthrough included, so that a comparison measures the
//! protocol and not the buffer. A packet that the queue refuses is congestion: it never departs, is
//! therefore not cached, and stays visible to TCP. Beyond half of its limit the queue towards the
//! air marks what is ECN-capable (RFC 3168 §5).

use crate::agent::{Agent, Deadline, LinkSignal, Load, PathView, Port, Restoration, Verdict};
use crate::agents::link_protocol::LinkProtocol;
use crate::event::Event;
use crate::invariants::Checker;
use crate::packet::Packet;
use crate::time::Instant;
use crate::wire::edit::mark_congestion;
use crate::wire::flow::FlowKey;
use crate::wire::ip::Network;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::time::Duration;

/// The limits of the egress queues in front of the ports, in packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EgressLimits {
    /// The limit of the queue towards the air.
    pub air: usize,
    /// The limit of the queue towards the wired side.
    pub wired: usize,
}

/// The outputs of a runner: virtual links, emulated links or real devices.
pub trait Ports {
    /// Whether `port` can take a packet at once.
    fn can_send(&self, now: Instant, port: Port) -> bool;

    /// Takes a packet for `port`.
    fn send(&mut self, now: Instant, port: Port, packet: Packet);
}

/// An agent with the egress queues of its ports.
pub struct Forwarder<A: ?Sized = dyn Agent + Send> {
    air: Queue,
    wired: Queue,
    /// Events of the queues; events of the agent are reported first.
    events: VecDeque<Event>,
    /// The checker of the invariants, if they are checked.
    checker: Option<Box<Checker>>,
    priority: PriorityClass,
    agent: Box<A>,
}

/// The treatment of packets that the agent originates in the priority class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PriorityClass {
    /// They depart before all queued packets: they stay in the agent until the port can take one.
    First,
    /// The port has one class: they wait behind all queued packets.
    Absent,
    /// They go to a queue of the kernel, and [`Forwarder::confirm_copy`] reports their departure.
    Kernel,
}

/// The normal class of one port.
#[derive(Debug)]
struct Queue {
    packets: VecDeque<Queued>,
    limit: usize,
}

#[derive(Debug)]
struct Queued {
    /// The packet as it arrived: the agent caches its original ECN codepoint [C-14].
    packet: Packet,
    /// The marked packet that is sent in its place, if the queue was at least half full.
    marked: Option<Box<Packet>>,
    source: Source,
}

/// The source of a queued packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// A host; the verdict of the agent was to forward the packet.
    Host,
    /// A host; the packet was not shown to the agent.
    Unseen,
    /// The agent.
    Agent,
}

impl<A: Agent + ?Sized> Forwarder<A> {
    /// An agent with empty queues.
    pub fn new(agent: Box<A>, limits: EgressLimits) -> Self {
        Self {
            air: Queue { packets: VecDeque::new(), limit: limits.air },
            wired: Queue { packets: VecDeque::new(), limit: limits.wired },
            events: VecDeque::new(),
            checker: None,
            priority: PriorityClass::First,
            agent,
        }
    }

    /// The same with another treatment of the priority class.
    #[must_use]
    pub fn with_priority_class(self, priority: PriorityClass) -> Self {
        Self { priority, ..self }
    }

    /// An agent with empty queues whose packets are checked against the [`crate::invariants`]; a
    /// broken rule is an [`Event::RuleBroken`]. `link` is set for one end of a link protocol.
    pub fn checked(agent: Box<A>, limits: EgressLimits, link: Option<&LinkProtocol>) -> Self {
        let checker = Some(Box::new(Checker::new(link, agent.repair_credit())));
        Self { checker, ..Self::new(agent, limits) }
    }

    /// Puts another agent in the place of the agent, which returns. What the old one withholds is
    /// forwarded first, and what waits in the queues goes on as if hosts had sent it.
    pub fn replace_agent(&mut self, now: Instant, agent: Box<A>) -> Box<A> {
        self.handle_link(now, LinkSignal::Stop);
        while let Some(event) = self.agent.poll_event() {
            self.events.push_back(event);
        }
        for queued in self.air.packets.iter_mut().chain(&mut self.wired.packets) {
            if queued.source == Source::Agent {
                queued.source = Source::Host;
            }
        }
        if let Some(checker) = &mut self.checker {
            checker.agent_replaced(agent.repair_credit());
        }
        core::mem::replace(&mut self.agent, agent)
    }

    /// Takes a packet that arrived at `from`, and queues what the agent's verdict forwards.
    pub fn handle_packet(&mut self, now: Instant, from: Port, packet: Packet) {
        self.check_arrival(from, &packet);
        match self.agent.handle_packet(now, from, &packet) {
            Verdict::Pass => self.enqueue(from.opposite(), packet, Source::Host),
            Verdict::Withhold => {}
            Verdict::Replace(packet) => self.enqueue(from.opposite(), packet, Source::Host),
        }
        self.enqueue_originated(now);
    }

    /// Queues a packet that arrived at `from` without showing it to the agent.
    pub fn forward_unseen(&mut self, from: Port, packet: Packet) {
        self.check_arrival(from, &packet);
        self.enqueue(from.opposite(), packet, Source::Unseen);
    }

    /// Shows the agent a copy of a packet that the kernel has forwarded already.
    pub fn handle_copy(&mut self, now: Instant, from: Port, packet: &Packet) {
        self.check_arrival(from, packet);
        self.agent.handle_copy(now, from, packet);
        self.enqueue_originated(now);
    }

    /// Reports the departure of a packet that the agent originated and the kernel queued.
    pub fn confirm_copy(&mut self, now: Instant, to: Port, packet: &Packet) {
        let _too_late = self.agent.confirm_departure(now, to, packet);
    }

    /// The timestamp of the original for what the sender resends of a repair's data: see
    /// [`Agent::restoration`].
    pub fn restoration(&self, repair: &Packet) -> Option<Restoration> {
        self.agent.restoration(repair)
    }

    /// Shows the agent a frame that arrived from the air damaged.
    pub fn handle_damaged(&mut self, now: Instant, frame: &Packet) {
        self.agent.handle_damaged(now, frame);
        self.enqueue_originated(now);
    }

    /// Lets the agent act on expired timers.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.agent.handle_timeout(now);
        self.enqueue_originated(now);
    }

    /// Passes a signal to the agent. What waits for a mobile host that has left is dropped: its new
    /// station has it, and here it would only take airtime and begin the state of its flows anew.
    pub fn handle_link(&mut self, now: Instant, signal: LinkSignal) {
        if let LinkSignal::MobileLeft(mobile) = &signal {
            let is_for =
                |packet: &Packet| Network::walk(packet).is_ok_and(|ip| ip.destination == *mobile);
            self.air.packets.retain(|queued| !is_for(&queued.packet));
        }
        self.agent.handle_link(now, signal);
        self.enqueue_originated(now);
    }

    /// The next packet for `to`, which departs with this call: the priority class first.
    #[must_use]
    pub fn poll_transmit(&mut self, now: Instant, to: Port) -> Option<Packet> {
        let packet = self.next_packet(now, to)?;
        if let Some(checker) = &mut self.checker {
            self.events.extend(checker.leaves(to, &packet).err().map(Event::RuleBroken));
        }
        Some(packet)
    }

    #[inline]
    fn next_packet(&mut self, now: Instant, to: Port) -> Option<Packet> {
        if self.priority != PriorityClass::Absent {
            while let Some(packet) = self.agent.poll_transmit(now, to) {
                let waits = self.priority == PriorityClass::Kernel;
                if waits || self.agent.confirm_departure(now, to, &packet) {
                    self.check_originated(to, &packet);
                    return Some(packet);
                }
            }
        }
        loop {
            let Queued { packet, marked, source } = self.queue(to).packets.pop_front()?;
            match source {
                Source::Host => self.agent.handle_departure(now, to, &packet),
                Source::Unseen => {}
                Source::Agent if self.agent.confirm_departure(now, to, &packet) => {
                    self.check_originated(to, &packet);
                }
                Source::Agent => continue,
            }
            return Some(marked.map_or(packet, |marked| *marked));
        }
    }

    /// The agent's next deadline.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Deadline> {
        self.agent.poll_timeout()
    }

    /// The next event of the agent, then of the queues.
    #[must_use]
    pub fn poll_event(&mut self) -> Option<Event> {
        self.agent.poll_event().or_else(|| self.events.pop_front())
    }

    /// The round trip of the air hop that the agent has measured for a flow.
    pub fn air_round_trip(&self, flow: &FlowKey) -> Option<Duration> {
        self.agent.air_round_trip(flow)
    }

    /// Another limit of cached packets, in bytes: see [`Agent::limit_cache`].
    pub fn limit_cache(&mut self, bytes: usize) {
        self.agent.limit_cache(bytes);
    }

    /// What the agent knows of the path to the other end.
    pub fn path(&self) -> Option<PathView> {
        self.agent.path()
    }

    /// The memory that the agent uses.
    pub fn load(&self) -> Load {
        self.agent.load()
    }

    /// The flows whose data passes and whose acknowledgments do not: see [`Agent::unanswered`].
    pub fn unanswered(&self) -> usize {
        self.agent.unanswered()
    }

    fn check_arrival(&mut self, from: Port, packet: &Packet) {
        if let Some(checker) = &mut self.checker {
            checker.enters(from, packet);
        }
    }

    fn check_originated(&mut self, to: Port, packet: &Packet) {
        if let Some(checker) = &mut self.checker {
            self.events.extend(checker.originates(to, packet).err().map(Event::RuleBroken));
        }
    }

    fn enqueue_originated(&mut self, now: Instant) {
        while let Some((to, packet)) = self.agent.poll_enqueue() {
            self.enqueue(to, packet, Source::Agent);
        }
        if self.priority != PriorityClass::Absent {
            return;
        }
        for to in Port::BOTH {
            while let Some(packet) = self.agent.poll_transmit(now, to) {
                self.enqueue(to, packet, Source::Agent);
            }
        }
    }

    #[inline]
    fn enqueue(&mut self, to: Port, packet: Packet, source: Source) {
        let queue = self.queue(to);
        let waiting = queue.packets.len();
        if waiting >= queue.limit {
            self.events.push_back(Event::EgressDropped(to));
            return;
        }
        let mut marked = None;
        if to == Port::Air && source != Source::Agent && waiting >= queue.limit.div_ceil(2) {
            marked = mark_congestion(&packet).map(Box::new);
        }
        let is_marked = marked.is_some();
        queue.packets.push_back(Queued { packet, marked, source });
        if is_marked {
            self.events.push_back(Event::CongestionMarked);
        }
    }

    fn queue(&mut self, port: Port) -> &mut Queue {
        match port {
            Port::Air => &mut self.air,
            Port::Wired => &mut self.wired,
        }
    }
}

/// Runs expired timers, sends packets while the ports can take them, and reports events; returns
/// the next deadline. Only this function knows the polling order.
///
/// Events polled before the first transmission belong to the packet last handed in, or to a timer;
/// events polled between two transmissions belong to the packet about to be sent. A recorder can
/// therefore state for each packet what the agent did with it.
pub fn drain<A: Agent + ?Sized>(
    forwarder: &mut Forwarder<A>,
    now: Instant,
    ports: &mut dyn Ports,
    on_event: &mut dyn FnMut(Event),
) -> Option<Deadline> {
    if forwarder.poll_timeout().is_some_and(|deadline| deadline.at <= now) {
        forwarder.handle_timeout(now);
    }
    let mut report = |forwarder: &mut Forwarder<A>| {
        while let Some(event) = forwarder.poll_event() {
            on_event(event);
        }
    };
    report(forwarder);
    for port in Port::BOTH {
        while ports.can_send(now, port) {
            let Some(packet) = forwarder.poll_transmit(now, port) else { break };
            report(forwarder);
            ports.send(now, port, packet);
        }
    }
    report(forwarder);
    forwarder.poll_timeout()
}
