//! FAMA-NCS as a state machine: contend, shake hands, send, perhaps answer, release.
//!
//! A station whose packet waited while the floor was taken backs off, sends an RTS if no carrier
//! was heard meanwhile, and the packet when the CTS came. One that gets a packet while the floor is
//! free sends its RTS at once [FAMA-NCS: states BACKOFF and PASSIVE]. Everything that stations draw
//! is drawn at the RTS, so the whole exchange is known then. A station is asked for its next packet
//! when the floor is free, or when it may answer. A frame of a link protocol that has waited since
//! then is asked for once more just before it leaves: what it says of the other station's frames
//! must be true at that moment. All stations hear each other's carrier.

use super::MacParams;
use crate::agent::LinkSignal;
use crate::link::medium::{Medium, Output, Pair, Path, Paths, cut, on_one_channel};
use crate::link::{Fate, LinkCounters};
use crate::packet::{LinkType, Packet};
use crate::random::Stream;
use crate::time::Instant;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

/// The counters of the floor acquisition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MacCounters {
    /// Handshakes begun.
    pub handshakes: u64,
    /// Of these, without a packet to follow: the RTS or the CTS was lost or collided.
    pub failed: u64,
    /// Packets that left without a handshake, by MAC acceleration.
    pub answers: u64,
}

/// The channel that half-duplex radios share.
pub struct FamaNcs {
    params: MacParams,
    stations: Vec<Station>,
    paths: Paths,
    phase: Phase,
    /// When the floor was last released.
    free_since: Instant,
    /// Frames in the air, each with its path; damaged ones without their packet.
    arrivals: VecDeque<(Instant, Output)>,
    outputs: VecDeque<Output>,
    /// The times of the outputs.
    happened_at: Instant,
    counters: MacCounters,
}

struct Station {
    /// The queued packets, each with its path; the first one contends.
    queue: VecDeque<(usize, Packet)>,
    random: Stream,
    /// When its backoff of this release ends.
    backoff_until: Instant,
    /// When it sends an RTS, if it has a packet and the floor is free until then.
    contends_at: Instant,
    exchange: Exchange,
}

/// Whether the first packet of a station can be exchanged for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exchange {
    No,
    /// It is about to leave.
    Open,
    /// It was exchanged, and is about to leave.
    Done,
}

/// The phase of the channel.
#[derive(Clone, Copy, Debug)]
enum Phase {
    /// Nobody has the floor.
    Free,
    /// Until then the floor is taken although no packet is sent: a handshake failed, a packet
    /// propagates, or a station waits for an answer to its packet.
    Silent { until: Instant, waits: Option<usize> },
    /// A station's first packet is being sent. The answer to it needs no handshake if `answered`.
    Sending { by: usize, ends_at: Instant, fate: Fate, answered: bool },
    /// Station `to` turns its radio round, and may answer station `by` from then on.
    Turning { by: usize, to: usize, at: Instant },
    /// Station `to` may answer station `by` now.
    Open { by: usize, to: usize, until: Instant },
}

impl FamaNcs {
    /// A free channel. No path is longer than the delay of `params`.
    pub fn new(params: MacParams, pairs: Vec<Pair>) -> Self {
        let (stations, paths) = on_one_channel(pairs, Station::new);
        Self {
            params,
            stations,
            paths,
            phase: Phase::Free,
            free_since: Instant::ZERO,
            arrivals: VecDeque::new(),
            outputs: VecDeque::new(),
            happened_at: Instant::ZERO,
            counters: MacCounters::default(),
        }
    }

    /// The counters of the floor acquisition.
    pub fn mac_counters(&self) -> MacCounters {
        self.counters
    }

    fn next_event(&self) -> Option<Instant> {
        let arrival = self.arrivals.front().map(|(at, ..)| *at);
        arrival.into_iter().chain(self.phase_ends()).min()
    }

    fn phase_ends(&self) -> Option<Instant> {
        match self.phase {
            Phase::Free => {
                let contenders = self.stations.iter().filter(|station| !station.queue.is_empty());
                contenders.map(|station| station.contends_at).min()
            }
            Phase::Silent { until, .. } | Phase::Open { until, .. } => Some(until),
            Phase::Sending { ends_at, .. } => Some(ends_at),
            Phase::Turning { at, .. } => Some(at),
        }
    }

    /// The phase ends at `at`, which is now.
    fn advance(&mut self, at: Instant) {
        let phase = self.phase;
        match phase {
            Phase::Free => {
                let by = self.first_contender(at);
                if !self.asks(by) {
                    self.contend(at, by);
                }
            }
            Phase::Silent { waits, .. } => self.release(at, waits),
            Phase::Open { by, .. } => self.release(at, Some(by)),
            Phase::Sending { by, fate, answered, .. } => self.sent(at, by, fate, answered),
            Phase::Turning { to, .. } if self.asks(to) => {}
            Phase::Turning { by, to, .. } => {
                // The other station notices the carrier, or its absence, a propagation delay later.
                let until = at + self.params.delay.max(Duration::from_nanos(1));
                self.phase = Phase::Open { by, to, until };
                match self.stations[to].queue.is_empty() {
                    true => self.outputs.push_back(Output::Ready(to)),
                    false => self.answer(at, by, to),
                }
            }
        }
    }

    /// Whether this station is first asked for the packet with which it replaces the one that has
    /// waited.
    fn asks(&mut self, station: usize) -> bool {
        let Station { queue, exchange, .. } = &mut self.stations[station];
        let is_first = *exchange == Exchange::No;
        let of_link =
            queue.front().is_some_and(|(_, packet)| packet.link_type() == LinkType::Frame);
        *exchange = if is_first && of_link { Exchange::Open } else { Exchange::No };
        if *exchange == Exchange::Open {
            self.outputs.push_back(Output::Signal(station, LinkSignal::Leaving));
        }
        *exchange == Exchange::Open
    }

    /// The station whose backoff has ended, the first one of several.
    fn first_contender(&self, now: Instant) -> usize {
        self.stations.iter().position(|station| station.contends_by(now)).unwrap_or(0)
    }

    /// This station sends its RTS.
    fn contend(&mut self, now: Instant, by: usize) {
        let MacParams { delay, turnaround, .. } = self.params;
        let (rts, cts) = (self.params.rts_time(), self.params.cts_time());
        self.counters.handshakes += 1;
        let Some(&(path, _)) = self.stations[by].queue.front() else { return };
        // Until the carrier reaches the others, they may begin as well: then all RTS are lost.
        let mut collides = false;
        for (_, other) in self.stations.iter_mut().enumerate().filter(|(number, _)| *number != by) {
            other.exchange = Exchange::No;
            collides |= other.contends_by(now + delay);
        }
        let back = self.paths.find(self.paths.0[path].to, by).unwrap_or(path);
        let bits = self.params.control_bits();
        let answers_at = now + rts + delay + turnaround;
        let ok = !collides
            && self.paths.0[path].control_errors.draw(now, rts, bits) == Fate::Intact
            && self.paths.0[back].control_errors.draw(answers_at, cts, bits) == Fate::Intact;
        let starts_at = now + self.params.handshake_time();
        if ok {
            self.transmit(starts_at, by, self.params.acceleration);
        } else {
            self.counters.failed += 1;
            self.phase = Phase::Silent { until: starts_at, waits: None };
        }
    }

    /// Station `to` may answer station `by`: its first packet leaves at once if it is for that
    /// station and small enough.
    fn answer(&mut self, now: Instant, by: usize, to: usize) {
        let is_answer = |(path, packet): &(usize, Packet)| {
            self.paths.0[*path].to == by && packet.wire_len() <= MacParams::ANSWER_BYTES
        };
        if self.stations[to].queue.front().is_some_and(is_answer) {
            self.counters.answers += 1;
            self.transmit(now, to, false);
        }
    }

    fn transmit(&mut self, starts_at: Instant, by: usize, answered: bool) {
        let Some((path, packet)) = self.stations[by].queue.front() else { return };
        let bytes = packet.wire_len();
        let airtime = self.params.packet_time(bytes);
        let Path { errors, counters, .. } = &mut self.paths.0[*path];
        counters.frames += 1;
        counters.bytes += u64::from(bytes);
        counters.busy = counters.busy.saturating_add(airtime);
        let fate = errors.draw(starts_at, airtime, self.params.packet_bits(bytes));
        self.phase = Phase::Sending { by, ends_at: starts_at + airtime, fate, answered };
    }

    /// The last bit of a packet has left.
    fn sent(&mut self, now: Instant, by: usize, fate: Fate, answered: bool) {
        let MacParams { delay, turnaround, .. } = self.params;
        let Some((path, packet)) = self.stations[by].queue.pop_front() else { return };
        let Path { to, delay: propagation, counters, .. } = &mut self.paths.0[path];
        let (to, arrives) = (*to, now + *propagation);
        match fate {
            Fate::Intact => {
                self.arrivals.push_back((arrives, Output::Delivery { from: by, to, packet }));
            }
            Fate::Damaged(intact) => {
                counters.damaged += 1;
                let intact = intact.saturating_sub(self.params.packet_bits(0));
                let packet = cut(&packet, intact);
                self.arrivals.push_back((arrives, Output::Damaged { to, packet }));
            }
            Fate::Lost => counters.lost += 1,
        }
        self.outputs.push_back(Output::Signal(by, LinkSignal::Sent));
        self.phase = match (answered, fate) {
            (true, Fate::Intact) => Phase::Turning { by, to, at: arrives + turnaround },
            (true, _) => Phase::Silent { until: arrives + turnaround + delay, waits: Some(by) },
            (false, _) => Phase::Silent { until: arrives, waits: None },
        };
    }

    /// The floor is free: a station that has a packet backs off.
    fn release(&mut self, now: Instant, unanswered: Option<usize>) {
        self.outputs.extend(unanswered.map(|by| Output::Signal(by, LinkSignal::Idle)));
        self.phase = Phase::Free;
        self.free_since = now;
        let longest = self.params.backoff_time().as_secs_f64();
        for (number, station) in self.stations.iter_mut().enumerate() {
            let backoff = Duration::from_secs_f64(longest * station.random.uniform());
            station.backoff_until = now + backoff;
            station.contends_at = station.backoff_until;
            if station.queue.is_empty() {
                self.outputs.push_back(Output::Ready(number));
            }
        }
    }
}

impl Medium for FamaNcs {
    /// A station can send if it has nothing waiting, and the floor is free or it may answer; or if
    /// what has waited is about to leave and can be exchanged.
    fn can_send(&self, now: Instant, from: usize) -> bool {
        let may = match self.phase {
            Phase::Free => true,
            Phase::Open { to, until, .. } => to == from && now <= until,
            _ => false,
        };
        let Station { queue, exchange, .. } = &self.stations[from];
        *exchange == Exchange::Open || (may && queue.is_empty())
    }

    fn free_at(&self, _from: usize) -> Option<Instant> {
        None
    }

    fn send(&mut self, now: Instant, from: usize, to: usize, packet: Packet) -> bool {
        let Some(path) = self.paths.find(from, to) else { return false };
        let this = &mut self.stations[from];
        if let (Exchange::Open, Some(first)) = (this.exchange, this.queue.front_mut()) {
            *first = (path, packet);
            this.exchange = Exchange::Done;
            return true;
        }
        if this.queue.len() > self.params.queue_frames {
            self.paths.0[path].counters.dropped += 1;
            return false;
        }
        this.queue.push_back((path, packet));
        if this.queue.len() == 1 {
            // What is handed over at the very instant of the release was waiting for it.
            let waited = now <= self.free_since;
            this.contends_at = if waited { this.backoff_until } else { now };
        }
        if let Phase::Open { by, to, .. } = self.phase
            && to == from
        {
            self.answer(now, by, to);
        }
        true
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if self.outputs.is_empty() { self.next_event() } else { Some(self.happened_at) }
    }

    /// Acts on everything that is due, up to [`LinkSignal::Leaving`].
    fn handle_timeout(&mut self, now: Instant) {
        let is_open = |station: &Station| station.exchange == Exchange::Open;
        if !self.outputs.is_empty() && self.stations.iter().any(is_open) {
            return;
        }
        while let Some(at) = self.next_event().filter(|at| *at <= now) {
            self.happened_at = at;
            match self.arrivals.pop_front_if(|(arrives, ..)| *arrives == at) {
                Some((_, output)) => self.outputs.push_back(output),
                None => self.advance(at),
            }
            if matches!(self.outputs.back(), Some(Output::Signal(_, LinkSignal::Leaving))) {
                return;
            }
        }
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    fn counters(&self, from: usize, to: usize) -> LinkCounters {
        self.paths.counters(from, to)
    }
}

impl Station {
    fn new(random: Stream) -> Self {
        Self {
            queue: VecDeque::new(),
            random,
            backoff_until: Instant::ZERO,
            contends_at: Instant::ZERO,
            exchange: Exchange::No,
        }
    }

    fn contends_by(&self, at: Instant) -> bool {
        !self.queue.is_empty() && self.contends_at <= at
    }
}

impl fmt::Debug for FamaNcs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FamaNcs")
            .field("params", &self.params)
            .field("phase", &self.phase)
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}
