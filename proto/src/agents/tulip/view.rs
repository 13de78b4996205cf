//! What people and tests see of an end.

use super::Tulip;
use crate::agent::PathView;

impl Tulip {
    /// The number of packets that wait for the link, and of sent packets that may have to be
    /// retransmitted.
    pub fn backlog(&self) -> (usize, u32) {
        (self.queue.len(), self.sender.pool.span())
    }

    /// Bytes of packets that have arrived and wait for packets before them, or for the network
    /// layer, and of those that are kept to recover others from.
    pub fn held_bytes(&self) -> usize {
        self.receiver.window.bytes() + self.decoder.bytes()
    }

    /// The path as the control of the rate and the reply timeout know it.
    pub(super) fn view(&self) -> PathView {
        let (queued, in_flight) = self.backlog();
        let round_trip = self.pace.smoothed_round_trip();
        PathView {
            rate: self.rate.rate(),
            loss: self.rate.loss(),
            round_trip: round_trip.map(|(smoothed, _)| smoothed),
            deviation: round_trip.map(|(_, deviation)| deviation),
            least_round_trip: self.pace.least_round_trip(),
            queued,
            in_flight,
            memory: self.held_bytes() + self.sender.pool.bytes() + self.queue.bytes(),
        }
    }
}
