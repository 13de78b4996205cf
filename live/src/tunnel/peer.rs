//! The peer as the tunnel follows it: where its name leads, and whether it is there.

use super::Tunnel;
use super::carrier::Address;
use super::liveness::Change;
use super::message::Message;
use super::names::Answer;
use super::notice::Notice;
use airmend_proto::Instant;

/// The number of probes that ask whether the peer is there; those of the path's MTU begin above it.
const ARE_YOU_THERE: u32 = 0;

impl Tunnel {
    /// Asks the peer, and notices that it is gone or back.
    pub(super) fn follow_peer(&mut self, now: Instant) {
        let received = self.outbound.channel.counters().frames_received;
        match self.liveness.poll(now, received) {
            Some(Change::Lost) => {
                self.outbound.channel.handle_silence(now);
                self.set_carrier(false);
            }
            Some(Change::Found) => self.set_carrier(true),
            None => {}
        }
        if self.outbound.channel.peer().is_some() && self.liveness.poll_question(now) {
            self.outbound.now = now;
            self.outbound.send_message(Message::Probe { number: ARE_YOU_THERE }, 0);
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

    /// A kernel before Linux 5.0 cannot be told, and a LAN has a carrier of its own.
    fn set_carrier(&mut self, is_on: bool) {
        if self.config.device.follows_peer() {
            self.outbound.device.set_carrier(is_on).ok();
        }
    }
}
