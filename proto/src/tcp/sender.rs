//! The sending half: the next segment, and the timer.

use super::classic::Classic;
use super::linux::Linux;
use super::outgoing::Outgoing;
use super::profile::{Profile, SackRecovery};
use super::state::{Deadline, Timer};
use crate::ranges::Span;
use crate::time::Instant;
use alloc::boxed::Box;
use core::time::Duration;

/// The outgoing stream, and its loss recovery.
#[derive(Clone, Debug)]
pub(super) struct Sender {
    pub(super) out: Outgoing,
    repair: Repair,
    /// The loss recovery with SACK, if not that of RFC 6675.
    modern: Option<Box<Linux>>,
}

/// The loss recovery.
#[derive(Clone, Debug)]
enum Repair {
    Classic(Classic),
    Linux(Box<Linux>),
}

/// An ACK, its numbers as positions of the stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ack {
    /// Everything before this position arrived.
    pub(super) position: u64,
    /// The first position that the window excludes.
    pub(super) edge: u64,
    /// Whether the segment carries nothing else: only such can be duplicate ACKs.
    pub(super) is_bare: bool,
    /// The timestamp that it echoes, and the round trip by it (RFC 7323 §4.2).
    pub(super) echo: Option<u32>,
    pub(super) round_trip: Option<Duration>,
}

impl Sender {
    /// A sender that has sent nothing: its first segment is the SYN.
    pub(super) fn new(profile: &Profile) -> Self {
        let is_modern = profile.sack && profile.sack_recovery == SackRecovery::Linux;
        Self {
            out: Outgoing::new(profile),
            repair: Repair::Classic(Classic::new(profile)),
            modern: is_modern.then(|| Box::new(Linux::new(profile))),
        }
    }

    /// The SYN was acknowledged: a full segment has `mss` bytes of payload.
    pub(super) fn established(&mut self, now: Instant, mss: u64, sack: bool) {
        if let Repair::Classic(classic) = &mut self.repair {
            classic.established(sack);
            self.out.established(mss, classic.had_timeout());
        }
        if let (true, Some(mut modern)) = (sack, self.modern.take()) {
            modern.established(now, &mut self.out);
            self.repair = Repair::Linux(modern);
        }
    }

    /// Retransmits the SYN at once: the peer's SYN arrived a second time.
    pub(super) fn resend_syn(&mut self) {
        if let Repair::Classic(classic) = &mut self.repair {
            classic.resend_syn(&self.out);
        }
    }

    /// Bytes in the network, as far as is known.
    pub(super) fn in_flight(&self) -> u64 {
        match &self.repair {
            Repair::Classic(classic) => classic.in_flight(&self.out),
            Repair::Linux(linux) => u64::from(linux.in_flight()) * self.out.mss,
        }
    }

    /// Takes an ACK and its SACK blocks.
    pub(super) fn acknowledged(&mut self, now: Instant, ack: &Ack, blocks: &[Span]) {
        match &mut self.repair {
            Repair::Classic(classic) => classic.acknowledged(now, &mut self.out, ack, blocks),
            Repair::Linux(linux) => linux.acknowledged(now, &mut self.out, ack, blocks),
        }
    }

    /// The next segment that may leave now; it counts as sent.
    pub(super) fn poll(&mut self, now: Instant) -> Option<Span> {
        match &mut self.repair {
            Repair::Classic(classic) => classic.poll(now, &mut self.out),
            Repair::Linux(linux) => linux.poll(now, &mut self.out),
        }
    }

    /// The expiry time of the timer, and its purpose.
    pub(super) fn deadline(&self) -> Option<Deadline> {
        let why = match &self.repair {
            Repair::Classic(_) => Timer::Retransmit,
            Repair::Linux(linux) => linux.timer(),
        };
        let timer = self.out.timer.map(|at| Deadline { at, why });
        let pace = self.out.pacing.deadline().map(|at| Deadline { at, why: Timer::Pace });
        timer.into_iter().chain(pace).min_by_key(|deadline| deadline.at)
    }

    /// Handles the expired timer.
    pub(super) fn timeout(&mut self, now: Instant) {
        match &mut self.repair {
            Repair::Classic(classic) => classic.timeout(now, &mut self.out),
            Repair::Linux(linux) => linux.timeout(now, &mut self.out),
        }
    }
}
