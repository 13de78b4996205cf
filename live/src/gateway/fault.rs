//! A fault on purpose, in debug builds only: tests see what becomes of transfers when the agent has
//! a defect.

use airmend_proto::wire::flow::FlowKey;
use airmend_proto::wire::tcp::Segment;
use airmend_proto::{
    Agent, Deadline, Event, Instant, LinkSignal, Load, Packet, Port, Restoration, Verdict,
};
use std::net::IpAddr;
use std::time::Duration;

/// The environment variable that says after how many packets the agent panics.
const PANIC: &str = "AIRMEND_PANIC_AFTER";
/// The environment variable that names a mobile host, and the microseconds of work that each ACK of
/// that host takes: `10.0.0.1=500`.
const WORK: &str = "AIRMEND_WORK";

/// The agent, with a defect if somebody asked for one.
pub(super) fn inject(agent: Box<dyn Agent + Send>) -> Box<dyn Agent + Send> {
    let variable = |name| std::env::var(name).ok();
    let packets = variable(PANIC).and_then(|packets| packets.parse().ok());
    let work = variable(WORK).and_then(|work| {
        let (host, micros) = work.split_once('=')?;
        Some((host.parse().ok()?, Duration::from_micros(micros.parse().ok()?)))
    });
    match (packets, work) {
        (None, None) => agent,
        _ => Box::new(Faulty { agent, packets, work }),
    }
}

struct Faulty {
    agent: Box<dyn Agent + Send>,
    /// Packets before the panic.
    packets: Option<u64>,
    /// What each ACK of a host takes.
    work: Option<(IpAddr, Duration)>,
}

impl Faulty {
    /// Fails, or works, for this packet.
    fn fail(&mut self, from: Port, packet: &Packet) {
        if let Some(packets) = &mut self.packets {
            assert!(*packets > 0, "{PANIC} asks for this panic");
            *packets -= 1;
        }
        if let Some((host, work)) = self.work
            && from == Port::Air
            && let Ok(segment) = Segment::parse(packet)
            && FlowKey::of(&segment, from).air.ip() == host
        {
            let begin = std::time::Instant::now();
            while begin.elapsed() < work {
                std::hint::spin_loop();
            }
        }
    }
}

impl Agent for Faulty {
    fn handle_packet(&mut self, now: Instant, from: Port, packet: &Packet) -> Verdict {
        self.fail(from, packet);
        self.agent.handle_packet(now, from, packet)
    }

    fn handle_copy(&mut self, now: Instant, from: Port, packet: &Packet) {
        self.fail(from, packet);
        self.agent.handle_copy(now, from, packet);
    }

    fn handle_departure(&mut self, now: Instant, to: Port, packet: &Packet) {
        self.agent.handle_departure(now, to, packet);
    }

    fn confirm_departure(&mut self, now: Instant, to: Port, packet: &Packet) -> bool {
        self.agent.confirm_departure(now, to, packet)
    }

    fn restoration(&self, repair: &Packet) -> Option<Restoration> {
        self.agent.restoration(repair)
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.agent.handle_timeout(now);
    }

    fn handle_link(&mut self, now: Instant, signal: LinkSignal) {
        self.agent.handle_link(now, signal);
    }

    fn handle_damaged(&mut self, now: Instant, frame: &Packet) {
        self.agent.handle_damaged(now, frame);
    }

    fn poll_enqueue(&mut self) -> Option<(Port, Packet)> {
        self.agent.poll_enqueue()
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

    fn repair_credit(&self) -> Option<u64> {
        self.agent.repair_credit()
    }

    fn load(&self) -> Load {
        self.agent.load()
    }

    fn unanswered(&self) -> usize {
        self.agent.unanswered()
    }
}
