//! Full duplex with a queue discipline in front of one or both serialisers.

use super::discipline::{CoDelParams, Discipline, Drops, QueueDiscipline, Waiting};
use super::medium::{Medium, Output, Pair};
use super::trace::VariableRate;
use super::{FRAME_LIMIT, FullDuplex, LinkCounters, LinkParams};
use crate::packet::Packet;
use crate::random::{Purpose, Stream};
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

/// A [`FullDuplex`] medium whose frames wait in a discipline until their serialiser is free. What
/// it drops counts as dropped by the queue. All stations of one side share its queue.
pub struct Managed {
    /// Its own queues are empty where a discipline stands before them.
    inner: FullDuplex,
    /// The discipline of each side, and a station of that side; none of a FIFO.
    queues: [Option<(Box<dyn Discipline + Send>, usize)>; 2],
    drops: Drops,
}

impl Managed {
    /// An idle medium, like [`FullDuplex::new`], with the disciplines of its two ways. Random
    /// streams are those of `link` under `seed`. The lookahead of a way with a discipline is 0.
    pub fn new(
        params: [LinkParams; 2],
        disciplines: [(QueueDiscipline, CoDelParams); 2],
        pairs: Vec<Pair>,
        seed: u64,
        link: u32,
    ) -> Self {
        let stations = pairs.first().map_or([0, 1], |pair| pair.stations);
        let queues = [0, 1].map(|way| {
            let (discipline, codel) = disciplines[way];
            let random = Stream::new(seed, link, way as u8, Purpose::Queue);
            let LinkParams { queue_frames, rate_bps, .. } = params[way];
            let queue = discipline.queue(queue_frames.min(FRAME_LIMIT), rate_bps, codel, random)?;
            Some((queue, stations[way]))
        });
        let mut inner = params;
        for (params, _) in inner.iter_mut().zip(&queues).filter(|(_, queue)| queue.is_some()) {
            (params.queue_frames, params.lookahead) = (0, core::time::Duration::ZERO);
        }
        Self { inner: FullDuplex::new(inner, pairs), queues, drops: Drops::default() }
    }

    /// Lets the rates of the two ways vary.
    #[must_use]
    pub fn with_rates(self, rates: [Option<&VariableRate>; 2]) -> Self {
        Self { inner: self.inner.with_rates(rates), ..self }
    }

    /// When the next packet leaves the queue of a side, if one waits.
    fn leaves_at(&self, side: usize) -> Option<Instant> {
        let (queue, station) = self.queues[side].as_ref()?;
        if queue.is_empty() { None } else { self.inner.free_at(*station) }
    }

    /// Lets the packets leave that are due: each as the one before it has been serialised.
    fn serve(&mut self, now: Instant) {
        for side in 0..2 {
            while let Some(at) = self.leaves_at(side).filter(|at| *at <= now) {
                self.transmit(side, at);
            }
        }
    }

    fn transmit(&mut self, side: usize, at: Instant) {
        let Some((queue, _)) = &mut self.queues[side] else { return };
        if let Some(Waiting { from, to, packet, .. }) = queue.dequeue(at, &mut self.drops) {
            self.inner.send(at, from, to, packet);
        }
    }
}

impl Medium for Managed {
    fn can_send(&self, now: Instant, from: usize) -> bool {
        self.inner.can_send(now, from) && self.leaves_at(self.inner.side(from)).is_none()
    }

    /// With a queue no later than it is true: when the next packet leaves the queue.
    fn free_at(&self, from: usize) -> Option<Instant> {
        self.inner.free_at(from)
    }

    fn send(&mut self, now: Instant, from: usize, to: usize, packet: Packet) -> bool {
        self.serve(now);
        let side = self.inner.side(from);
        let Some((queue, _)) = &mut self.queues[side] else {
            return self.inner.send(now, from, to, packet);
        };
        if !self.inner.joins(from, to) {
            return false;
        }
        let accepted = queue.enqueue(Waiting { from, to, since: now, packet }, &mut self.drops);
        if self.inner.can_send(now, from) {
            self.transmit(side, now);
        }
        accepted
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let leaving = (0..2).filter_map(|side| self.leaves_at(side));
        leaving.chain(self.inner.poll_timeout()).min()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.serve(now);
        self.inner.handle_timeout(now);
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.inner.poll_output()
    }

    fn counters(&self, from: usize, to: usize) -> LinkCounters {
        let counters = self.inner.counters(from, to);
        LinkCounters { dropped: counters.dropped + self.drops.between(from, to), ..counters }
    }
}

impl fmt::Debug for Managed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Managed").field("inner", &self.inner).finish_non_exhaustive()
    }
}
