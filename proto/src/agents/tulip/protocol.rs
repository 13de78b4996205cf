//! The interface of the link protocol to the registry and the runners.

use super::compression::Compressor;
use super::frame::{Frame, FrameKind, HEADER_LEN};
use super::{Settings, Tulip};
use crate::agent::Agent;
use crate::agents::limits::Limits;
use crate::agents::link_protocol::{Carried, LinkProtocol};
use crate::agents::settings::AgentSettings;
use crate::link::mac::MacParams;
use crate::packet::Packet;
use crate::units::Rate;
use alloc::boxed::Box;
use core::time::Duration;

/// When a link ACK is due where the bottleneck is behind the end; losses cause one at once.
const LINK_ACK_EVERY: u32 = 8;
const LINK_ACK_DELAY: Duration = Duration::from_millis(3);

/// The properties of the protocol that a runner needs.
pub const PROTOCOL: LinkProtocol = LinkProtocol {
    frame_overhead: HEADER_LEN,
    carries,
    takes_damaged: false,
    compressor: Some(Compressor::new),
};

fn carries(packet: &Packet) -> Carried {
    match Frame::parse(packet) {
        Ok(frame) if frame.kind == FrameKind::Repair => Carried::Combination,
        Ok(frame) => frame.payload.into(),
        Err(_) => Carried::Nothing,
    }
}

impl AgentSettings for Settings {
    fn build(&self, limits: Limits, seed: u64) -> Box<dyn Agent + Send> {
        Box::new(Tulip::new(limits, self.clone(), seed))
    }

    /// A link ACK waits for a packet to travel with for the radio's turnaround time and half of the
    /// propagation delay, which is half of the time for which the other end listens.
    fn follow_radio(&mut self, radio: Option<&MacParams>) {
        self.half_duplex = radio.is_some();
        if let Some(radio) = radio {
            self.rate = Rate(radio.rate_bps);
            self.max_propagation_delay = radio.delay;
            self.turnaround = radio.turnaround;
            self.ack_delay = radio.turnaround + radio.delay / 2;
        }
    }

    fn control_rate(&mut self) {
        self.rate_control = true;
        self.fair_queue = true;
        self.ack_every = LINK_ACK_EVERY;
        self.ack_delay = LINK_ACK_DELAY;
        self.sparse_acks = true;
    }

    fn exempt(&mut self, tcp_port: u16) {
        self.classes.exempt(tcp_port);
    }
}
