//! The air hop: two one-way links, or one channel that two half-duplex radios share.

use airmend_proto::link::mac::{Channel, Output};
use airmend_proto::link::{Delivery, Link, LinkCounters};
use airmend_proto::{Instant, Packet};

/// An end of the air hop, which sends in the direction of the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Station,
    Mobile,
}

impl End {
    /// The end of this number in a channel.
    pub(crate) fn of_number(number: usize) -> Self {
        if number == 0 { Self::Station } else { Self::Mobile }
    }
}

/// Both directions of one hop, seen from the base station.
#[derive(Debug)]
pub(crate) struct HopLinks {
    /// Towards the host: fed by the agent, which has the queue, or by a kernel that forwards.
    pub(crate) outbound: Link,
    /// From the host: fed by its kernel, or by the mobile's end of a link, which has a queue too.
    pub(crate) inbound: Link,
}

/// What is between the base station and the mobile.
#[derive(Debug)]
pub(crate) enum Air {
    /// Both ends send whenever they like.
    FullDuplex(HopLinks),
    /// One sends at a time.
    HalfDuplex(Radio),
}

/// The shared channel, and how far its time has come.
#[derive(Debug)]
pub(crate) struct Radio {
    channel: Channel,
    at: Instant,
}

impl Air {
    /// A channel that nobody has used.
    pub(crate) fn half_duplex(channel: Channel) -> Self {
        Self::HalfDuplex(Radio { channel, at: Instant::ZERO })
    }

    /// Whether `end` can send a frame at once.
    pub(crate) fn can_send(&self, now: Instant, end: End) -> bool {
        match self {
            Self::FullDuplex(links) => links.way(end).can_send(now),
            Self::HalfDuplex(radio) => radio.channel.can_send(now, end as usize),
        }
    }

    /// Takes a frame of `end`; what its full queue refuses is congestion, which is counted.
    pub(crate) fn send(&mut self, now: Instant, end: End, packet: Packet) {
        match self {
            Self::FullDuplex(links) => links.way_mut(end).send(now, packet),
            Self::HalfDuplex(radio) => radio.channel.send(now, end as usize, packet),
        };
    }

    /// When the next frame of `end` arrives, where both ends send whenever they like.
    pub(crate) fn next_delivery(&self, end: End) -> Option<Instant> {
        match self {
            Self::FullDuplex(links) => links.way(end).next_delivery(),
            Self::HalfDuplex(_) => None,
        }
    }

    /// The next frame of `end` that has arrived, where both ends send whenever they like.
    pub(crate) fn poll_delivery(&mut self, now: Instant, end: End) -> Option<Delivery> {
        match self {
            Self::FullDuplex(links) => links.way_mut(end).poll_delivery(now),
            Self::HalfDuplex(_) => None,
        }
    }

    /// The next thing that happened on a shared channel, and when. Each must be acted on before
    /// the next one is asked for, as of its own time: who has the floor when depends on it.
    pub(crate) fn poll_channel(&mut self, now: Instant) -> Option<(Instant, Output)> {
        let Self::HalfDuplex(Radio { channel, at }) = self else { return None };
        loop {
            if let Some(output) = channel.poll_output() {
                return Some((*at, output));
            }
            *at = channel.poll_timeout().filter(|at| *at <= now)?;
            channel.handle_timeout(*at);
        }
    }

    /// When something next happens, or one of the ends that are fed by an agent can send again.
    pub(crate) fn next_deadline(&self, now: Instant, fed: &[End]) -> Option<Instant> {
        match self {
            Self::FullDuplex(links) => {
                let arrivals = [&links.outbound, &links.inbound].map(Link::next_delivery);
                let fed = fed.iter().map(|end| links.way(*end));
                let room = fed.filter(|link| !link.can_send(now)).map(Link::free_at);
                arrivals.into_iter().flatten().chain(room).min()
            }
            Self::HalfDuplex(radio) => radio.channel.poll_timeout(),
        }
    }

    /// The counters of the frames of `end`.
    pub(crate) fn counters(&self, end: End) -> LinkCounters {
        match self {
            Self::FullDuplex(links) => links.way(end).counters(),
            Self::HalfDuplex(radio) => radio.channel.counters(end as usize),
        }
    }
}

impl HopLinks {
    fn way(&self, end: End) -> &Link {
        match end {
            End::Station => &self.outbound,
            End::Mobile => &self.inbound,
        }
    }

    fn way_mut(&mut self, end: End) -> &mut Link {
        match end {
            End::Station => &mut self.outbound,
            End::Mobile => &mut self.inbound,
        }
    }
}
