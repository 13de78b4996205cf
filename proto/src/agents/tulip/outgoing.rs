//! The frames that an end sends.

use super::Tulip;
use super::frame::{Frame, FrameKind, READS_CLOCK};
use crate::agents::arq::{Class, LinkEvent, Numbered, Queued};
use crate::ecn::Ecn;
use crate::packet::Packet;
use crate::time::Instant;
use crate::wire::seq::SeqNumber;

impl Tulip {
    /// The frame of a packet that has not left before.
    pub(super) fn new_frame(&mut self, now: Instant, mut queued: Queued) -> Frame {
        let order = self.settings.order;
        self.last_acks.follow(queued.flow);
        if queued.class != Class::Unreliable {
            let needs_copy = self.needs_copy(&queued);
            queued.is_waited_for = !needs_copy;
            let numbered = self.sender.pool.send(now, queued, order);
            self.brief = needs_copy.then_some((numbered.serial, numbered.seq)).or(self.brief);
            let pool = &self.sender.pool;
            self.pace.note_span(now, pool.span(), pool.age(now));
            self.await_pause(now, numbered.seq);
            return self.numbered_frame(numbered, None, false);
        }
        self.note_ack(now, &queued);
        self.frame_once(queued.flow, queued.packet)
    }

    /// A frame with a packet that is not retransmitted.
    pub(super) fn frame_once(&mut self, flow: usize, packet: Packet) -> Frame {
        let (serial, seq, after) = self.sender.pool.send_once(flow, self.settings.order);
        let kind = FrameKind::Unreliable;
        Frame { kind, serial, seq, after, payload: Some(packet), ..self.control_frame() }
    }

    /// The frame of a numbered packet, and the event that it is, unless it is the first one.
    pub(super) fn numbered_frame(
        &mut self,
        numbered: Numbered,
        event: Option<LinkEvent>,
        overdue: bool,
    ) -> Frame {
        let Numbered { serial, seq, after, packet, transmissions } = numbered;
        if let Some(event) = event {
            self.report(event);
        } else if transmissions > 1 {
            self.report(LinkEvent::Retransmitted { seq, attempt: transmissions - 1, overdue });
        }
        let kind = if packet.is_some() { FrameKind::Reliable } else { FrameKind::Skip };
        Frame { kind, serial, seq, after, payload: packet, ..self.control_frame() }
    }

    /// A frame that asks for the epoch of the other end.
    pub(super) fn hello_frame(&mut self, now: Instant) -> Option<Frame> {
        if !self.epochs.take_hello(now, !self.queue.is_empty()) {
            return None;
        }
        self.turn.sent(now, self.settings.strobe, false, true);
        Some(Frame { poll: true, ..self.control_frame() })
    }

    /// A frame without a packet.
    pub(super) fn control_frame(&self) -> Frame {
        Frame {
            kind: FrameKind::Control,
            poll: false,
            more: false,
            by_serial: self.settings.by_serial(),
            reads_version_2: true,
            reads_repairs: self.settings.reads_repairs(),
            answers_ce: false,
            outer_ecn: Ecn::NotEct,
            from: self.epochs.own(),
            to: self.epochs.peer().unwrap_or(0),
            serial: self.sender.pool.serial(),
            seq: SeqNumber(0),
            after: if self.settings.reads_clock() { READS_CLOCK } else { 0 },
            ack: None,
            payload: None,
        }
    }
}
