//! What people and tests see of an end, and the memory that they let it have.

use super::Tulip;
use super::redundancy::decoder_bytes;
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

    /// From now on packets may take so many bytes, of those that are sent and those that arrive
    /// each, and what else is kept a part of that.
    pub(super) fn follow_limit(&mut self, bytes: usize) {
        self.max_bytes = bytes;
        self.queue.limit_cache(bytes);
        self.receiver.window.limit_cache(bytes);
        self.decoder.limit(decoder_bytes(bytes));
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
