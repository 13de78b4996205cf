//! Local Acknowledgment: two base stations mend the losses of the radio link between them, for all
//! connections that cross it [lack].
//!
//! One [`Lack`] is one station. Its wired side is the network behind it and carries IP packets or
//! Ethernet frames, its air side is the link and carries LACK frames, whose format is in
//! `docs/wire-lack.md`. Each station plays both parts of the paper: for what it sends BS1 with
//! `packet_monitor_module`, `ack_monitor_module` and the packet pool, for what it receives BS2 with
//! `packet_check_module` and the packet buffer (S1-01, S1-02).
//!
//! The paper's *local packet serial number* is a packet's sequence number here; serial numbers
//! count transmissions.

mod ack_monitor;
pub mod frame;
mod monitor;
mod packet_check;
mod protocol;
mod settings;

pub use super::arq::{Class, Order, Rules};
pub use protocol::PROTOCOL;
pub use settings::Settings;

use super::arq::{
    Due, Epochs, LinkEvent, MAX_WINDOW, Malformed, Numbered, Pace, Queue, Queued, Resequencer, View,
};
use super::limits::Limits;
use crate::agent::{Agent, Deadline, LinkSignal, PathView, Port, Timer, Verdict};
use crate::event::Event;
use crate::packet::{LinkType, Packet};
use crate::time::Instant;
use ack_monitor::AckMonitor;
use alloc::collections::VecDeque;
use core::time::Duration;
use frame::{Frame, FrameKind};
use monitor::{Monitor, News};
use packet_check::PacketCheck;

/// The end of the time for which a local ACK waits for a packet to travel with.
const ACK_TIMER: Timer = Timer::new("lack-ack");
/// The local timeout: no local ACK came within the maximal response time [lack §3.2 S1-15].
const RESPONSE_TIMER: Timer = Timer::new("lack-response");
/// No local ACK came for as long of what is sent once.
const LIMIT_TIMER: Timer = Timer::new("lack-limit");
/// The next hello frame, which asks for the epoch of the other end.
const HELLO_TIMER: Timer = Timer::new("lack-hello");

/// One station of a LACK link.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Lack {
    settings: Settings,
    epochs: Epochs,
    /// A hello frame is due that answers one, or a frame of another run.
    answer: bool,
    monitor: Monitor,
    queue: Queue,
    hash_seed: u64,
    /// Packets that a host sent again, and that are not in the pool: they go first. In a fair queue
    /// they go first in their flow, or a host could send nothing else, and nobody else anything.
    urgent: VecDeque<Queued>,
    /// The most packets in `urgent`.
    max_urgent: usize,
    sender: AckMonitor,
    receiver: PacketCheck,
    pace: Pace,
    /// The number of times in a row that a local timeout expired.
    unanswered: u32,
    /// Half duplex: the frame that the link holds, and the one that it returned.
    held: Option<Packet>,
    returned: Option<Packet>,
    events: VecDeque<Event>,
}

impl Lack {
    /// One station. `seed` is a random number that others do not know: flows are distinguished
    /// by it, and the other station detects by it that this one has restarted.
    pub fn new(limits: Limits, settings: Settings, seed: u64) -> Self {
        let buffer = Resequencer::new(limits.cache_bytes, limits.egress.wired, MAX_WINDOW);
        Self {
            epochs: Epochs::new(seed),
            answer: false,
            monitor: Monitor::new(limits.flows),
            queue: Queue::new(settings.fair_queue, limits.egress.air, limits.cache_bytes),
            urgent: VecDeque::new(),
            max_urgent: limits.egress.air,
            sender: AckMonitor::new(settings.gap_eack > 0),
            receiver: PacketCheck::new(buffer),
            pace: Pace::new(settings.adaptive, settings.response_time, settings.ack_delay),
            unanswered: 0,
            held: None,
            returned: None,
            events: VecDeque::new(),
            hash_seed: seed,
            settings,
        }
    }

    /// The number of packets that wait for the link, and of packets in the pool.
    pub fn backlog(&self) -> (usize, u32) {
        (self.queue.len() + self.urgent.len(), self.sender.pool.span())
    }

    /// Bytes of packets that have arrived and wait for packets before them, or for the network
    /// layer.
    pub fn held_bytes(&self) -> usize {
        self.receiver.buffer.bytes()
    }

    fn report(&mut self, event: LinkEvent) {
        self.events.push_back(event.into());
    }

    /// Takes a packet of the network layer: `packet_monitor_module`.
    fn enqueue(&mut self, now: Instant, packet: &Packet) {
        if packet.link_type() == LinkType::Frame || packet.wire_len() > u32::from(u16::MAX) {
            return self.report(LinkEvent::TooLong(packet.wire_len()));
        }
        let view = View::of(packet, self.hash_seed);
        let class = self.settings.classes.class(&view);
        let mut queued = Queued::new(packet.clone(), class, view.flow);
        queued.identity = Monitor::identity(&view);
        let news = self.monitor.judge(&view);
        if let News::OutOfSequence { from, to } = news {
            self.report(LinkEvent::LostBefore(from, to));
        }
        let more = if self.settings.burst_places { self.pace.burst() } else { 0 };
        let is_taken = match news {
            News::Duplicate if class != Class::Unreliable => self.enqueue_duplicate(now, queued),
            _ => self.queue.push(now, queued, more),
        };
        if !is_taken {
            self.events.push_back(Event::EgressDropped(Port::Air));
        }
        self.epochs.keep_asking();
    }

    /// Takes a packet that the host has sent before [S1-12]. While the old copy is unacknowledged,
    /// the new one takes its place and its number. Otherwise the old copy has crossed the link and
    /// was lost behind it, or was lost before this station: the packet gets a new number, since the
    /// other station would drop the old one [S1-A5]. False if there is no room for it.
    fn enqueue_duplicate(&mut self, now: Instant, queued: Queued) -> bool {
        self.report(LinkEvent::SenderDuplicate);
        let Queued { identity, packet, .. } = &queued;
        if self.sender.replace(*identity, packet, self.settings.resend_duplicates)
            || self.queue.replace(*identity, packet)
        {
            return true;
        }
        if self.settings.fair_queue {
            return self.queue.push_first(now, queued);
        }
        if let Some(waiting) = self.urgent.iter_mut().find(|waiting| waiting.identity == *identity)
        {
            waiting.packet = queued.packet;
            return true;
        }
        let has_room = self.urgent.len() < self.max_urgent;
        if has_room {
            self.urgent.push_back(queued);
        }
        has_room
    }

    /// Processes a frame of the link.
    fn handle_frame(&mut self, now: Instant, packet: &Packet) {
        if packet.link_type() != LinkType::Frame {
            return self.report(LinkEvent::Malformed(Malformed::Version));
        }
        let frame = match Frame::parse(packet) {
            Ok(frame) => frame,
            Err(why) => return self.report(LinkEvent::Malformed(why)),
        };
        if frame.kind == FrameKind::Hello {
            return self.handle_hello(now, &frame);
        }
        if !self.is_of_this_run(&frame) {
            return;
        }
        if let Some(ack) = &frame.ack {
            self.handle_ack(now, ack);
        }
        let Frame { kind, serial, seq, after, payload, .. } = frame;
        let (receiver, settings) = (&mut self.receiver, &self.settings);
        let result = match (kind, payload) {
            (FrameKind::Packet | FrameKind::Skip, packet) => {
                receiver.packet(now, (serial, seq, after.unwrap_or(1)), packet, settings)
            }
            (FrameKind::Once, Some(packet)) => {
                receiver.once(now, (serial, seq, after.unwrap_or(0)), packet, settings)
            }
            (FrameKind::Once | FrameKind::Ack | FrameKind::Hello, _) => Ok(()),
        };
        if let Err(event) = result {
            self.report(event);
        }
    }

    /// Whether a frame is from the present run of the other end, for the present run of this end.
    /// Any other frame is answered by a hello frame.
    fn is_of_this_run(&mut self, frame: &Frame) -> bool {
        let peer = self.epochs.peer();
        let is_it = peer.is_some_and(|peer| frame.run == frame::run(peer, self.epochs.own()));
        if !is_it {
            self.report(LinkEvent::Stale);
            self.answer = true;
        }
        is_it
    }

    fn handle_hello(&mut self, now: Instant, frame: &Frame) {
        let events = &mut self.events;
        let mut report = |event: LinkEvent| events.push_back(event.into());
        let judgement = self.epochs.judge(now, (frame.from, frame.to), &mut report);
        if let Some(sample) = judgement.round_trip {
            self.pace.round_trip(now, sample);
        }
        if judgement.is_restart {
            self.receiver.restart();
            self.queue.put_back(now, self.sender.restart());
            self.pace.restart();
            self.unanswered = 0;
        }
        self.answer |= !judgement.is_current;
    }

    /// Processes a local ACK: `ack_monitor_module`.
    fn handle_ack(&mut self, now: Instant, ack: &frame::Ack) {
        let summary = match self.sender.acknowledge(now, ack) {
            Ok(summary) => summary,
            Err(event) => return self.report(event),
        };
        if let Some(sample) = summary.round_trip {
            self.pace.round_trip(now, sample);
            self.report(LinkEvent::RoundTrip(sample));
        }
        for _ in 0..summary.eacks {
            self.report(LinkEvent::Eack);
        }
        if summary.is_fresh {
            self.unanswered = 0;
        }
        let (pool, heard) = (&self.sender.pool, self.sender.heard());
        let arrived = if self.settings.fair_queue { self.sender.arrived() } else { pool.arrived() };
        self.pace.acknowledged(now, arrived, heard, pool.serial());
    }

    /// The maximal response time: of the settings, or the measured one with some time for a frame
    /// that the other end is sending.
    fn wait(&self) -> Duration {
        let wait = self.pace.wait(self.unanswered);
        if self.settings.adaptive { wait + wait / 4 + Duration::from_millis(1) } else { wait }
    }

    /// Whether the limit of packets in flight admits another one. Where flows share the queue, what
    /// is sent once is in flight too: a queue behind this station would not share.
    fn is_below_limit(&self) -> bool {
        self.sender.pool.outstanding().max(self.untold()) < self.pace.limit()
    }

    fn untold(&self) -> u32 {
        if self.settings.fair_queue { self.sender.untold() } else { 0 }
    }

    /// When the limit is lifted that is reached by what no local ACK has told of.
    fn limit_timer(&self) -> Option<Instant> {
        let waits = self.sender.pool.missing() > 0 || !self.queue.is_empty();
        let is_reached = waits && self.untold() >= self.pace.limit();
        is_reached.then(|| self.sender.untold_timer(self.wait()))
    }

    /// Whether the window and the limit of packets in flight admit another packet.
    fn has_room(&self) -> bool {
        self.sender.pool.span() < self.settings.window && self.is_below_limit()
    }

    /// The next frame for the link.
    fn next_frame(&mut self, now: Instant) -> Option<Frame> {
        let own = self.epochs.own();
        let packets_wait = !self.queue.is_empty() || !self.urgent.is_empty();
        let is_hello = self.epochs.take_hello(now, packets_wait);
        if is_hello || core::mem::take(&mut self.answer) {
            self.answer = false;
            return Some(Frame::hello(own, self.epochs.peer().unwrap_or(0)));
        }
        let run = frame::run(own, self.epochs.peer()?);
        let ack_is_due = self.receiver.ack_due() == Due::Now;
        if ack_is_due && !self.settings.ack_travels {
            return Some(self.bare_ack(now, run));
        }
        let Some(mut frame) = self.next_numbered(now, run) else {
            return ack_is_due.then(|| self.bare_ack(now, run));
        };
        if self.receiver.ack_due() != Due::Never && self.settings.travels_with(frame.wire_len()) {
            frame.ack = Some(self.receiver.ack(now, &self.settings));
        }
        Some(frame)
    }

    /// A local ACK alone.
    fn bare_ack(&mut self, now: Instant, run: u32) -> Frame {
        let ack = self.receiver.ack(now, &self.settings);
        self.report(LinkEvent::BareAck(ack.next));
        Frame { ack: Some(ack), ..Frame::bare(FrameKind::Ack, run) }
    }

    /// The next frame with a serial number, in this order: a retransmission, a packet that a host
    /// sent again, a queued packet [S1-12 S1-14 S1-15].
    fn next_numbered(&mut self, now: Instant, run: u32) -> Option<Frame> {
        let order = self.settings.order;
        if self.is_below_limit()
            && let Some((numbered, event, overdue)) = self.sender.resend_lost(now)
        {
            let Numbered { seq, transmissions, .. } = numbered;
            self.report(event.unwrap_or(LinkEvent::Retransmitted {
                seq,
                attempt: transmissions - 1,
                overdue,
            }));
            return Some(self.numbered_frame(run, numbered));
        }
        let has_room = self.has_room();
        let urgent = if has_room { self.urgent.pop_front() } else { None };
        let Some(queued) = urgent.or_else(|| self.next_queued(now, has_room)) else {
            return self.copy(now, run);
        };
        if queued.class != Class::Unreliable {
            let numbered = self.sender.pool.send(now, queued, order);
            let pool = &self.sender.pool;
            self.pace.note_span(now, pool.span(), pool.age(now));
            return Some(self.numbered_frame(run, numbered));
        }
        let (serial, seq, after) = self.sender.pool.send_once(queued.flow, order);
        let after = (after != 0).then_some(after);
        let payload = Some(queued.packet);
        Some(Frame { serial, seq, after, payload, ..Frame::bare(FrameKind::Once, run) })
    }

    /// Takes the next packet from the egress queue.
    fn next_queued(&mut self, now: Instant, has_room: bool) -> Option<Queued> {
        if self.settings.fair_queue && !self.is_below_limit() {
            return None;
        }
        let queued = self.queue.pop(now, has_room, self.pace.codel());
        self.events.extend(self.queue.take_events());
        queued
    }

    /// A packet in flight once more, if the settings say so.
    fn copy(&mut self, now: Instant, run: u32) -> Option<Frame> {
        let copies = self.settings.idle_copies && self.receiver.ack_due() != Due::Now;
        let numbered = self.sender.pool.copy_oldest(now, u32::from(copies))?;
        self.report(LinkEvent::Copied(numbered.seq));
        Some(self.numbered_frame(run, numbered))
    }

    fn numbered_frame(&self, run: u32, numbered: Numbered) -> Frame {
        let Numbered { serial, seq, after, packet, .. } = numbered;
        let kind = if packet.is_some() { FrameKind::Packet } else { FrameKind::Skip };
        let after = (self.settings.order == Order::Flow).then_some(after);
        Frame { serial, seq, after, payload: packet, ..Frame::bare(kind, run) }
    }
}

impl Agent for Lack {
    /// Withholds every packet: the agent originates frames, and the packets that frames carried.
    fn handle_packet(&mut self, now: Instant, from: Port, packet: &Packet) -> Verdict {
        match from {
            Port::Wired => self.enqueue(now, packet),
            Port::Air => self.handle_frame(now, packet),
        }
        Verdict::Withhold
    }

    /// A damaged frame is dropped; an EACK names it if its header is intact [S1-20].
    fn handle_damaged(&mut self, now: Instant, packet: &Packet) {
        self.report(LinkEvent::Damaged);
        let Ok(frame) = Frame::parse_damaged(packet.bytes()) else { return };
        let is_numbered =
            matches!(frame.kind, FrameKind::Packet | FrameKind::Once | FrameKind::Skip);
        if is_numbered && self.is_of_this_run(&frame) {
            self.receiver.damaged(now, frame.serial, &self.settings);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.epochs.expire(now);
        self.receiver.expire(now);
        self.sender.expire_untold(now, self.wait());
        if self.sender.expire(now, self.wait()) {
            self.unanswered += 1;
        }
    }

    fn handle_link(&mut self, _now: Instant, signal: LinkSignal) {
        match signal {
            // The frame that the link holds is as good as any: its local ACK says nothing of
            // frames after it.
            LinkSignal::Leaving => self.returned = self.held.take(),
            LinkSignal::Sent | LinkSignal::Idle => self.held = None,
            LinkSignal::ObservationGap(_)
            | LinkSignal::Stop
            | LinkSignal::MobileLeft(_)
            | LinkSignal::AirRoundTrip(_) => {}
        }
    }

    fn poll_transmit(&mut self, now: Instant, to: Port) -> Option<Packet> {
        match to {
            Port::Wired => self.receiver.buffer.pop(),
            Port::Air => {
                if let Some(returned) = self.returned.take() {
                    return Some(returned);
                }
                let frame = self.next_frame(now)?.emit();
                if self.settings.half_duplex {
                    self.held = Some(frame.clone());
                }
                Some(frame)
            }
        }
    }

    fn limit_cache(&mut self, bytes: usize) {
        self.receiver.buffer.limit_cache(bytes);
        self.queue.limit_cache(bytes);
    }

    fn path(&self) -> Option<PathView> {
        let (queued, in_flight) = self.backlog();
        let memory = self.held_bytes() + self.sender.pool.bytes() + self.queue.bytes();
        Some(PathView { queued, in_flight, memory, ..PathView::default() })
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        let timers = [
            (self.receiver.ack_due().timer(), ACK_TIMER),
            (self.sender.timer(self.wait()).map(|(at, _)| at), RESPONSE_TIMER),
            (self.limit_timer(), LIMIT_TIMER),
            (self.epochs.hello_timer(), HELLO_TIMER),
        ];
        let timers = timers.into_iter().filter_map(|(at, why)| Some(Deadline { at: at?, why }));
        timers.min_by_key(|deadline| deadline.at)
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }
}
