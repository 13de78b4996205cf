//! The runs of both ends: each end is named by its epoch, so that a restart is seen and no old
//! frame is mistaken for a new one.

use super::due::Due;
use super::link_event::LinkEvent;
use crate::time::Instant;
use crate::wire::seq::SeqNumber;
use core::time::Duration;

/// The interval of hello frames while packets wait and the other end is unknown.
const HELLO_INTERVAL: Duration = Duration::from_millis(50);

/// The epoch of this end, the known epoch of the other end, and the question for it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Epochs {
    own: u32,
    peer: Option<u32>,
    hello: Due,
    /// When the first hello frame left, unless others have followed: an answer does not tell which
    /// of several it answers (RFC 6298 §3).
    hello_left: HelloLeft,
}

/// The hello frames that have left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum HelloLeft {
    None,
    One(Instant),
    Several,
}

/// What the epochs of a frame show.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Judgement {
    /// Whether the frame is from the present run of the other end, for the present run of this end.
    pub(crate) is_current: bool,
    /// Whether a new stream begins: an end has restarted.
    pub(crate) is_restart: bool,
    /// The round trip of the hello frame that this frame answers.
    pub(crate) round_trip: Option<Duration>,
}

impl Epochs {
    /// The epochs of an end that knows no other; its own, of both halves of the seed, is never 0.
    pub(crate) fn new(seed: u64) -> Self {
        let own = (seed as u32 ^ (seed >> 32) as u32).max(1);
        Self { own, peer: None, hello: Due::Now, hello_left: HelloLeft::None }
    }

    /// The epoch of this end.
    pub(crate) fn own(&self) -> u32 {
        self.own
    }

    /// The known epoch of the other end.
    pub(crate) fn peer(&self) -> Option<u32> {
        self.peer
    }

    /// Asks for the epoch of the other end, if that is unknown.
    pub(crate) fn ask(&mut self) {
        if self.peer.is_none() {
            self.hello = Due::Now;
        }
    }

    /// The same, unless the next hello frame is due already.
    pub(crate) fn keep_asking(&mut self) {
        if self.hello == Due::Never {
            self.ask();
        }
    }

    /// Whether a hello frame is due now; it leaves with this call, and while packets wait others
    /// follow.
    pub(crate) fn take_hello(&mut self, now: Instant, packets_wait: bool) -> bool {
        let is_due = self.hello == Due::Now && self.peer.is_none();
        if is_due {
            self.hello = if packets_wait { Due::At(now + HELLO_INTERVAL) } else { Due::Never };
            self.hello_left = match self.hello_left {
                HelloLeft::None => HelloLeft::One(now),
                HelloLeft::One(_) | HelloLeft::Several => HelloLeft::Several,
            };
        }
        is_due
    }

    /// The time of the next hello frame.
    pub(crate) fn hello_timer(&self) -> Option<Instant> {
        self.hello.timer().filter(|_| self.peer.is_none())
    }

    /// Makes a hello frame whose time has come due.
    pub(crate) fn expire(&mut self, now: Instant) {
        self.hello.expire(now);
    }

    /// Judges the epochs of a frame: of its sender, and of its receiver as the sender knows it.
    /// Learns later epochs; epochs are compared as in RFC 1982.
    pub(crate) fn judge(
        &mut self,
        now: Instant,
        (from, to): (u32, u32),
        report: &mut dyn FnMut(LinkEvent),
    ) -> Judgement {
        let mut judgement = Judgement::default();
        match self.peer.map(SeqNumber) {
            None => {
                self.peer = Some(from);
                report(LinkEvent::PeerFound(from));
                judgement.round_trip = match self.hello_left {
                    HelloLeft::One(left) if to == self.own => Some(now - left),
                    _ => None,
                };
            }
            Some(peer) if peer == SeqNumber(from) => {}
            Some(peer) if peer < SeqNumber(from) => {
                self.peer = Some(from);
                report(LinkEvent::PeerRestarted(from));
                judgement.is_restart = true;
            }
            Some(_) => {
                // From a former run, or from a run with too low an epoch: the answer has both
                // epochs.
                report(LinkEvent::Stale);
                return judgement;
            }
        }
        judgement.is_current = to == self.own;
        if !judgement.is_current && to != 0 {
            report(LinkEvent::Stale);
            if SeqNumber(to) > SeqNumber(self.own) {
                // A former run of this end had a later epoch: take the epoch after it.
                self.own = to.wrapping_add(1).max(1);
                report(LinkEvent::EpochRaised(self.own));
                judgement.is_restart = true;
            }
        }
        judgement
    }
}
