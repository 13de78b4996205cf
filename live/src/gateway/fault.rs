//! A fault on purpose, in debug builds only: tests see what becomes of transfers when the agent has
//! a bug.

use airmend_proto::{Agent, Deadline, Event, Instant, Load, Packet, Port};

/// The environment variable that says after how many packets the agent panics.
const VARIABLE: &str = "AIRMEND_PANIC_AFTER";

/// The agent, with a bug if somebody asked for one.
pub(super) fn inject(agent: Box<dyn Agent + Send>) -> Box<dyn Agent + Send> {
    match std::env::var(VARIABLE).ok().and_then(|packets| packets.parse().ok()) {
        Some(packets) => Box::new(Faulty { agent, packets }),
        None => agent,
    }
}

struct Faulty {
    agent: Box<dyn Agent + Send>,
    /// Still to come before the panic.
    packets: u64,
}

impl Agent for Faulty {
    fn handle_packet(&mut self, now: Instant, from: Port, packet: Packet) {
        assert!(self.packets > 0, "{VARIABLE} asks for this panic");
        self.packets -= 1;
        self.agent.handle_packet(now, from, packet);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.agent.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant, to: Port) -> Option<Packet> {
        self.agent.poll_transmit(now, to)
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        self.agent.poll_timeout()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.agent.poll_event()
    }

    fn load(&self) -> Load {
        self.agent.load()
    }
}
