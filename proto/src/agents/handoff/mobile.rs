//! One mobile host as a base station sees it.

use super::buffer::{Buffer, FlowState};
use super::message::StationId;
use crate::time::Instant;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;

/// How long a station is fed after it last asked for it.
pub(super) const FEED: Duration = Duration::from_millis(3_500);
/// The interval at which it asks.
pub(super) const JOIN_INTERVAL: Duration = Duration::from_secs(1);
/// A claim is repeated if no state has arrived.
pub(super) const CLAIM_INTERVAL: Duration = Duration::from_millis(20);
/// So many claims are sent; then the mobile's flows begin without state.
pub(super) const CLAIMS: u32 = 5;
/// A mobile host that no station gave away is claimed again if it is heard so long after: the
/// backbone may have been down.
pub(super) const CLAIM_AGAIN: Duration = Duration::from_secs(30);
/// How long packets for a mobile that has left are relayed after the last one.
pub(super) const RELAY: Duration = Duration::from_secs(5);

/// A mobile host.
#[derive(Debug)]
pub(super) struct MobileHost {
    pub(super) role: Role,
    /// The number of its last attachment that is known: later attachments have larger numbers.
    pub(super) number: u32,
    /// From when on a host that is served is claimed again when it is heard, because no other
    /// station has answered.
    pub(super) claim_again: Option<Instant>,
    pub(super) buffer: Buffer,
    /// The stations that are fed, and until when.
    pub(super) listeners: BTreeMap<StationId, Instant>,
    /// When it was last heard of.
    pub(super) active_at: Instant,
}

/// What the station is to the mobile.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Role {
    /// The mobile may come: its packets are kept. The next request for them is due then.
    Joined { refresh_at: Instant },
    /// It has come: the station asks the one that served it for its state.
    Claiming {
        claims: u32,
        retry_at: Instant,
        /// Whether packets wait for the state, because older ones are held.
        holds: bool,
    },
    /// It is here.
    Serving,
    /// It has gone to another station, which gets what arrives for it.
    Moved { to: StationId, until: Instant, state: Vec<FlowState> },
}

impl MobileHost {
    pub(super) fn new(now: Instant, role: Role) -> Self {
        Self {
            role,
            number: 0,
            claim_again: None,
            buffer: Buffer::default(),
            listeners: BTreeMap::new(),
            active_at: now,
        }
    }

    /// Whether another station is fed.
    pub(super) fn is_fed(&self, now: Instant) -> bool {
        self.listeners.values().any(|until| now < *until)
    }

    /// The next time at which something is due.
    pub(super) fn due(&self) -> Option<Instant> {
        match self.role {
            Role::Joined { refresh_at } => Some(refresh_at),
            Role::Claiming { retry_at, .. } => Some(retry_at),
            Role::Moved { until, .. } => Some(until),
            Role::Serving => None,
        }
    }
}
