//! Path MTU discovery for datagrams, with ICMP or without it (RFC 8899).
//! Sans-I/O.
//!
//! The interface's MTU is the ceiling, and in use until the peer's answers contradict it. What ICMP
//! says anybody may have said: a report begins a search, and the limit follows only what the probes
//! show (§4.6). Frames cross in parts meanwhile, in case the report is true. Probes leave in pairs,
//! one of the length in question and behind it a short one. A pair of which only the short one is
//! answered counts against the length; a pair that is lost altogether counts for nothing, so that
//! neither loss nor a peer that ignores probes reduces the limit.

#[cfg(test)]
mod tests;

use airmend_proto::Instant;
use std::time::Duration;

/// Pairs that must count against a length before it is abandoned. At 20 % loss each way this
/// happens once in 3000 times to a length that passes, and it must happen twice in a row.
const STRIKES: u32 = 6;
/// The least interval between pairs.
const PACE: Duration = Duration::from_millis(20);
/// The first timeout after which an unanswered pair is followed by the next one.
const FIRST_PROBE_TIMEOUT: Duration = Duration::from_millis(250);
/// The largest such timeout: it doubles with each pair that is not answered.
const MAX_PROBE_TIMEOUT: Duration = Duration::from_secs(10);
/// The interval of probes of the length in use while long datagrams are sent.
const CONFIRM_INTERVAL: Duration = Duration::from_secs(1);
/// The interval of probes of larger lengths (RFC 8899 §5.1.1, `PMTU_RAISE_TIMER`).
const RAISE_INTERVAL: Duration = Duration::from_secs(600);

/// The lengths of datagrams that one path carries.
#[derive(Debug)]
pub(super) struct PathMtu {
    /// The length that every path carries, and that of the short probes.
    floor: usize,
    /// What the interface carries.
    ceiling: usize,
    /// The kernel's newest opinion of the path, which ICMP may have changed.
    report: usize,
    limit: usize,
    settled: usize,
    trial: Option<Trial>,
    search: Option<Search>,
    /// The newest pair's.
    number: u32,
    /// The short probe of the newest pair has yet to leave.
    owes_short: bool,
    probe_timeout: Duration,
    next_confirm: Instant,
    next_raise: Instant,
    /// Datagrams longer than the floor have left since the limit was confirmed.
    has_demand: bool,
    /// The peer has answered a probe.
    is_answering: bool,
}

/// One length, tried until it passes or fails.
#[derive(Debug)]
struct Trial {
    length: usize,
    /// Pairs up to this one belong to earlier trials.
    after: u32,
    /// The newest pair that has counted against it.
    struck: u32,
    strikes: u32,
    sent: Instant,
    next: Instant,
}

/// Between a length that passes and one that does not.
#[derive(Clone, Copy, Debug)]
struct Search {
    passes: usize,
    fails: usize,
}

/// A probe to send now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MtuProbe {
    /// The number that the answer repeats.
    pub(super) number: u32,
    /// The length of the datagram, in bytes.
    pub(super) length: usize,
}

impl PathMtu {
    /// A path of which only the interface's limit is known, in bytes of a datagram.
    pub(super) fn new(now: Instant, floor: usize, ceiling: usize) -> Self {
        Self {
            floor: floor.min(ceiling),
            ceiling,
            report: ceiling,
            limit: ceiling,
            settled: ceiling,
            trial: None,
            search: None,
            number: 0,
            owes_short: false,
            probe_timeout: FIRST_PROBE_TIMEOUT,
            next_confirm: now,
            next_raise: now,
            has_demand: true,
            is_answering: false,
        }
    }

    /// The longest datagram that arrives whole, as far as is known now.
    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    /// The limit after a search: it does not change while a narrower path is being measured.
    pub(super) fn settled(&self) -> usize {
        self.settled
    }

    /// The interface's limit; datagrams above it cannot be sent whole.
    pub(super) fn set_ceiling(&mut self, now: Instant, ceiling: usize) {
        let old = std::mem::replace(&mut self.ceiling, ceiling);
        if ceiling > old {
            self.next_raise = now;
            if !self.is_answering {
                (self.limit, self.settled) = (ceiling, ceiling);
            }
        } else if ceiling < old {
            self.limit = self.limit.min(ceiling);
            self.settled = self.settled.min(ceiling);
            if let Some(Search { passes, fails }) = self.search.take() {
                self.search(now, passes.min(ceiling), fails.min(ceiling + 1));
            } else {
                self.trial.take_if(|trial| trial.length > ceiling);
            }
        }
    }

    /// What the kernel believes that the path carries, perhaps since a stranger told it so. Below
    /// the floor it is of no use (RFC 8899 §4.6.2).
    pub(super) fn set_report(&mut self, now: Instant, report: usize) {
        let is_new = std::mem::replace(&mut self.report, report) != report;
        if is_new && self.search.is_none() && (self.floor..self.limit).contains(&report) {
            self.search(now, report, self.limit + 1);
        }
    }

    /// Data of this length has left whole: it is worth knowing whether such datagrams arrive.
    pub(super) fn handle_sent(&mut self, length: usize) {
        self.has_demand |= length > self.floor;
    }

    /// An answer to a probe, which arrived in a datagram of this length.
    pub(super) fn handle_answer(&mut self, now: Instant, number: u32, length: usize) {
        self.is_answering = true;
        self.probe_timeout = FIRST_PROBE_TIMEOUT;
        let Some(trial) = &mut self.trial else { return };
        if number <= trial.after || number > self.number {
            return;
        }
        if length >= trial.length {
            self.passed(now);
        } else if number > trial.struck {
            // The long probe left first, so its answer would be here.
            trial.struck = number;
            trial.strikes += 1;
            trial.next = trial.next.min(now.max(trial.sent + PACE));
            if trial.strikes == STRIKES {
                self.failed(now);
            }
        }
    }

    /// The next probe that is due.
    pub(super) fn poll_probe(&mut self, now: Instant) -> Option<MtuProbe> {
        if std::mem::take(&mut self.owes_short) {
            return Some(MtuProbe { number: self.number, length: self.floor });
        }
        if self.trial.is_none() {
            if self.is_raise_due(now) {
                self.search(now, self.limit, self.ceiling + 1);
            } else if self.wants_confirmation() && self.next_confirm <= now {
                self.begin_trial(now, self.limit);
            }
        }
        let trial = self.trial.as_mut().filter(|trial| trial.next <= now)?;
        self.number += 1;
        self.owes_short = true;
        trial.sent = now;
        trial.next = now + self.probe_timeout;
        self.probe_timeout = (self.probe_timeout * 2).min(MAX_PROBE_TIMEOUT);
        Some(MtuProbe { number: self.number, length: trial.length })
    }

    /// The time of the next probe, if nothing happens before.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        if let Some(trial) = &self.trial {
            return Some(trial.next);
        }
        let confirm = self.wants_confirmation().then_some(self.next_confirm);
        let raise = self.may_rise().then_some(self.next_raise);
        confirm.into_iter().chain(raise).min()
    }

    fn wants_confirmation(&self) -> bool {
        self.has_demand && self.limit > self.floor
    }

    fn may_rise(&self) -> bool {
        self.is_answering && self.limit < self.ceiling
    }

    fn is_raise_due(&self, now: Instant) -> bool {
        self.may_rise() && self.next_raise <= now
    }

    fn begin_trial(&mut self, now: Instant, length: usize) {
        let after = self.number;
        self.trial = Some(Trial { length, after, struck: after, strikes: 0, sent: now, next: now });
    }

    fn passed(&mut self, now: Instant) {
        let Some(trial) = self.trial.take() else { return };
        match self.search {
            Some(Search { fails, .. }) => self.search(now, trial.length, fails),
            None => self.confirmed(now),
        }
    }

    fn failed(&mut self, now: Instant) {
        let Some(trial) = self.trial.take() else { return };
        match self.search {
            Some(Search { passes, .. }) => self.search(now, passes, trial.length),
            // A black hole. Its length is tried first, for it may have been bad luck.
            None => self.search(now, self.floor.min(self.limit), trial.length + 1),
        }
    }

    /// Goes on between these lengths, or ends where nothing is between them. A search begins at
    /// the top, which is where most of them end. Then it looks whether the kernel's report is
    /// right to the byte, and halves what is left.
    fn search(&mut self, now: Instant, passes: usize, fails: usize) {
        self.limit = passes;
        if fails <= passes + 1 {
            (self.search, self.trial) = (None, None);
            self.settled = passes;
            self.next_raise = now + RAISE_INTERVAL;
            return self.confirmed(now);
        }
        let is_new = self.search.replace(Search { passes, fails }).is_none();
        let length = match self.report {
            _ if is_new => fails - 1,
            report if (passes..fails).contains(&report) => report.max(passes + 1),
            _ => passes.midpoint(fails),
        };
        self.begin_trial(now, length);
    }

    fn confirmed(&mut self, now: Instant) {
        self.has_demand = false;
        self.next_confirm = now + CONFIRM_INTERVAL;
    }
}
