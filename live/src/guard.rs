//! Fails open: an agent that panics is replaced by passthrough, so that a gateway is never worse
//! than no gateway.

use airmend_proto::agents::plain::Plain;
use airmend_proto::wire::flow::FlowKey;
use airmend_proto::{
    Agent, Deadline, Event, Instant, LinkSignal, Load, Packet, Port, Restoration, Timer, Verdict,
};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// An agent that passthrough replaces when it panics.
pub struct Guard {
    agent: Box<dyn Agent + Send>,
    /// The agent panicked in `poll_timeout`, which may not replace it.
    is_broken: Cell<bool>,
    replaced: Option<Event>,
    now: Instant,
}

impl Guard {
    /// Guards `agent`.
    pub fn new(agent: Box<dyn Agent + Send>) -> Self {
        Self { agent, is_broken: Cell::new(false), replaced: None, now: Instant::ZERO }
    }

    /// Calls the agent. If it panics, passthrough replaces it: retransmissions that waited are
    /// lost, and no packet of the hosts.
    fn call<T>(&mut self, method: impl FnOnce(&mut dyn Agent) -> T) -> Option<T> {
        // The agent is dropped after a panic, so that its state is not used any more.
        let result = catch_unwind(AssertUnwindSafe(|| method(&mut *self.agent)));
        if result.is_err() {
            self.replace();
        }
        result.ok()
    }

    fn replace(&mut self) {
        let failed = std::mem::replace(&mut self.agent, Box::new(Plain));
        self.is_broken.set(false);
        self.replaced = Some(Event::AgentReplaced(self.now));
        // Its destructor may panic too.
        catch_unwind(AssertUnwindSafe(|| drop(failed))).ok();
    }
}

impl Agent for Guard {
    fn handle_packet(&mut self, now: Instant, from: Port, packet: &Packet) -> Verdict {
        self.now = now;
        self.call(|agent| agent.handle_packet(now, from, packet)).unwrap_or(Verdict::Pass)
    }

    fn handle_copy(&mut self, now: Instant, from: Port, packet: &Packet) {
        self.now = now;
        self.call(|agent| agent.handle_copy(now, from, packet));
    }

    fn handle_departure(&mut self, now: Instant, to: Port, packet: &Packet) {
        self.now = now;
        self.call(|agent| agent.handle_departure(now, to, packet));
    }

    fn confirm_departure(&mut self, now: Instant, to: Port, packet: &Packet) -> bool {
        self.now = now;
        self.call(|agent| agent.confirm_departure(now, to, packet)).unwrap_or(true)
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.now = now;
        if self.is_broken.get() {
            self.replace();
        }
        self.call(|agent| agent.handle_timeout(now));
    }

    fn handle_link(&mut self, now: Instant, signal: LinkSignal) {
        self.now = now;
        self.call(|agent| agent.handle_link(now, signal));
    }

    fn handle_damaged(&mut self, now: Instant, frame: &Packet) {
        self.now = now;
        self.call(|agent| agent.handle_damaged(now, frame));
    }

    fn air_round_trip(&self, flow: &FlowKey) -> Option<Duration> {
        catch_unwind(AssertUnwindSafe(|| self.agent.air_round_trip(flow))).ok().flatten()
    }

    fn restoration(&self, repair: &Packet) -> Option<Restoration> {
        catch_unwind(AssertUnwindSafe(|| self.agent.restoration(repair))).ok().flatten()
    }

    fn poll_enqueue(&mut self) -> Option<(Port, Packet)> {
        self.call(|agent| agent.poll_enqueue()).flatten()
    }

    fn poll_transmit(&mut self, now: Instant, to: Port) -> Option<Packet> {
        self.now = now;
        self.call(|agent| agent.poll_transmit(now, to)).flatten()
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        if let Ok(deadline) = catch_unwind(AssertUnwindSafe(|| self.agent.poll_timeout())) {
            return deadline;
        }
        self.is_broken.set(true);
        Some(Deadline { at: Instant::ZERO, why: Timer::FLOW_IDLE })
    }

    fn poll_event(&mut self) -> Option<Event> {
        if let Some(event) = self.replaced.take() {
            return Some(event);
        }
        let event = self.call(|agent| agent.poll_event()).flatten();
        event.or_else(|| self.replaced.take())
    }

    /// Asked once, before any packet.
    fn repair_credit(&self) -> Option<u64> {
        self.agent.repair_credit()
    }

    fn load(&self) -> Load {
        let load = catch_unwind(AssertUnwindSafe(|| self.agent.load()));
        if load.is_err() {
            self.is_broken.set(true);
        }
        load.unwrap_or_default()
    }

    fn unanswered(&self) -> usize {
        catch_unwind(AssertUnwindSafe(|| self.agent.unanswered())).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmend_proto::{EgressLimits, Forwarder, LinkType};

    /// Panics in the method of this name.
    struct Bad(&'static str);

    impl Bad {
        fn maybe_panic(&self, method: &str) {
            assert_ne!(self.0, method, "a bug in {method}");
        }
    }

    impl Agent for Bad {
        fn handle_packet(&mut self, _: Instant, _: Port, _: &Packet) -> Verdict {
            self.maybe_panic("handle_packet");
            Verdict::Pass
        }
        fn handle_departure(&mut self, _: Instant, _: Port, _: &Packet) {
            self.maybe_panic("handle_departure");
        }
        fn handle_timeout(&mut self, _: Instant) {
            self.maybe_panic("handle_timeout");
        }
        fn poll_enqueue(&mut self) -> Option<(Port, Packet)> {
            self.maybe_panic("poll_enqueue");
            None
        }
        fn poll_transmit(&mut self, _: Instant, _: Port) -> Option<Packet> {
            self.maybe_panic("poll_transmit");
            None
        }
        fn poll_timeout(&self) -> Option<Deadline> {
            self.maybe_panic("poll_timeout");
            None
        }
        fn poll_event(&mut self) -> Option<Event> {
            self.maybe_panic("poll_event");
            None
        }
        fn repair_credit(&self) -> Option<u64> {
            Some(7)
        }
    }

    impl Drop for Bad {
        fn drop(&mut self) {
            if !std::thread::panicking() {
                self.maybe_panic("drop");
            }
        }
    }

    #[test]
    fn the_bound_of_repairs_is_that_of_the_agent() {
        assert_eq!(Guard::new(Box::new(Bad(""))).repair_credit(), Some(7));
    }

    #[test]
    fn whichever_method_panics_packets_pass_afterwards() {
        let methods = [
            "handle_packet",
            "handle_departure",
            "handle_timeout",
            "poll_enqueue",
            "poll_transmit",
            "poll_timeout",
            "poll_event",
        ];
        for method in methods {
            let limits = EgressLimits { air: 9, wired: 9 };
            let mut forwarder = Forwarder::new(Box::new(Guard::new(Box::new(Bad(method)))), limits);
            let now = Instant::from_millis(1);
            if forwarder.poll_timeout().is_some_and(|deadline| deadline.at <= now) {
                forwarder.handle_timeout(now);
            }
            forwarder.handle_timeout(now);
            assert_eq!(forwarder.poll_transmit(now, Port::Air), None);
            let packet = Packet::new(LinkType::Ip, vec![0x45; 40].into());
            // The first packet meets the defect if nothing did before, and passes all the same.
            for _ in 0..2 {
                forwarder.handle_packet(now, Port::Wired, packet.clone());
                let left = forwarder.poll_transmit(now, Port::Air);
                assert_eq!(left.as_ref(), Some(&packet), "{method}");
            }
            let events: Vec<_> = std::iter::from_fn(|| forwarder.poll_event()).collect();
            assert!(matches!(events[..], [Event::AgentReplaced(_)]), "{method}: {events:?}");
        }
    }
}
