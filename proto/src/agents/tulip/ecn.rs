//! The ECN field of the IP packets that carry frames (RFC 6040).
//!
//! With the rate control this end is a transport of its own, which answers for marks itself: all
//! its frames are ECN-capable whatever they carry, the other end counts the marks, and the fields
//! inside stay as they are, since CoDel in front of the link marks the flow that is too fast. To
//! pass the mark on as well would tell of one congestion twice (RFC 9484 §10 treats its tunnels
//! likewise). Without it the hosts must answer: the field is copied to the outside (normal mode,
//! §4.1), and both are combined when the packet leaves (§4.2).

use super::Tulip;
use super::frame::{Ack, Frame};
use crate::agents::arq::LinkEvent;
use crate::ecn::Ecn;
use crate::wire::edit::{ecn, with_ecn};

impl Tulip {
    /// Chooses the field of a frame that leaves. An end that does not read it would hide marks from
    /// the hosts (§4.1, compatibility mode).
    pub(super) fn set_outer_ecn(&self, frame: &mut Frame) {
        frame.answers_ce = self.controls_rate();
        let is_read = self.settings.ecn && self.receiver.peer_reads_ecn();
        frame.outer_ecn = match frame.packet() {
            _ if !is_read => Ecn::NotEct,
            // Link ACKs too, as in QUIC (RFC 9000 §13.4): nobody shall tell them from packets.
            _ if frame.answers_ce => Ecn::Ect0,
            Some(packet) => ecn(packet),
            None => Ecn::NotEct,
        };
    }

    /// Takes the field of a frame that has arrived: counts a mark for which its sender answers, and
    /// passes any other one on to the packet. A packet that must be dropped counts as arrived.
    pub(super) fn take_outer_ecn(&mut self, frame: &mut Frame) {
        if frame.answers_ce {
            if frame.outer_ecn == Ecn::Ce {
                self.receiver.count_mark();
            }
            return;
        }
        let Some(packet) = frame.packet() else { return };
        let inner = ecn(packet);
        match inner.decapsulated(frame.outer_ecn) {
            Some(combined) if combined == inner => {}
            Some(combined) => frame.payload = with_ecn(packet, combined),
            None => {
                frame.payload = None;
                self.report(LinkEvent::EcnDropped);
            }
        }
    }

    /// Whether a link ACK tells of marks that none before it has told of.
    pub(super) fn take_marks(&mut self, ack: &Ack) -> bool {
        let marks = self.sender.take_marks(ack);
        if marks > 0 {
            self.report(LinkEvent::Marked(marks));
        }
        marks > 0
    }
}
