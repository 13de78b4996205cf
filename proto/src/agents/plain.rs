//! Passthrough: the baseline of every comparison, and the replacement of an agent that has failed.

use crate::agent::{Agent, Port, Verdict};
use crate::packet::Packet;
use crate::time::Instant;

/// Lets every packet pass, in the order of arrival.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plain;

impl Agent for Plain {
    fn handle_packet(&mut self, _now: Instant, _from: Port, _packet: &Packet) -> Verdict {
        Verdict::Pass
    }
}
