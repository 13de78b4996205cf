//! The replay itself: an agent driven by the steps of a capture.

use super::report::{Observer, Report};
use super::side::Step;
use airmend_proto::wire::tcp::Segment;
use airmend_proto::{Forwarder, Instant, Packet, Port, Ports, PriorityClass, drain};
use std::cell::RefCell;
use std::fmt;
use std::time::Duration;

/// The times at which the agent's packets depart and its timers run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Packets depart at once, and timers run when they expire.
    Free,
    /// The recorded times. The agent must be built as the recorded one was.
    Recorded,
}

/// The comparison of the agent's packets with the recorded ones.
#[derive(Clone, Debug, Default)]
pub struct Check {
    /// The number of packets that left the recorded agent.
    pub outputs: u64,
    /// Of these, the number that the replay sent identically and in the same order.
    pub same: u64,
    /// The first difference: another packet, or timers that ran without being due.
    pub difference: Option<Difference>,
    /// The longest delay of expired timers in the recorded agent's loop.
    pub timers_late: Duration,
}

/// Where a replay first differs from its recording.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The time since the first packet.
    pub at: Instant,
    /// The difference, in words.
    pub what: String,
}

impl Pace {
    /// The treatment of the agent's packets that a replay of these steps needs: a recording of the
    /// gateway has their departures from the kernel's queue.
    pub fn priority_class(self, steps: &[Step]) -> PriorityClass {
        let has_departures = || steps.iter().any(|step| matches!(step, Step::Departed(..)));
        match self {
            Self::Recorded if has_departures() => PriorityClass::Kernel,
            _ => PriorityClass::First,
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {} s {}", self.at, self.what)
    }
}

/// Runs an agent and its queues through the steps of a capture. `is_mended`: an agent was active in
/// the capture, so that its senders had less to repair. The check is meaningful at the recorded
/// pace only.
pub fn replay(
    forwarder: &mut Forwarder,
    steps: &[Step],
    pace: Pace,
    is_mended: bool,
) -> (Report, Check) {
    let mut run = Run { forwarder, observer: Observer::new(is_mended), check: Check::default() };
    for step in steps {
        match pace {
            Pace::Free => run.step_freely(step),
            Pace::Recorded => run.step_as_recorded(step),
        }
    }
    (run.observer.finish(), run.check)
}

struct Run<'a> {
    forwarder: &'a mut Forwarder,
    observer: Observer,
    check: Check,
}

impl Run<'_> {
    fn step_freely(&mut self, step: &Step) {
        let (Step::Enters(now, from, packet) | Step::Copied(now, from, packet)) = step else {
            return;
        };
        while let Some(due) = self.forwarder.poll_timeout().filter(|due| due.at <= *now) {
            self.drain(due.at);
        }
        self.observer.enters(*now, *from, packet);
        self.forwarder.handle_packet(*now, *from, packet.clone());
        self.drain(*now);
    }

    fn drain(&mut self, now: Instant) {
        let observer = RefCell::new(&mut self.observer);
        let mut on_event = |event| observer.borrow_mut().event(now, event);
        drain(self.forwarder, now, &mut FreeLinks(&observer), &mut on_event);
    }

    /// Makes the calls of [`drain`] in the recorded order, but for polls without a result.
    fn step_as_recorded(&mut self, step: &Step) {
        match step {
            Step::Enters(now, from, packet) => {
                self.observer.enters(*now, *from, packet);
                self.forwarder.handle_packet(*now, *from, packet.clone());
                self.run_timers(*now);
            }
            Step::Copied(now, from, packet) => {
                self.observer.enters(*now, *from, packet);
                self.observer.leaves(*now, from.opposite(), packet);
                self.forwarder.handle_copy(*now, *from, packet);
                self.run_timers(*now);
            }
            Step::Departed(now, to, packet) => {
                self.forwarder.confirm_copy(*now, *to, packet);
                self.run_timers(*now);
            }
            Step::TimersRan(now) => {
                if !self.run_timers(*now) {
                    self.differs(*now, "timers ran, which were not due in the replay".to_owned());
                }
            }
            Step::Leaves(now, to, recorded) => {
                self.run_timers(*now);
                let sent = self.forwarder.poll_transmit(*now, *to);
                self.report_events(*now);
                if let Some(sent) = &sent {
                    self.observer.leaves(*now, *to, sent);
                }
                self.compare(*now, *to, sent.as_ref(), recorded);
            }
        }
    }

    /// Whether any were due.
    fn run_timers(&mut self, now: Instant) -> bool {
        let due = self.forwarder.poll_timeout().filter(|due| due.at <= now);
        if let Some(due) = due {
            self.check.timers_late = self.check.timers_late.max(now - due.at);
            self.forwarder.handle_timeout(now);
        }
        self.report_events(now);
        due.is_some()
    }

    fn report_events(&mut self, now: Instant) {
        while let Some(event) = self.forwarder.poll_event() {
            self.observer.event(now, event);
        }
    }

    fn compare(&mut self, now: Instant, to: Port, sent: Option<&Packet>, recorded: &Packet) {
        self.check.outputs += 1;
        if sent == Some(recorded) {
            self.check.same += 1;
            return;
        }
        let sent = sent.map_or_else(|| "nothing".to_owned(), describe);
        let recorded = describe(recorded);
        let number = self.check.outputs;
        self.differs(
            now,
            format!("output {number}, to the {to} port: recorded was {recorded}, replayed {sent}"),
        );
    }

    fn differs(&mut self, at: Instant, what: String) {
        self.check.difference.get_or_insert(Difference { at, what });
    }
}

/// Links that can always take a packet.
struct FreeLinks<'a, 'b>(&'a RefCell<&'b mut Observer>);

impl Ports for FreeLinks<'_, '_> {
    fn can_send(&self, _now: Instant, _side: Port) -> bool {
        true
    }

    fn send(&mut self, now: Instant, side: Port, packet: Packet) {
        self.0.borrow_mut().leaves(now, side, &packet);
    }
}

fn describe(packet: &Packet) -> String {
    match Segment::parse(packet) {
        Ok(Segment { seq, ack, payload_len, .. }) => {
            format!("seq {seq} ack {ack} with {payload_len} bytes")
        }
        Err(_) => format!("a packet of {} bytes", packet.wire_len()),
    }
}
