//! TULIP: the link repairs its own losses, below IP and without any knowledge of TCP
//! [tulip99 §III].
//!
//! One [`Tulip`] is one *end* of a link, with the state for one destination (S2-01): its wired side
//! is the network layer of this end and carries IP packets, its air side is the link and carries
//! TULIP frames, whose format is in `docs/wire-tulip.md`. The two ends of a link are two agents.
//! A station with several neighbours has one agent for each. The carrier of a frame (a radio's
//! address, an Ethernet header, a UDP socket) identifies the neighbour.

mod code;
pub mod compression;
mod control;
mod copies;
mod ecn;
pub mod frame;
mod half_duplex;
mod last_acks;
mod outgoing;
mod protocol;
mod receiver;
mod redundancy;
mod reordering;
mod report;
mod sender;
mod settings;
mod travel;
mod turn;
mod view;

pub use super::arq::{Class, Order, Rules};
pub use protocol::PROTOCOL;
pub use settings::Settings;

use super::arq::{
    Due, Epochs, LinkEvent, MAX_WINDOW, Malformed, Pace, Queue, Queued, RateControl, Resequencer,
    View,
};
use super::limits::Limits;
use crate::agent::{Agent, Deadline, LinkSignal, PathView, Port, Timer, Verdict};
use crate::event::Event;
use crate::packet::{LinkType, Packet};
use crate::rlc::Decoder;
use crate::time::Instant;
use crate::wire::seq::SeqNumber;
use alloc::collections::VecDeque;
use core::time::Duration;
use frame::{Frame, FrameKind};
use last_acks::LastAcks;
use receiver::Receiver;
use sender::Sender;
use turn::Turn;

/// The end of the time for which a link ACK waits for a packet to travel with [tulip99 §III].
const ACK_TIMER: Timer = Timer::new("tulip-ack");
/// The reply timeout: the last packets, or the answer to them, are lost [tulip99 §III].
const REPLY_TIMER: Timer = Timer::new("tulip-reply");
/// The next hello frame, which asks for the epoch of the other end.
const HELLO_TIMER: Timer = Timer::new("tulip-hello");
/// The time at which the rate control lets the next frame leave.
const DEPARTURE_TIMER: Timer = Timer::new("tulip-departure");
/// The end of a burst of packets, whose last ones no repair frame covers yet.
const PAUSE_TIMER: Timer = Timer::new("tulip-pause");

/// One end of a TULIP link.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tulip {
    settings: Settings,
    epochs: Epochs,
    queue: Queue,
    hash_seed: u64,
    sender: Sender,
    receiver: Receiver,
    decoder: Decoder,
    /// Link ACKs of this session that have travelled alone.
    alone: u32,
    pace: Pace,
    rate: RateControl,
    departure_due: Due,
    pause_due: Due,
    /// The last packet that needs a copy: its serial and its sequence number.
    brief: Option<(SeqNumber, SeqNumber)>,
    last_acks: LastAcks,
    turn: Turn,
    /// Half duplex: the frame that the link holds, and the frame that it returned.
    held: Option<Frame>,
    returned: Option<Frame>,
    /// Full duplex: the reply timeout. The number of reply timeouts in a row, in both modes.
    reply_due: Due,
    unanswered: u32,
    /// A link ACK is due that was too long to travel with the last frame.
    ack_alone: bool,
    /// The limit of bytes of packets that are sent and not acknowledged.
    max_bytes: usize,
    events: VecDeque<Event>,
}

impl Tulip {
    /// One end of a link. `seed` is a random number that others do not know: flows are
    /// distinguished by it, and the other end detects by it that this one has restarted.
    pub fn new(limits: Limits, settings: Settings, seed: u64) -> Self {
        Self {
            epochs: Epochs::new(seed),
            queue: Queue::new(settings.is_fair(), limits.egress.air, limits.cache_bytes),
            sender: Sender::new(),
            receiver: Receiver::new(Resequencer::new(
                limits.cache_bytes,
                limits.egress.wired,
                settings.window.max(MAX_WINDOW),
            )),
            decoder: Decoder::new(redundancy::decoder_bytes(limits.cache_bytes)),
            alone: 0,
            max_bytes: limits.cache_bytes,
            pace: Pace::new(settings.adaptive, settings.answer_wait(), settings.ack_delay),
            rate: RateControl::new(),
            departure_due: Due::Never,
            pause_due: Due::Never,
            brief: None,
            last_acks: LastAcks::default(),
            turn: if settings.half_duplex { Turn::Free } else { Turn::Always },
            held: None,
            returned: None,
            reply_due: Due::Never,
            unanswered: 0,
            ack_alone: false,
            events: VecDeque::new(),
            hash_seed: seed,
            settings,
        }
    }

    fn report(&mut self, event: LinkEvent) {
        self.events.push_back(event.into());
    }

    /// Queues a packet of the network layer.
    fn enqueue(&mut self, now: Instant, packet: &Packet) {
        if packet.link_type() == LinkType::Frame || packet.wire_len() > u32::from(u16::MAX) {
            return self.report(LinkEvent::TooLong(packet.wire_len()));
        }
        self.pace.note_queue(now, self.queue.is_empty());
        let view = View::of(packet, self.hash_seed);
        let class = self.settings.classes.class(&view);
        let more = self.pace.burst();
        let queued = Queued::new(packet.clone(), class, view.flow).urgent_if_short();
        if !self.queue.push(now, queued, more) {
            self.events.push_back(Event::EgressDropped(Port::Air));
        }
        self.epochs.keep_asking();
    }

    /// Processes a frame of the link.
    fn handle_frame(&mut self, now: Instant, packet: &Packet) {
        if packet.link_type() != LinkType::Frame {
            return self.report(LinkEvent::Malformed(Malformed::Version));
        }
        let mut frame = match Frame::parse(packet) {
            Ok(frame) => frame,
            Err(why) => return self.report(LinkEvent::Malformed(why)),
        };
        if self.is_of_this_run(now, &frame) {
            self.handle_control(now, &frame);
            self.note_symbol(&frame);
            self.take_outer_ecn(&mut frame);
            self.handle_payload(now, frame);
        }
    }

    /// Whether the frame is from the present run of the other end, and for the present run of this
    /// end. The answer to any other frame has both epochs.
    fn is_of_this_run(&mut self, now: Instant, frame: &Frame) -> bool {
        let events = &mut self.events;
        let mut report = |event: LinkEvent| events.push_back(event.into());
        let judgement = self.epochs.judge(now, (frame.from, frame.to), &mut report);
        if let Some(sample) = judgement.round_trip {
            self.pace.round_trip(now, sample);
        }
        if judgement.is_restart {
            self.receiver.restart();
            self.decoder.restart();
            self.alone = 0;
            self.resend_all(now);
        }
        self.receiver.set_abilities(frame);
        if !judgement.is_current {
            self.receiver.want_ack();
            self.take_turn(now, frame.more, true);
        }
        judgement.is_current
    }

    /// Begins a new stream with the packets that the other end has not acknowledged.
    fn resend_all(&mut self, now: Instant) {
        self.queue.put_back(now, self.sender.restart());
        self.pace.restart();
        self.rate.restart();
        self.brief = None;
        self.last_acks = LastAcks::default();
        self.reply_due = Due::Never;
        self.unanswered = 0;
    }

    /// Processes serial number, link ACK, poll flag and turn.
    fn handle_control(&mut self, now: Instant, frame: &Frame) {
        self.receiver.note_serial(now, frame.serial, frame.kind == FrameKind::Control);
        if let Some(ack) = &frame.ack {
            match self.sender.acknowledge(now, ack, self.answers_for_queue()) {
                Err(event) => self.report(event),
                Ok(summary) => {
                    self.follow_path(now, ack, summary.late);
                    if let Some(sample) = summary.round_trip {
                        self.pace.round_trip(now, sample);
                        self.report(LinkEvent::RoundTrip(sample));
                    }
                    if summary.is_fresh {
                        self.unanswered = 0;
                        self.expect_reply(now);
                    }
                    let (acked, sent) = (self.sender.acked_serial(), self.sender.pool.serial());
                    self.pace.acknowledged(now, self.sender.pool.arrived(), acked, sent);
                }
            }
        }
        if frame.poll {
            self.receiver.poll();
        }
        self.take_turn(now, frame.more, frame.poll);
    }

    fn handle_payload(&mut self, now: Instant, frame: Frame) {
        if frame.kind == FrameKind::Repair {
            self.take_repair(&frame);
        }
        let Frame { kind, seq, after, payload, .. } = frame;
        let receiver = &mut self.receiver;
        let result = match (kind, payload) {
            (FrameKind::Reliable | FrameKind::Skip, packet) => {
                receiver.reliable(now, seq, after, packet, &self.settings)
            }
            (FrameKind::Unreliable, Some(packet)) => {
                receiver.count_unreliable(now);
                receiver.window.unreliable(seq, after, packet)
            }
            (FrameKind::Unreliable | FrameKind::Control | FrameKind::Repair, _) => Ok(()),
        };
        if let Err(event) = result {
            self.report(event);
        }
        self.take_recovered(now);
    }

    fn wait(&self) -> Duration {
        self.pace.wait(self.unanswered)
    }

    /// Full duplex: restarts the reply timeout, if packets are in flight.
    fn expect_reply(&mut self, now: Instant) {
        let has_missing = self.is_coding() && self.sender.pool.missing() > 0;
        let is_waiting = self.sender.pool.outstanding() > 0 || has_missing || self.awaits_report();
        let is_open = self.turn == Turn::Always && is_waiting;
        self.reply_due = if is_open { Due::At(now + self.wait()) } else { Due::Never };
    }

    /// The next frame for the link, with its epoch, flags and link ACK.
    fn next_frame(&mut self, now: Instant) -> Option<Frame> {
        if !self.turn.may_send() {
            return None;
        }
        let Some(peer) = self.epochs.peer() else { return self.hello_frame(now) };
        let mut frame = self.next_payload(now)?;
        frame.to = peer;
        frame.more = self.turn.has_more(self.settings.strobe) && self.has_next();
        let is_full = frame.kind == FrameKind::Reliable && !self.has_room();
        frame.poll |= match self.turn {
            Turn::Always => is_full,
            _ => !frame.more && self.sender.pool.outstanding() > 0,
        };
        self.add_ack(now, &mut frame);
        self.set_outer_ecn(&mut frame);
        self.count_departure(now, &frame);
        let is_answered = frame.kind != FrameKind::Unreliable || self.controls_rate();
        if frame.kind != FrameKind::Control && is_answered {
            self.expect_reply(now);
        }
        self.turn.sent(now, self.settings.strobe, frame.more, frame.poll);
        self.held = Some(frame.clone()).filter(|_| self.settings.half_duplex);
        Some(frame)
    }

    /// The next frame, in this order: the packet that the link returned, a link ACK that was too
    /// long to travel, a retransmission, a repair frame, a queued packet, a link ACK alone.
    fn next_payload(&mut self, now: Instant) -> Option<Frame> {
        if let Some(frame) = self.returned_frame() {
            return Some(frame);
        }
        if core::mem::take(&mut self.ack_alone) {
            return Some(self.control_frame());
        }
        if self.reply_due == Due::Now {
            self.reply_due = Due::Never;
            let resent = self.sender.resend_lost(now, Duration::ZERO);
            let resent = resent.or_else(|| self.sender.resend_oldest(now));
            if let Some((numbered, event)) = resent {
                let frame = self.numbered_frame(numbered, event, true);
                return Some(Frame { poll: true, ..frame });
            }
            if self.awaits_report() {
                self.expect_reply(now);
                return Some(Frame { poll: true, ..self.control_frame() });
            }
        }
        if self.may_leave(now) {
            if self.is_below_limit() && self.may_leave_again(now) {
                if let Some((numbered, event)) = self.sender.resend_lost(now, self.patience()) {
                    return Some(self.numbered_frame(numbered, event, false));
                }
                if let Some(frame) = self.next_brief(now).or_else(|| self.next_repair(now)) {
                    return Some(frame);
                }
            }
            if let Some(queued) = self.next_queued(now) {
                return Some(self.new_frame(now, queued));
            }
            if let Some(frame) = self.next_last_ack() {
                return Some(frame);
            }
            if let Some(frame) = self.next_copy(now) {
                return Some(frame);
            }
            self.departure_due = Due::Never;
            self.rate.limit_by_hosts(now);
        }
        let acks = self.receiver.ack_due() == Due::Now && self.turn.may_ack();
        let acks = acks && !self.has_companion(now);
        (acks || self.turn.must_send()).then(|| self.control_frame())
    }

    /// Whether a packet could be sent now.
    fn has_next(&mut self) -> bool {
        self.sender.has_lost() || self.queue.has_next(self.has_room())
    }

    /// Takes the next packet from the egress queue.
    fn next_queued(&mut self, now: Instant) -> Option<Queued> {
        let room = self.has_room() && self.may_leave_again(now);
        let queued = self.queue.pop(now, room, self.codel());
        self.events.extend(self.queue.take_events());
        queued
    }
}

impl Agent for Tulip {
    /// Withholds every packet: the agent originates frames, and the packets that frames carried.
    fn handle_packet(&mut self, now: Instant, from: Port, packet: &Packet) -> Verdict {
        match from {
            Port::Wired => self.enqueue(now, packet),
            Port::Air => self.handle_frame(now, packet),
        }
        Verdict::Withhold
    }

    fn handle_damaged(&mut self, _now: Instant, _frame: &Packet) {
        self.report(LinkEvent::Damaged);
        // On this link the damaged frame can only be the answer.
        if matches!(self.turn, Turn::Theirs(_)) && self.turn.give_up() {
            self.answer_missing();
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.epochs.expire(now);
        self.receiver.expire(now);
        self.departure_due.expire(now);
        self.pause_due.expire(now);
        self.last_acks.expire(now);
        if self.reply_due.expire(now) {
            self.unanswered += 1;
        }
        if self.turn.expire(now) {
            self.unanswered += 1;
            self.answer_missing();
        }
    }

    fn handle_link(&mut self, now: Instant, signal: LinkSignal) {
        match signal {
            LinkSignal::Leaving => {
                self.returned = self.held.take();
                if self.returned.is_some() {
                    self.turn.take_back();
                }
            }
            LinkSignal::Sent => {
                let held = self.held.take().or_else(|| self.returned.take());
                held.iter().for_each(|frame| self.report_bare_ack(frame));
                self.turn.left(now, self.wait());
            }
            LinkSignal::Idle => {
                if self.turn.give_up() {
                    self.no_answer();
                }
            }
            // Frames have serial numbers: a frame that was not shown counts as lost.
            // What is withheld for its order goes with the link.
            LinkSignal::ObservationGap(_)
            | LinkSignal::Stop
            | LinkSignal::MobileLeft(_)
            | LinkSignal::AirRoundTrip(_) => {}
        }
    }

    fn poll_transmit(&mut self, now: Instant, to: Port) -> Option<Packet> {
        match to {
            Port::Wired => self.receiver.window.pop(),
            Port::Air => self.next_frame(now).map(|frame| frame.emit()),
        }
    }

    fn limit_cache(&mut self, bytes: usize) {
        self.follow_limit(bytes);
    }

    fn path(&self) -> Option<PathView> {
        Some(self.view())
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        let ack = self.receiver.ack_timer().filter(|_| self.turn.may_ack());
        let timers = [
            (ack, ACK_TIMER),
            (self.turn.ack_timer(), ACK_TIMER),
            (self.reply_due.timer(), REPLY_TIMER),
            (self.turn.reply_timer(), REPLY_TIMER),
            (self.epochs.hello_timer(), HELLO_TIMER),
            (self.departure_due.timer(), DEPARTURE_TIMER),
            (self.pause_due.timer(), PAUSE_TIMER),
            (self.last_acks.timer(), PAUSE_TIMER),
        ];
        let timers = timers.into_iter().filter_map(|(at, why)| Some(Deadline { at: at?, why }));
        timers.min_by_key(|deadline| deadline.at)
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }
}
