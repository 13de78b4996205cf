//! A mobile host has come: the claim of the station where it is, and the answer of the one that
//! served it.
//!
//! Attachments of a mobile host are numbered, so that a late claim does not take the mobile from a
//! station where it has been since. A station that claims too low a number is told the right one.

use super::buffer::{Buffer, FlowState};
use super::counters::Counted;
use super::message::{Body, Mobile, StationId, To};
use super::mobile::{CLAIM_AGAIN, CLAIM_INTERVAL, CLAIMS, RELAY, Role};
use super::{Handoff, Output};
use crate::time::Instant;
use crate::wire::flow::FlowKey;
use alloc::vec::Vec;
use core::time::Duration;

impl Handoff {
    /// A mobile host is here: its radio has associated, or a packet of it has come over the air.
    pub fn mobile_attached(&mut self, now: Instant, mobile: Mobile) {
        if !self.is_news(now, &mobile) {
            return;
        }
        let has_peers = self.peers.known() > 0;
        let was_served = self.serves(&mobile);
        let host = self.host(now, mobile);
        host.number = host.number.saturating_add(1);
        if !has_peers {
            host.role = Role::Serving;
            host.claim_again = Some(now);
            return;
        }
        // The packets of a host that was served here have gone to it already.
        let holds = !was_served && !host.buffer.is_empty();
        host.role = Role::Claiming { claims: 0, retry_at: now, holds };
        if !was_served {
            self.count(Counted::Claimed);
        }
        self.retry_claim(now, mobile);
    }

    /// Whether it is news to this station or to another one that a mobile host is here: of two
    /// stations that could not tell each other, both would serve the host for ever.
    pub fn is_news(&self, now: Instant, mobile: &Mobile) -> bool {
        let Some(host) = self.mobiles.get(mobile) else { return true };
        let may_claim = || self.peers.known() > 0 && host.claim_again.is_some_and(|at| at <= now);
        !self.serves(mobile) || (host.role == Role::Serving && may_claim())
    }

    /// Sends the next claim, or begins without state.
    pub(super) fn retry_claim(&mut self, now: Instant, mobile: Mobile) {
        let Some(host) = self.mobiles.get_mut(&mobile) else { return };
        let Role::Claiming { claims, retry_at, .. } = &mut host.role else { return };
        if *claims >= CLAIMS {
            let is_first = host.claim_again.replace(now + CLAIM_AGAIN).is_none();
            if is_first {
                self.count(Counted::WithoutState);
            }
            return self.release(mobile);
        }
        *claims += 1;
        *retry_at = now + CLAIM_INTERVAL;
        let claim = Body::Claim(mobile, host.number);
        self.send(To::Group, &claim);
    }

    /// Another station claims a mobile host.
    pub(super) fn handle_claim(
        &mut self,
        now: Instant,
        from: StationId,
        mobile: Mobile,
        number: u32,
        air_round_trip: &dyn Fn(&FlowKey) -> Option<Duration>,
    ) {
        let own = self.own;
        let Some(host) = self.mobiles.get_mut(&mobile) else { return };
        // Of two claims with one number that of the higher station counts.
        let is_stale = number < host.number || (number == host.number && from < own);
        match &host.role {
            Role::Moved { to, state, .. } if *to == from && number >= host.number => {
                let state = Body::State(mobile, number, state.clone());
                host.number = number;
                self.send(To::Station(from), &state);
            }
            Role::Moved { until, state, .. } if number > host.number => {
                host.role = Role::Moved { to: from, until: *until, state: state.clone() };
                host.number = number;
            }
            Role::Serving if number == host.number => self.refuse(from, mobile),
            Role::Serving | Role::Claiming { .. } if is_stale => self.refuse(from, mobile),
            Role::Serving | Role::Claiming { .. } => {
                host.number = number;
                self.hand_over(now, from, mobile, air_round_trip);
            }
            Role::Joined { .. } => host.number = host.number.max(number),
            Role::Moved { .. } => {}
        }
    }

    fn refuse(&mut self, from: StationId, mobile: Mobile) {
        let Some(host) = self.mobiles.get(&mobile) else { return };
        let refusal = Body::Attached(mobile, host.number);
        self.count(Counted::StaleClaim);
        self.send(To::Station(from), &refusal);
    }

    /// The number of the last attachment is this one.
    pub(super) fn handle_attached(&mut self, now: Instant, mobile: Mobile, number: u32) {
        let Some(host) = self.mobiles.get_mut(&mobile) else { return };
        match host.role {
            Role::Joined { .. } => host.number = host.number.max(number),
            Role::Claiming { .. } if number >= host.number => {
                host.number = number.saturating_add(1);
                self.retry_claim(now, mobile);
            }
            _ => {}
        }
    }

    /// Sends the new station what it has not got, then the state, and relays from now on.
    fn hand_over(
        &mut self,
        now: Instant,
        to: StationId,
        mobile: Mobile,
        air_round_trip: &dyn Fn(&FlowKey) -> Option<Duration>,
    ) {
        let Some(host) = self.mobiles.get_mut(&mobile) else { return };
        let number = host.number;
        let was_fed = host.listeners.get(&to).is_some_and(|until| now < *until);
        let state = host.buffer.state(air_round_trip);
        let held: Vec<_> = host.buffer.unacknowledged().collect();
        host.buffer = Buffer::default();
        let until = now + RELAY;
        host.role = Role::Moved { to, until, state: state.clone() };
        host.listeners.clear();
        host.claim_again = None;
        for held in held.into_iter().filter(|held| !(was_fed && held.is_fed)) {
            self.send_data(To::Station(to), &held.packet, held.is_resent, None);
        }
        self.send(To::Station(to), &Body::State(mobile, number, state));
        self.outputs.push_back(Output::Left(mobile));
        self.count(Counted::HandedOver);
    }

    /// What the station knew that served the mobile host before.
    pub(super) fn handle_state(&mut self, mobile: Mobile, number: u32, flows: &[FlowState]) {
        let Some(host) = self.mobiles.get_mut(&mobile) else { return };
        if host.number != number || !matches!(host.role, Role::Claiming { .. }) {
            return;
        }
        for flow in flows {
            if let Some(acked) = flow.acked {
                host.buffer.synchronise(&flow.key, acked, flow.ts_recent, &flow.sacked);
            }
            host.buffer.mark(&flow.key, &flow.resent);
        }
        host.claim_again = None;
        if let Some(round_trip) = flows.iter().filter_map(|flow| flow.air_round_trip).min() {
            self.outputs.push_back(Output::RoundTrip(round_trip));
        }
        self.count(Counted::Completed);
        self.release(mobile);
    }

    /// Forwards at once what the mobile host lacks.
    fn release(&mut self, mobile: Mobile) {
        let Some(host) = self.mobiles.get_mut(&mobile) else { return };
        let held = match core::mem::replace(&mut host.role, Role::Serving) {
            Role::Claiming { holds: true, .. } => host.buffer.unacknowledged().collect(),
            _ => Vec::new(),
        };
        for held in held.into_iter().filter(|held| !held.is_forwarded) {
            self.count(Counted::Released);
            let (packet, is_resent) = (held.packet, held.is_resent);
            self.outputs.push_back(Output::Arrival { packet, is_resent });
        }
    }
}
