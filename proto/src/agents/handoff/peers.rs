//! The other base stations: which run of each is the present one, and which of its messages are
//! new.
//!
//! A station believes that an epoch is present when a message names it together with the station's
//! own epoch, which the sender can have only from a hello of this run. An epoch that another one
//! has followed is never believed again. So no message of an earlier run of either station is taken
//! for a new one, without any clock: that of a station may begin anew at each start.

use super::message::{Header, StationId};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

/// The most other stations: entries are never removed, so that no replay is forgotten.
const MAX_PEERS: usize = 64;
/// The most epochs of a station that are known and not believed: a hello names them, and the
/// station recognises its own. Recorded hellos of earlier runs may be among them.
const MAX_CANDIDATES: usize = 4;
/// The most earlier runs of a station that are remembered; the earliest makes room.
const MAX_EARLIER: usize = 1_024;

/// The other stations.
#[derive(Debug)]
pub(super) struct Peers {
    own: StationId,
    own_epoch: u64,
    peers: BTreeMap<StationId, Peer>,
}

#[derive(Debug, Default)]
struct Peer {
    /// The present run.
    current: Option<Run>,
    /// Epochs of hellos that may be recorded ones; the newest is the last.
    candidates: Vec<u64>,
    /// Runs that were the present one, since this station began.
    earlier: VecDeque<u64>,
}

impl Peer {
    fn hear(&mut self, epoch: u64) {
        self.candidates.retain(|candidate| *candidate != epoch);
        if self.candidates.len() >= MAX_CANDIDATES {
            self.candidates.remove(0);
        }
        self.candidates.push(epoch);
    }

    fn believe(&mut self, header: &Header) {
        self.candidates.retain(|candidate| *candidate != header.epoch);
        if let Some(last) = self.current.replace(Run::new(header)) {
            if self.earlier.len() >= MAX_EARLIER {
                self.earlier.pop_front();
            }
            self.earlier.push_back(last.epoch);
        }
    }

    fn epochs(&self) -> impl Iterator<Item = u64> {
        let current = self.current.iter().map(|run| run.epoch);
        current.chain(self.candidates.iter().copied())
    }
}

/// A run of a station, and the messages of it that have arrived.
#[derive(Debug)]
struct Run {
    epoch: u64,
    /// The highest counter.
    highest: u64,
    /// The counters below it: bit n stands for `highest - n`.
    arrived: u128,
}

/// Why a message is not processed although its tag is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stale {
    /// It arrived before, or is too old to tell.
    Replayed,
    /// Its sender's run is not known to be the present one.
    Unknown,
}

impl Run {
    fn new(header: &Header) -> Self {
        Self { epoch: header.epoch, highest: header.counter, arrived: 1 }
    }

    /// Whether a counter is new, which it then no longer is (RFC 4303 §3.4.3).
    fn accept(&mut self, counter: u64) -> bool {
        if counter > self.highest {
            let ahead = (counter - self.highest).try_into().unwrap_or(u32::MAX);
            self.arrived = self.arrived.checked_shl(ahead).unwrap_or(0) | 1;
            self.highest = counter;
            return true;
        }
        let bit = (self.highest - counter).try_into().ok().and_then(|n| 1_u128.checked_shl(n));
        let is_new = bit.is_some_and(|bit| self.arrived & bit == 0);
        self.arrived |= bit.unwrap_or(0);
        is_new
    }
}

impl Peers {
    pub(super) fn new(own: StationId, own_epoch: u64) -> Self {
        Self { own, own_epoch, peers: BTreeMap::new() }
    }

    /// The number of stations whose present run is known.
    pub(super) fn known(&self) -> usize {
        self.peers.values().filter(|peer| peer.current.is_some()).count()
    }

    /// The content of a hello.
    pub(super) fn heard(&self) -> Vec<(StationId, u64)> {
        let peers = self.peers.iter();
        peers
            .flat_map(|(&station, peer)| peer.epochs().map(move |epoch| (station, epoch)))
            .collect()
    }

    /// Judges a message that is not a hello.
    pub(super) fn accept(&mut self, header: &Header) -> Result<(), Stale> {
        let peer = self.peers.get_mut(&header.from).and_then(|peer| peer.current.as_mut());
        let run = peer.filter(|run| run.epoch == header.epoch).ok_or(Stale::Unknown)?;
        if run.accept(header.counter) { Ok(()) } else { Err(Stale::Replayed) }
    }

    /// Judges a hello; returns whether it wants an answer.
    pub(super) fn accept_hello(
        &mut self,
        header: &Header,
        heard: &[(StationId, u64)],
    ) -> Result<bool, Stale> {
        if self.peers.len() >= MAX_PEERS && !self.peers.contains_key(&header.from) {
            return Err(Stale::Unknown);
        }
        let knows_this_run = heard.contains(&(self.own, self.own_epoch));
        let peer = self.peers.entry(header.from).or_default();
        if let Some(run) = peer.current.as_mut().filter(|run| run.epoch == header.epoch) {
            return if run.accept(header.counter) {
                Ok(!knows_this_run)
            } else {
                Err(Stale::Replayed)
            };
        }
        if peer.earlier.contains(&header.epoch) {
            return Err(Stale::Replayed);
        }
        match knows_this_run {
            true => peer.believe(header),
            false => peer.hear(header.epoch),
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::handoff::message::To;

    const OTHER: StationId = StationId(2);

    fn header(epoch: u64, counter: u64) -> Header {
        Header { from: OTHER, to: To::Group, epoch, counter }
    }

    #[test]
    fn each_counter_is_accepted_once_in_any_order() {
        let mut run = Run::new(&header(1, 200));
        for (counter, is_new) in [
            (200, false),
            (199, true),
            (199, false),
            (202, true),
            (201, true),
            (201, false),
            (75, true),
            (74, false), // Too old to tell.
            (1_000, true),
            (873, true),
            (872, false),
            (u64::MAX, true),
            (u64::MAX, false),
            (0, false),
        ] {
            assert_eq!(run.accept(counter), is_new, "{counter}");
        }
    }

    #[test]
    fn a_run_is_believed_when_it_names_this_one() {
        let own = (StationId(1), 10);
        let mut peers = Peers::new(own.0, own.1);
        assert_eq!(peers.accept(&header(5, 1)), Err(Stale::Unknown));
        assert_eq!(peers.accept_hello(&header(5, 1), &[]), Ok(true));
        assert_eq!(peers.accept(&header(5, 2)), Err(Stale::Unknown));
        assert_eq!(peers.accept_hello(&header(5, 3), &[(own.0, 9)]), Ok(true), "an earlier run");
        assert_eq!(peers.known(), 0);
        assert_eq!(peers.accept_hello(&header(5, 4), &[own]), Ok(true));
        assert_eq!((peers.known(), peers.heard()), (1, [(OTHER, 5)].to_vec()));
        assert_eq!(peers.accept(&header(5, 4)), Err(Stale::Replayed));
        assert_eq!(peers.accept(&header(5, 5)), Ok(()));
    }

    #[test]
    fn an_earlier_run_never_comes_back() {
        let own = (StationId(1), 10);
        let mut peers = Peers::new(own.0, own.1);
        assert_eq!(peers.accept_hello(&header(5, 1), &[own]), Ok(true));
        // The peer restarts, and has not heard of this station.
        assert_eq!(peers.accept_hello(&header(6, 1), &[]), Ok(true));
        assert_eq!(peers.heard(), [(OTHER, 5), (OTHER, 6)]);
        assert_eq!(peers.accept_hello(&header(6, 2), &[own]), Ok(true));
        for old in [header(5, 1), header(5, 9)] {
            assert_eq!(peers.accept_hello(&old, &[own]), Err(Stale::Replayed));
            assert_eq!(peers.accept(&old), Err(Stale::Unknown));
        }
        assert_eq!(peers.accept(&header(6, 3)), Ok(()));
    }

    #[test]
    fn a_clock_that_begins_anew_does_no_harm() {
        let own = (StationId(1), 10);
        let mut peers = Peers::new(own.0, own.1);
        assert_eq!(peers.accept_hello(&header(5, 1), &[own]), Ok(true));
        // Recorded hellos of runs that were before this station began.
        for recorded in 100..110 {
            assert_eq!(peers.accept_hello(&header(recorded, 1), &[]), Ok(true));
        }
        assert_eq!(peers.accept_hello(&header(2, 1), &[]), Ok(true));
        assert_eq!(peers.heard().last(), Some(&(OTHER, 2)));
        assert_eq!(peers.heard().len(), 1 + MAX_CANDIDATES);
        assert_eq!(peers.accept_hello(&header(2, 2), &[own]), Ok(true));
        assert_eq!(peers.accept(&header(2, 3)), Ok(()));
        assert_eq!(peers.accept_hello(&header(5, 9), &[own]), Err(Stale::Replayed));
        for run in 1_000..1_000 + 2 * MAX_EARLIER as u64 {
            assert_eq!(peers.accept_hello(&header(run, 1), &[own]), Ok(true));
        }
        assert_eq!(peers.peers[&OTHER].earlier.len(), MAX_EARLIER);
    }

    #[test]
    fn there_are_so_many_stations_at_most() {
        let mut peers = Peers::new(StationId(1), 10);
        for station in 2..1_000 {
            let hello = Header { from: StationId(station), ..header(1, 1) };
            assert_eq!(peers.accept_hello(&hello, &[]).is_ok(), station < 2 + MAX_PEERS as u32);
        }
    }
}
