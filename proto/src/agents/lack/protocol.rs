//! The interface of the link protocol to the registry and the runners.

use super::frame::{Frame, OVERHEAD};
use super::{Lack, Settings};
use crate::agent::Agent;
use crate::agents::limits::Limits;
use crate::agents::link_protocol::LinkProtocol;
use crate::agents::settings::AgentSettings;
use crate::link::mac::MacParams;
use alloc::boxed::Box;

/// The properties of the protocol that a runner needs.
pub const PROTOCOL: LinkProtocol = LinkProtocol {
    frame_overhead: OVERHEAD,
    carries: |packet| Frame::parse(packet).ok().and_then(|frame| frame.payload).into(),
    compressor: None,
    takes_damaged: true,
};

impl AgentSettings for Settings {
    fn build(&self, limits: Limits, seed: u64) -> Box<dyn Agent + Send> {
        Box::new(Lack::new(limits, self.clone(), seed))
    }

    fn follow_radio(&mut self, radio: Option<&MacParams>) {
        self.half_duplex = radio.is_some();
    }

    /// LACK has no control of its rate, but what waits must be shared out. What a host sends again
    /// is then no reason to transmit, or it could have the link to itself.
    fn control_rate(&mut self) {
        self.fair_queue = true;
        self.resend_duplicates = false;
    }

    fn exempt(&mut self, tcp_port: u16) {
        self.classes.exempt(tcp_port);
    }
}
