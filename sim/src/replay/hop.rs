//! The hop of a capture as a trace.

use super::side::Step;
use airmend_proto::link::trace::Row;
use airmend_proto::observer::HopRecorder;
use airmend_proto::{Instant, Packet, Port};
use std::collections::VecDeque;

/// Packets that are remembered at most until they depart.
const MAX_WAITING: usize = 100_000;

/// The rows of a trace of the hop to the mobile hosts, the last of which is its end; none where the
/// capture shows neither the rate nor the round trip.
///
/// Data departs to the hop when the recorded agent sent it, when the kernel did, or, in a capture
/// without an agent, when it was captured.
pub fn record_hop(steps: &[Step]) -> Vec<Row> {
    let is_copied = steps.iter().any(|step| matches!(step, Step::Copied(..)));
    let is_sent = steps.iter().any(|step| matches!(step, Step::Leaves(_, Port::Air, _)));
    let mut recorder = HopRecorder::new(Instant::ZERO);
    let (mut rows, mut now) = (Vec::new(), Instant::ZERO);
    let mut queue = Queue::default();
    for step in steps {
        let mut waited = None;
        let (at, from, packet) = match step {
            Step::Enters(at, Port::Air, packet) | Step::Copied(at, Port::Air, packet) => {
                (at, Port::Air, packet)
            }
            Step::Copied(at, Port::Wired, packet) | Step::Departed(at, Port::Air, packet) => {
                (at, Port::Wired, packet)
            }
            Step::Leaves(at, Port::Air, packet) if !is_copied => {
                waited = Some(queue.leaves(*at, packet));
                (at, Port::Wired, packet)
            }
            Step::Enters(at, Port::Wired, packet) if is_sent => {
                queue.enters(*at, packet);
                continue;
            }
            Step::Enters(at, Port::Wired, packet) if !is_copied => (at, Port::Wired, packet),
            _ => continue,
        };
        now = now.max(*at);
        rows.extend(std::iter::from_fn(|| recorder.poll_row(now)));
        recorder.packet(now, from, packet, waited);
    }
    rows.extend(recorder.finish(now));
    rows
}

/// The agent's queue for the air, as far as a recording shows it.
#[derive(Default)]
struct Queue {
    waiting: VecDeque<(Instant, Packet)>,
    left: Instant,
}

impl Queue {
    fn enters(&mut self, now: Instant, packet: &Packet) {
        if self.waiting.len() < MAX_WAITING {
            self.waiting.push_back((now, packet.clone()));
        }
    }

    /// Whether a packet that leaves has waited since another one left: the packets before it in the
    /// queue were dropped. For a repair, whether any has.
    fn leaves(&mut self, now: Instant, packet: &Packet) -> bool {
        let before = std::mem::replace(&mut self.left, now);
        let place = self.waiting.iter().position(|(_, waiting)| waiting == packet);
        let entered = match place {
            Some(place) => self.waiting.drain(..=place).next_back(),
            None => self.waiting.front().cloned(),
        };
        entered.is_some_and(|(entered, _)| entered <= before)
    }
}
