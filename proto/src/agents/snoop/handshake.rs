//! [C-16] Connections that are being opened: a SYN or SYN-ACK lost on the air costs its sender a
//! second or more (RFC 6298 §2: no round trip is known yet), whatever the loss rate.
//!
//! The handshake also shows what the flow needs later: that the mobile answers, and the scale of
//! its window [C-24].

use crate::packet::Packet;
use crate::time::Instant;
use crate::wire::flow::FlowKey;
use crate::wire::seq::SeqNumber;
use crate::wire::tcp::{Flags, Segment};
use alloc::collections::VecDeque;
use core::time::Duration;

/// The most handshakes that are kept at once. A SYN beyond them passes and is not repeated, so that
/// a flood of SYNs has no other effect.
const MAX_OPEN: usize = 64;
/// The most repetitions of a SYN, at intervals that double. If the SYN-ACK was lost twice, Linux
/// answers no further copy for 500 ms (`tcp_invalid_ratelimit`); the fourth repetition comes later.
const ATTEMPTS: u32 = 4;
/// The bounds of the first interval, which is twice the air's round trip. Three repetitions end
/// before the host's own retransmission after one second.
pub(super) const LEAST_INTERVAL: Duration = Duration::from_millis(40);
pub(super) const LONGEST_INTERVAL: Duration = Duration::from_millis(100);
/// The time for which the SYN of a mobile is kept: the fixed host may be far away.
const MOBILE_SYN_KEPT: Duration = Duration::from_secs(3);
/// The mobile's first ACK that is seen exceeds the number of the handshake by less: an earlier ACK
/// may be lost.
pub(super) const FIRST_ACK: i32 = 1 << 20;

/// The connections that are being opened.
#[derive(Debug, Default)]
pub(super) struct Handshakes {
    open: VecDeque<Handshake>,
}

#[derive(Debug)]
struct Handshake {
    key: FlowKey,
    /// The window scale option of the mobile's SYN, if that was seen.
    mobile: Option<Option<u8>>,
    /// The SYN or SYN-ACK of the fixed host.
    fixed: Option<FixedSyn>,
    /// The time of the next repetition or of the end; `None` while a repetition is queued.
    due: Option<Instant>,
}

#[derive(Debug)]
struct FixedSyn {
    packet: Packet,
    /// The number that follows the SYN.
    next: SeqNumber,
    scale: Option<u8>,
    is_answer: bool,
    attempts: u32,
    interval: Duration,
}

/// A connection that the mobile has accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Opened {
    /// The first sequence number of the fixed host's data.
    pub(super) first: SeqNumber,
    /// The scale of the mobile's window; `None` if the mobile's SYN was not seen.
    pub(super) scale: Option<u8>,
    /// The window of the mobile's SYN-ACK.
    pub(super) window: Option<u16>,
}

impl Handshakes {
    /// Notes a SYN or SYN-ACK of the fixed host that has departed, if there is a place.
    pub(super) fn fixed_sent(
        &mut self,
        now: Instant,
        key: FlowKey,
        segment: &Segment,
        packet: Packet,
        interval: Duration,
    ) {
        let is_answer = segment.flags.intersects(Flags::ACK);
        let known = self.remove(&key);
        let mobile = known.and_then(|known| known.mobile).filter(|_| is_answer);
        let fixed = FixedSyn {
            packet,
            next: segment.end(),
            scale: segment.options.window_scale,
            is_answer,
            attempts: 0,
            interval,
        };
        let due = Some(now + interval);
        self.insert(Handshake { key, mobile, fixed: Some(fixed), due });
    }

    /// Notes a SYN of the mobile, if there is a place.
    pub(super) fn mobile_sent(&mut self, now: Instant, key: FlowKey, segment: &Segment) {
        self.remove(&key);
        if self.open.len() < MAX_OPEN {
            let mobile = Some(segment.options.window_scale);
            let due = Some(now + MOBILE_SYN_KEPT);
            self.open.push_back(Handshake { key, mobile, fixed: None, due });
        }
    }

    /// Processes a packet of the mobile, which may complete the handshake.
    pub(super) fn mobile_answers(&mut self, key: &FlowKey, segment: &Segment) -> Option<Opened> {
        let handshake = self.open.iter().find(|handshake| handshake.key == *key)?;
        let fixed = handshake.fixed.as_ref()?;
        let is_syn = segment.flags.intersects(Flags::SYN);
        let offset = segment.ack.offset_from(fixed.next);
        let most = if is_syn { 1 } else { FIRST_ACK };
        let is_answer = segment.flags.intersects(Flags::ACK)
            && !segment.flags.intersects(Flags::RST)
            && is_syn != fixed.is_answer
            && (0..most).contains(&offset);
        if !is_answer {
            return None;
        }
        let of_mobile = if is_syn { Some(segment.options.window_scale) } else { handshake.mobile };
        // The scale holds only if both hosts have sent the option (RFC 7323 §2.2).
        let agreed = |mobile: Option<u8>| fixed.scale.and(mobile).unwrap_or(0);
        let window = is_syn.then_some(segment.window);
        let opened = Opened { first: fixed.next, scale: of_mobile.map(agreed), window };
        self.remove(key);
        Some(opened)
    }

    /// Ends a handshake: the connection was refused.
    pub(super) fn end(&mut self, key: &FlowKey) {
        self.remove(key);
    }

    /// The time of the next repetition.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.open.iter().filter_map(|handshake| handshake.due).min()
    }

    /// Queues the repetitions that are due, and removes handshakes that have ended.
    pub(super) fn expire(&mut self, now: Instant) {
        let is_due = |handshake: &Handshake| handshake.due.is_some_and(|due| due <= now);
        let may_repeat =
            |handshake: &Handshake| handshake.fixed.as_ref().is_some_and(|s| s.attempts < ATTEMPTS);
        self.open.retain(|handshake| !is_due(handshake) || may_repeat(handshake));
        for handshake in self.open.iter_mut().filter(|handshake| is_due(handshake)) {
            handshake.due = None;
        }
    }

    /// The next one that waits for the air, and how often it has been repeated with that.
    pub(super) fn poll_due(&mut self, now: Instant) -> Option<(Packet, u32)> {
        let handshake = self.open.iter_mut().find(|handshake| handshake.due.is_none())?;
        let fixed = handshake.fixed.as_mut()?;
        fixed.attempts += 1;
        handshake.due = Some(now + fixed.interval * (1 << fixed.attempts));
        Some((fixed.packet.clone(), fixed.attempts))
    }

    /// Whether there is no open handshake, the common case.
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    fn remove(&mut self, key: &FlowKey) -> Option<Handshake> {
        let index = self.open.iter().position(|handshake| handshake.key == *key)?;
        self.open.remove(index)
    }

    /// Adds a handshake that may be repeated. The oldest SYN of a mobile gives its place: a mobile
    /// cannot keep others from being repeated.
    fn insert(&mut self, handshake: Handshake) {
        if self.open.len() >= MAX_OPEN
            && let Some(index) = self.open.iter().position(|other| other.fixed.is_none())
        {
            self.open.remove(index);
        }
        if self.open.len() < MAX_OPEN {
            self.open.push_back(handshake);
        }
    }
}
