//! The shared channel as a state machine: contend, shake hands, send, perhaps answer, release.
//!
//! An end whose packet waited while the floor was taken backs off, sends an RTS if no carrier was
//! heard meanwhile, and the packet when the CTS came. One that gets a packet while the floor is
//! free sends its RTS at once [FAMA-NCS: states BACKOFF and PASSIVE]. Everything that both ends
//! draw is drawn at the RTS, so the whole exchange is known then. An end is asked for its next
//! packet when the floor is free, or when it may answer. A frame of a link protocol that has waited
//! since then is asked for once more just before it leaves: what it says of the other end's frames
//! must be true at that moment.

use super::MacParams;
use crate::link::{ErrorModel, ErrorProcess, Fate, LinkCounters};
use crate::packet::{LinkType, Packet};
use crate::random::{Purpose, Stream};
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::fmt;
use core::time::Duration;

/// What happens at an end (0 or 1) of the channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// A packet arrived at this end.
    Delivery(usize, Packet),
    /// A packet arrived at this end with bit errors.
    Damaged(usize),
    /// This end's packet is about to leave, and can be exchanged for another one until
    /// [`Channel::handle_timeout`] is called again, which is due at once. Only for packets of a
    /// link protocol.
    Leaving(usize),
    /// The last bit of this end's packet has left.
    Sent(usize),
    /// Nothing follows this end's packet: no answer to it came, and one that comes later will need
    /// the floor. Only with acceleration; without, every answer needs the floor.
    Idle(usize),
    /// This end can take a packet.
    Ready(usize),
}

/// What the floor acquisition did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MacCounters {
    /// Handshakes begun.
    pub handshakes: u64,
    /// Of these, without a packet to follow: the RTS or the CTS was lost or collided.
    pub failed: u64,
    /// Packets that left without a handshake, by MAC acceleration.
    pub answers: u64,
}

/// The channel between two half-duplex radios.
pub struct Channel {
    params: MacParams,
    ends: [End; 2],
    phase: Phase,
    /// When the floor was last released.
    free_since: Instant,
    /// Frames in the air, each with the end that it goes to; damaged ones without their packet.
    arrivals: VecDeque<(Instant, usize, Option<Packet>)>,
    outputs: VecDeque<Output>,
    counters: MacCounters,
}

struct End {
    /// What waits; the first one contends.
    queue: VecDeque<Packet>,
    /// Fates of this end's packets, and of its RTS and CTS.
    packet_errors: Box<dyn ErrorProcess + Send>,
    control_errors: Box<dyn ErrorProcess + Send>,
    random: Stream,
    /// When its backoff of this release ends.
    backoff_until: Instant,
    /// When it sends an RTS, if it has a packet and the floor is free until then.
    contends_at: Instant,
    exchange: Exchange,
    counters: LinkCounters,
}

/// Whether the first packet of an end can be exchanged for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exchange {
    No,
    /// It is about to leave.
    Open,
    /// It was exchanged, and is about to leave.
    Done,
}

/// What the channel is doing.
#[derive(Clone, Copy, Debug)]
enum Phase {
    /// Nobody has the floor.
    Free,
    /// Until then the floor is taken although no packet is sent: a handshake failed, a packet
    /// propagates, or an end waits for an answer to its packet.
    Silent { until: Instant, waits: Option<usize> },
    /// An end's first packet is being sent. The answer to it needs no handshake if `answered`.
    Sending { by: usize, ends_at: Instant, fate: Fate, answered: bool },
    /// This end turns its radio round, and may answer from then on.
    Turning { to: usize, at: Instant },
    /// This end may answer now.
    Open { to: usize, until: Instant },
}

impl Channel {
    /// A free channel. Direction `way` of the link is from end `way` to the other end, and
    /// `packet_errors` decides what becomes of packets. RTS and CTS meet the bit errors and fades
    /// of `errors`, too, but are spared by its losses and bursts, which are about packets.
    pub fn new(
        params: MacParams,
        errors: [ErrorModel; 2],
        packet_errors: [Box<dyn ErrorProcess + Send>; 2],
        seed: u64,
        link: u32,
    ) -> Self {
        let mut way = 0;
        let ends = packet_errors.map(|packet_errors| {
            let end = End::new(errors[usize::from(way)], packet_errors, seed, link, way);
            way += 1;
            end
        });
        Self {
            params,
            ends,
            phase: Phase::Free,
            free_since: Instant::ZERO,
            arrivals: VecDeque::new(),
            outputs: VecDeque::new(),
            counters: MacCounters::default(),
        }
    }

    /// Whether an end can take a packet at once: it has none waiting, and the floor is free or it
    /// may answer; or the one that has waited is about to leave and can be exchanged.
    #[must_use]
    pub fn can_send(&self, now: Instant, end: usize) -> bool {
        let may = match self.phase {
            Phase::Free => true,
            Phase::Open { to, until } => to == end && now <= until,
            _ => false,
        };
        let End { queue, exchange, .. } = &self.ends[end];
        *exchange == Exchange::Open || (may && queue.is_empty())
    }

    /// Takes a packet. False: the queue is full and the packet is dropped, and counted.
    pub fn send(&mut self, now: Instant, end: usize, packet: Packet) -> bool {
        let this = &mut self.ends[end];
        if let (Exchange::Open, Some(first)) = (this.exchange, this.queue.front_mut()) {
            *first = packet;
            this.exchange = Exchange::Done;
            return true;
        }
        if this.queue.len() > self.params.queue_frames {
            this.counters.dropped += 1;
            return false;
        }
        this.queue.push_back(packet);
        if this.queue.len() == 1 {
            // What is handed over at the very instant of the release was waiting for it.
            let waited = now <= self.free_since;
            this.contends_at = if waited { this.backoff_until } else { now };
        }
        if let Phase::Open { to, .. } = self.phase
            && to == end
        {
            self.answer(now, end);
        }
        true
    }

    /// Acts on everything that is due, up to [`Output::Leaving`].
    pub fn handle_timeout(&mut self, now: Instant) {
        let is_open = |end: &End| end.exchange == Exchange::Open;
        if !self.outputs.is_empty() && self.ends.iter().any(is_open) {
            return;
        }
        while let Some(at) = self.poll_timeout().filter(|at| *at <= now) {
            match self.arrivals.pop_front_if(|(arrives, ..)| *arrives == at) {
                Some((_, end, Some(packet))) => {
                    self.outputs.push_back(Output::Delivery(end, packet));
                }
                Some((_, end, None)) => self.outputs.push_back(Output::Damaged(end)),
                None => self.advance(at),
            }
            if matches!(self.outputs.back(), Some(Output::Leaving(_))) {
                return;
            }
        }
    }

    /// When [`Channel::handle_timeout`] has something to do.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let arrival = self.arrivals.front().map(|(at, ..)| *at);
        arrival.into_iter().chain(self.phase_ends()).min()
    }

    /// The next thing that happened.
    #[must_use]
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// What became of the packets of an end.
    pub fn counters(&self, end: usize) -> LinkCounters {
        self.ends[end].counters
    }

    /// What the floor acquisition did.
    pub fn mac_counters(&self) -> MacCounters {
        self.counters
    }

    fn phase_ends(&self) -> Option<Instant> {
        match self.phase {
            Phase::Free => {
                let contenders = self.ends.iter().filter(|end| !end.queue.is_empty());
                contenders.map(|end| end.contends_at).min()
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
            Phase::Open { to, .. } => self.release(at, Some(1 - to)),
            Phase::Sending { by, fate, answered, .. } => self.sent(at, by, fate, answered),
            Phase::Turning { to, .. } if self.asks(to) => {}
            Phase::Turning { to, .. } => {
                // The other end notices the carrier, or its absence, a propagation delay later.
                let until = at + self.params.delay.max(Duration::from_nanos(1));
                self.phase = Phase::Open { to, until };
                match self.ends[to].queue.is_empty() {
                    true => self.outputs.push_back(Output::Ready(to)),
                    false => self.answer(at, to),
                }
            }
        }
    }

    /// Whether this end is first asked for the packet with which it replaces the one that has
    /// waited.
    fn asks(&mut self, end: usize) -> bool {
        let End { queue, exchange, .. } = &mut self.ends[end];
        let is_first = *exchange == Exchange::No;
        let of_link = queue.front().is_some_and(|packet| packet.link_type() == LinkType::Frame);
        *exchange = if is_first && of_link { Exchange::Open } else { Exchange::No };
        if *exchange == Exchange::Open {
            self.outputs.push_back(Output::Leaving(end));
        }
        *exchange == Exchange::Open
    }

    /// The end whose backoff has ended.
    fn first_contender(&self, now: Instant) -> usize {
        usize::from(!self.ends[0].contends_by(now))
    }

    /// This end sends its RTS.
    fn contend(&mut self, now: Instant, by: usize) {
        let MacParams { delay, turnaround, .. } = self.params;
        let (rts, cts) = (self.params.rts_time(), self.params.cts_time());
        self.counters.handshakes += 1;
        self.ends[1 - by].exchange = Exchange::No;
        // Until the carrier reaches the other end, it may begin as well: then both RTS are lost.
        let collides = self.ends[1 - by].contends_by(now + delay);
        let bits = self.params.control_bits();
        let answers_at = now + rts + delay + turnaround;
        let ok = !collides
            && self.ends[by].control_errors.draw(now, rts, bits) == Fate::Intact
            && self.ends[1 - by].control_errors.draw(answers_at, cts, bits) == Fate::Intact;
        let starts_at = now + self.params.handshake_time();
        if ok {
            self.transmit(starts_at, by, self.params.acceleration);
        } else {
            self.counters.failed += 1;
            self.phase = Phase::Silent { until: starts_at, waits: None };
        }
    }

    /// This end may answer: its first packet leaves at once if it is small enough.
    fn answer(&mut self, now: Instant, end: usize) {
        let first = self.ends[end].queue.front();
        if first.is_some_and(|packet| packet.wire_len() <= MacParams::ANSWER_BYTES) {
            self.counters.answers += 1;
            self.transmit(now, end, false);
        }
    }

    fn transmit(&mut self, starts_at: Instant, by: usize, answered: bool) {
        let end = &mut self.ends[by];
        let bytes = end.queue.front().map_or(0, Packet::wire_len);
        let airtime = self.params.packet_time(bytes);
        end.counters.frames += 1;
        end.counters.bytes += u64::from(bytes);
        end.counters.busy = end.counters.busy.saturating_add(airtime);
        let fate = end.packet_errors.draw(starts_at, airtime, self.params.packet_bits(bytes));
        self.phase = Phase::Sending { by, ends_at: starts_at + airtime, fate, answered };
    }

    /// The last bit of a packet has left.
    fn sent(&mut self, now: Instant, by: usize, fate: Fate, answered: bool) {
        let MacParams { delay, turnaround, .. } = self.params;
        let packet = self.ends[by].queue.pop_front();
        let counters = &mut self.ends[by].counters;
        let (to, arrives) = (1 - by, now + delay);
        match fate {
            Fate::Intact => self.arrivals.push_back((arrives, to, packet)),
            Fate::Damaged => {
                counters.damaged += 1;
                self.arrivals.push_back((arrives, to, None));
            }
            Fate::Lost => counters.lost += 1,
        }
        self.outputs.push_back(Output::Sent(by));
        self.phase = match (answered, fate) {
            (true, Fate::Intact) => Phase::Turning { to, at: arrives + turnaround },
            (true, _) => Phase::Silent { until: arrives + turnaround + delay, waits: Some(by) },
            (false, _) => Phase::Silent { until: arrives, waits: None },
        };
    }

    /// The floor is free: an end that has a packet backs off.
    fn release(&mut self, now: Instant, unanswered: Option<usize>) {
        self.outputs.extend(unanswered.map(Output::Idle));
        self.phase = Phase::Free;
        self.free_since = now;
        let longest = self.params.backoff_time().as_secs_f64();
        for (number, end) in (0..).zip(&mut self.ends) {
            let backoff = Duration::from_secs_f64(longest * end.random.uniform());
            end.backoff_until = now + backoff;
            end.contends_at = end.backoff_until;
            if end.queue.is_empty() {
                self.outputs.push_back(Output::Ready(number));
            }
        }
    }
}

impl End {
    fn new(
        errors: ErrorModel,
        packet_errors: Box<dyn ErrorProcess + Send>,
        seed: u64,
        link: u32,
        way: u8,
    ) -> Self {
        let control = match errors {
            ErrorModel::Ber(_) | ErrorModel::Fading { .. } => errors,
            ErrorModel::None | ErrorModel::Loss(_) | ErrorModel::Burst { .. } => ErrorModel::None,
        };
        Self {
            queue: VecDeque::new(),
            packet_errors,
            // Streams of their own, as if of a third and a fourth direction.
            control_errors: control.process(seed, link, way + 2),
            random: Stream::new(seed, link, way, Purpose::Backoff),
            backoff_until: Instant::ZERO,
            contends_at: Instant::ZERO,
            exchange: Exchange::No,
            counters: LinkCounters::default(),
        }
    }

    fn contends_by(&self, at: Instant) -> bool {
        !self.queue.is_empty() && self.contends_at <= at
    }
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Channel")
            .field("params", &self.params)
            .field("phase", &self.phase)
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}
