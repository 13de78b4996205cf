//! The interface of all media, which carry frames between stations, and the paths of frames.
//!
//! A medium access method is one file that implements [`Medium`].

use super::counters::LinkCounters;
use super::errors::{ErrorModel, ErrorProcess};
use super::variation::DelayProcess;
use crate::agent::LinkSignal;
use crate::packet::Packet;
use crate::random::{Purpose, Stream};
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;

/// An event at a station of a medium.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// A frame has arrived.
    Delivery {
        /// The station that sent it.
        from: usize,
        /// The station where it has arrived.
        to: usize,
        /// The frame.
        packet: Packet,
    },
    /// A frame has arrived damaged at this station. On a full-duplex medium only where
    /// [`Pair::tells_damage`] is set.
    Damaged {
        /// The station where it has arrived.
        to: usize,
        /// The frame, cut off before its first wrong byte.
        packet: Packet,
    },
    /// A signal to this station about its own frame. After
    /// [`LinkSignal::Leaving`] the station's frame can be exchanged for another one until
    /// [`Medium::handle_timeout`] is called again, which is due at once.
    Signal(usize, LinkSignal),
    /// This station can send a frame.
    Ready(usize),
}

/// What can change of a medium that is in use; `None` stays as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Conditions {
    /// Bits per second, each way.
    pub rate_bps: Option<u64>,
    /// The propagation delay, each way.
    pub delay: Option<Duration>,
    /// What happens to frames, each way.
    pub errors: Option<ErrorModel>,
}

/// A medium that carries frames between stations, which have the numbers from 0 on. Each station
/// has a queue of its own.
pub trait Medium {
    /// Whether a station can send a frame at once.
    #[must_use]
    fn can_send(&self, now: Instant, from: usize) -> bool;

    /// When [`Self::can_send`] turns true; `None` if [`Output::Ready`] reports it.
    #[must_use]
    fn free_at(&self, from: usize) -> Option<Instant>;

    /// Takes a frame. False: the station's queue is full and the frame is dropped, and counted; or
    /// the two stations are not a pair of this medium.
    fn send(&mut self, now: Instant, from: usize, to: usize, packet: Packet) -> bool;

    /// When [`Self::handle_timeout`] has something to do, or there is an output.
    #[must_use]
    fn poll_timeout(&self) -> Option<Instant>;

    /// Acts on what is due.
    fn handle_timeout(&mut self, now: Instant);

    /// The next output.
    #[must_use]
    fn poll_output(&mut self) -> Option<Output>;

    /// Acts on expired timers, and takes the next output.
    #[must_use]
    fn poll(&mut self, now: Instant) -> Option<Output> {
        self.handle_timeout(now);
        self.poll_output()
    }

    /// The counters of the frames from one station to another.
    #[must_use]
    fn counters(&self, from: usize, to: usize) -> LinkCounters;

    /// Changes the conditions of frames that come from now on, for all pairs, with the random
    /// streams of `link` under `seed`. False: they are those of the beginning for ever.
    #[must_use]
    fn change(&mut self, _to: &Conditions, _seed: u64, _link: u32) -> bool {
        false
    }
}

/// Two stations that reach each other. Way 0 is from the first to the second, way 1 is back.
pub struct Pair {
    /// The numbers of the stations.
    pub stations: [usize; 2],
    /// Propagation delay of each way.
    pub delay: [Duration; 2],
    /// What is added to the delay of each way, on a full-duplex medium only.
    pub variation: [Option<Box<dyn DelayProcess + Send>>; 2],
    /// Fates of the packets on each way.
    pub errors: [Box<dyn ErrorProcess + Send>; 2],
    /// Whether the stations are told of frames that arrive damaged.
    pub tells_damage: bool,
    /// Fates of what stations exchange in order to acquire a channel.
    pub(super) control_errors: [Box<dyn ErrorProcess + Send>; 2],
    /// The backoffs of each station, if this is its first pair.
    pub(super) backoff: [Stream; 2],
}

impl Pair {
    /// A pair with the random streams of `link` under `seed`: a number that no other pair of the
    /// world has. Both ways share their fades.
    ///
    /// The frames of a handshake meet the bit errors and fades of `models`, but are spared by
    /// losses and bursts, which are about packets.
    pub fn new(
        stations: [usize; 2],
        delay: [Duration; 2],
        models: [ErrorModel; 2],
        seed: u64,
        link: u32,
    ) -> Self {
        let [down, up] = models;
        let control = [down, up].map(|model| model.of_handshake());
        Self {
            stations,
            delay,
            variation: [None, None],
            errors: [down.process(seed, link, 0), up.process(seed, link, 1)],
            tells_damage: false,
            // Streams of their own, as if of a third and a fourth direction.
            control_errors: [control[0].process(seed, link, 2), control[1].process(seed, link, 3)],
            backoff: [0, 1].map(|way| Stream::new(seed, link, way, Purpose::Backoff)),
        }
    }
}

/// One way between two stations.
pub(super) struct Path {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) delay: Duration,
    pub(super) variation: Option<Box<dyn DelayProcess + Send>>,
    pub(super) errors: Box<dyn ErrorProcess + Send>,
    pub(super) control_errors: Box<dyn ErrorProcess + Send>,
    pub(super) tells_damage: bool,
    pub(super) counters: LinkCounters,
}

/// Paths in the order of their stations.
pub(super) struct Paths(pub(super) Vec<Path>);

impl Paths {
    pub(super) fn new(mut paths: Vec<Path>) -> Self {
        paths.sort_by_key(|path| (path.from, path.to));
        Self(paths)
    }

    /// The place of a path.
    pub(super) fn find(&self, from: usize, to: usize) -> Option<usize> {
        self.0.binary_search_by_key(&(from, to), |path| (path.from, path.to)).ok()
    }

    pub(super) fn counters(&self, from: usize, to: usize) -> LinkCounters {
        self.find(from, to).map_or(LinkCounters::default(), |place| self.0[place].counters)
    }
}

impl Pair {
    /// Both ways.
    pub(super) fn into_paths(self) -> [Path; 2] {
        let Self { stations, delay, variation, errors, tells_damage, control_errors, .. } = self;
        let ([down, up], [control_down, control_up]) = (errors, control_errors);
        let [vary_down, vary_up] = variation;
        let path = |way: usize, variation, errors, control_errors| Path {
            from: stations[way],
            to: stations[1 - way],
            delay: delay[way],
            variation,
            errors,
            control_errors,
            tells_damage,
            counters: LinkCounters::default(),
        };
        [path(0, vary_down, down, control_down), path(1, vary_up, up, control_up)]
    }
}

/// The stations of a channel that all pairs share, each made with the backoffs of its first pair,
/// and their paths.
pub(super) fn on_one_channel<S>(
    pairs: Vec<Pair>,
    mut new: impl FnMut(Stream) -> S,
) -> (Vec<S>, Paths) {
    let mut all: Vec<Option<S>> = Vec::new();
    all.resize_with(stations(&pairs), || None);
    let mut paths = Vec::with_capacity(2 * pairs.len());
    for mut pair in pairs {
        for (number, backoff) in pair.stations.into_iter().zip(&mut pair.backoff) {
            all[number].get_or_insert_with(|| new(backoff.clone()));
        }
        paths.extend(pair.into_paths());
    }
    (all.into_iter().flatten().collect(), Paths::new(paths))
}

/// How many stations there are.
pub(super) fn stations(pairs: &[Pair]) -> usize {
    pairs.iter().flat_map(|pair| pair.stations).max().map_or(0, |last| last + 1)
}

/// A frame without its bytes from the one on in which the first wrong bit is.
pub(super) fn cut(packet: &Packet, intact_bits: u64) -> Packet {
    let whole = packet.bytes().len();
    let intact = usize::try_from(intact_bits / 8).unwrap_or(whole).min(whole);
    Packet::truncated(packet.link_type(), packet.shared_bytes().slice(..intact), packet.wire_len())
}
