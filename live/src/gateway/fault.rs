//! A fault on purpose, in debug builds only: tests see what becomes of transfers when the agent has
//! a defect.

use airmend_proto::{Agent, Class, Deadline, Event, Instant, Load, Packet, Port, Verdict};

/// The environment variable that says after how many packets the agent panics.
const VARIABLE: &str = "AIRMEND_PANIC_AFTER";

/// The agent, with a defect if somebody asked for one.
pub(super) fn inject(agent: Box<dyn Agent + Send>) -> Box<dyn Agent + Send> {
    match std::env::var(VARIABLE).ok().and_then(|packets| packets.parse().ok()) {
        Some(packets) => Box::new(Faulty { agent, packets }),
        None => agent,
    }
}

struct Faulty {
    agent: Box<dyn Agent + Send>,
    /// Packets before the panic.
    packets: u64,
}

impl Agent for Faulty {
    fn handle_packet(&mut self, now: Instant, from: Port, packet: &Packet) -> Verdict {
        assert!(self.packets > 0, "{VARIABLE} asks for this panic");
        self.packets -= 1;
        self.agent.handle_packet(now, from, packet)
    }

    fn handle_departure(&mut self, now: Instant, to: Port, packet: &Packet) {
        self.agent.handle_departure(now, to, packet);
    }

    fn confirm_departure(&mut self, now: Instant, to: Port, packet: &Packet) -> bool {
        self.agent.confirm_departure(now, to, packet)
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.agent.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant, to: Port, class: Class) -> Option<Packet> {
        self.agent.poll_transmit(now, to, class)
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
