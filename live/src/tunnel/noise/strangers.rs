//! Datagrams that are for none of several peers, or not known to be: what they may cost. Sans-I/O.

use super::UNKNOWN;
use super::macs::ReceiverKeys;
use crate::rate::{Bucket, Rate};
use crate::tunnel::counters::Counters;
use crate::tunnel::datagram::{self, Datagram};
use crate::tunnel::key::PublicKey;
use airmend_proto::Instant;

/// Hashes in a second by which initiations are compared with the keys of all peers: about a
/// thirtieth of a core. Those from where a peer is are compared with that peer's key first.
const COMPARED: u32 = 100_000;
/// Initiations that are compared at once, after a pause.
const AT_ONCE: u32 = 100;

/// What an end with several peers knows of strangers.
pub(in crate::tunnel) struct Strangers {
    own: Option<ReceiverKeys>,
    compared: Bucket,
    unknown: Bucket,
    pub(in crate::tunnel) counters: Counters,
}

impl Strangers {
    /// Of the end with this key; without one it has one peer, and no strangers.
    pub(in crate::tunnel) fn new(own: Option<&PublicKey>) -> Self {
        Self {
            own: own.map(ReceiverKeys::new),
            compared: Bucket::default(),
            unknown: Bucket::default(),
            counters: Counters::default(),
        }
    }

    /// Whether the sender of an initiation knows this end's key.
    pub(in crate::tunnel) fn has_mac1(&self, initiation: &[u8]) -> bool {
        self.own.as_ref().is_some_and(|own| own.has_mac1(initiation))
    }

    /// Whether such an initiation may be compared with the keys of so many peers.
    pub(in crate::tunnel) fn may_compare(&mut self, now: Instant, peers: usize) -> bool {
        let hashes = u32::try_from(peers).unwrap_or(u32::MAX).max(1);
        self.compared.take(Rate::per_second((COMPARED / hashes).max(1), AT_ONCE), now)
    }

    /// Counts an initiation that was not compared.
    pub(in crate::tunnel) fn refused(&mut self) {
        self.counters.handshakes_refused += 1;
    }

    /// Counts what is for nobody; the reply to it.
    pub(in crate::tunnel) fn refuse(&mut self, now: Instant, datagram: &[u8]) -> Option<Vec<u8>> {
        match Datagram::parse(datagram) {
            Some(Datagram::Sealed(id, ..)) => {
                self.counters.unknown_session += 1;
                self.unknown.take(UNKNOWN, now).then(|| datagram::unknown(id))
            }
            Some(Datagram::Unknown(_)) => {
                self.counters.unknown_session += 1;
                None
            }
            Some(Datagram::OtherInitiation(_) | Datagram::Initiation1(_)) => {
                self.counters.handshakes_refused += 1;
                None
            }
            Some(_) => {
                self.counters.forged += 1;
                None
            }
            None => {
                self.counters.truncated += 1;
                None
            }
        }
    }
}
