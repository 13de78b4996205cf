//! One emulated hop: a medium with the base station at one end, run against the wall clock.

use airmend_proto::link::{Conditions, Delivery, LinkCounters, Medium, Output};
use airmend_proto::{Instant, Packet};
use std::collections::VecDeque;

/// An end of a hop: the station of the same number in its medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Station,
    Host,
}

impl End {
    /// The end of this number.
    pub(crate) fn of_number(number: usize) -> Self {
        if number == 0 { Self::Station } else { Self::Host }
    }

    fn number(self) -> usize {
        self as usize
    }
}

/// The medium of a hop, and how far its time has come.
pub(crate) struct HopMedium {
    medium: Box<dyn Medium + Send>,
    /// Whether one end sends at a time: who has the floor when depends on the order in which
    /// everything is acted on.
    pub(crate) is_shared: bool,
    at: Instant,
    /// What has arrived from each end, where both ends send whenever they like.
    arrived: [VecDeque<Delivery>; 2],
}

impl HopMedium {
    /// A medium that nobody has used.
    pub(crate) fn new(medium: Box<dyn Medium + Send>, is_shared: bool) -> Self {
        Self { medium, is_shared, at: Instant::ZERO, arrived: Default::default() }
    }

    /// Whether `end` can send a frame at once.
    pub(crate) fn can_send(&self, now: Instant, end: End) -> bool {
        self.medium.can_send(now, end.number())
    }

    /// Takes a frame of `end`; what its full queue refuses is congestion, which is counted.
    pub(crate) fn send(&mut self, now: Instant, end: End, packet: Packet) {
        self.medium.send(now, end.number(), 1 - end.number(), packet);
    }

    /// Takes what the host at `end` sent, or what its kernel forwards.
    pub(crate) fn feed(&mut self, now: Instant, end: End, packets: impl Iterator<Item = Packet>) {
        for packet in packets {
            self.send(now, end, packet);
        }
    }

    /// When the next frame of `end` arrived, if it has arrived by now and both ends send whenever
    /// they like.
    pub(crate) fn arrived_at(&mut self, now: Instant, end: End) -> Option<Instant> {
        while !self.is_shared
            && let Some((at, output)) = self.poll(now)
        {
            if let Output::Delivery { from, packet, .. } = output {
                self.arrived[from].push_back(Delivery { at, packet });
            }
        }
        self.arrived[end.number()].front().map(|delivery| delivery.at)
    }

    /// The next frame of `end` that has arrived, where both ends send whenever they like.
    pub(crate) fn poll_delivery(&mut self, now: Instant, end: End) -> Option<Delivery> {
        self.arrived_at(now, end)?;
        self.arrived[end.number()].pop_front()
    }

    /// The next thing that happened on a shared channel, and when. Each must be acted on before
    /// the next one is asked for, as of its own time.
    pub(crate) fn poll_channel(&mut self, now: Instant) -> Option<(Instant, Output)> {
        if self.is_shared { self.poll(now) } else { None }
    }

    fn poll(&mut self, now: Instant) -> Option<(Instant, Output)> {
        loop {
            if let Some(output) = self.medium.poll_output() {
                return Some((self.at, output));
            }
            self.at = self.medium.poll_timeout().filter(|at| *at <= now)?;
            self.medium.handle_timeout(self.at);
        }
    }

    /// When something next happens, or one of the ends that are fed by an agent can send again.
    pub(crate) fn next_deadline(&self, now: Instant, fed: &[End]) -> Option<Instant> {
        let waits = fed.iter().filter(|end| !self.can_send(now, **end));
        let room = waits.filter_map(|end| self.medium.free_at(end.number()));
        let arrived = self.arrived.iter().filter_map(|arrived| Some(arrived.front()?.at));
        self.medium.poll_timeout().into_iter().chain(arrived).chain(room).min()
    }

    /// Changes the conditions of frames that come from now on; false where that is not possible.
    #[must_use]
    pub(crate) fn change(&mut self, to: &Conditions, seed: u64, link: u32) -> bool {
        self.medium.change(to, seed, link)
    }

    /// What became of the frames of `end`.
    pub(crate) fn counters(&self, end: End) -> LinkCounters {
        self.medium.counters(end.number(), 1 - end.number())
    }
}
