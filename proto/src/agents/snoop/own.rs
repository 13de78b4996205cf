//! What a flow has of a sender in the agent's own host, and of copies that are its own.

use super::cache::MAX_EXAMINED;
use crate::ranges::Span;
use crate::time::Instant;
use crate::wired_path::WiredPath;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::time::Duration;

/// Where the agent is, by the time in which the host behind the wired port answers: without the
/// agent's own queue, in which data waits before it departs.
#[derive(Clone, Debug, Default)]
pub(super) struct Place {
    path: WiredPath,
    /// The first TSval that was forwarded: an ACK before the flow was picked up may have had it.
    first: Option<u32>,
}

impl Place {
    /// Notes that an ACK with this TSval is forwarded to the sender.
    pub(super) fn ack_left(&mut self, now: Instant, value: u32) {
        if *self.first.get_or_insert(value) != value {
            self.path.ack_left(now, value);
        }
    }

    /// Notes that data with this TSecr arrived from the sender.
    pub(super) fn data_came(&mut self, now: Instant, echo: u32) {
        self.path.data_came(now, echo);
    }

    /// Whether the sender is in the agent's own host, given the least round trip of the air.
    pub(super) fn is_own_host(&self, air: Duration) -> bool {
        self.path.is_own_host(air)
    }
}

/// What a flow has of its own host, if it is there.
#[derive(Clone, Debug, Default)]
pub(super) struct Own {
    pub(super) place: Place,
    /// Few flows have any.
    pub(super) duplicates: Option<Box<Duplicates>>,
    /// Whether a base station reports what the air loses [S0-40].
    pub(super) is_reported: bool,
}

/// Ranges that the sender has retransmitted while their repair was under way, and whose
/// retransmission was withheld.
#[derive(Clone, Debug, Default)]
pub(super) struct Duplicates {
    pub(super) withheld: VecDeque<Span>,
    /// Ranges that the sender has retransmitted and that have departed: the receiver may report
    /// them.
    pub(super) departed: VecDeque<Span>,
    /// Whether the agent has sent copies, which the receiver reports as duplicates [C-30].
    pub(super) has_own: bool,
}

impl Duplicates {
    /// A retransmission of the sender has departed: what the receiver gets, it reports itself.
    pub(super) fn departed(&mut self, span: Span) {
        self.withheld.retain(|other| !overlaps(other, &span));
        if self.departed.len() >= MAX_EXAMINED {
            self.departed.pop_front();
        }
        self.departed.push_back(span);
    }
}

pub(super) fn overlaps(a: &Span, b: &Span) -> bool {
    a.start < b.end && b.start < a.end
}
