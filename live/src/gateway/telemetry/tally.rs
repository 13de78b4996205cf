//! Counters by label: plain integers in an array.

use airmend_proto::event::{Cause, FlowEnd, Uncached};
use airmend_proto::wire::tcp::Bypass;
use std::collections::BTreeMap;
use std::marker::PhantomData;

/// The way that a packet took through the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// Data towards the mobile that the kernel sent, and of which the daemon got a copy.
    DataCopied,
    /// From the mobile, diverted to the daemon and judged by the agent.
    AcksJudged,
    /// From the mobile, passed in the kernel because its flow had nothing to repair; copied.
    AcksPassed,
    /// Towards the wired side, returned to the kernel's input path after judgment.
    AcksReturned,
    /// Towards the mobile, sent by the daemon: retransmissions and repeated SYNs.
    Repairs,
    /// From the mobile, passed without a verdict, or copied and not read: the mobile's packets take
    /// more time of the daemon than there is.
    Unjudged,
}

/// What counters are kept by.
pub(super) trait Label: Copy + 'static {
    /// All labels, in the order of [`Label::index`], under their names in metrics.
    const ALL: &'static [(Self, &'static str)];
    /// A number below `ALL.len()`.
    fn index(self) -> usize;
}

macro_rules! labels {
    ($($type:ident { $($label:ident = $name:literal),* })*) => {$(
        impl Label for $type {
            const ALL: &'static [(Self, &'static str)] = &[$((Self::$label, $name)),*];

            fn index(self) -> usize {
                self as usize
            }
        }
    )*};
}

labels! {
    Path {
        DataCopied = "data_copied",  AcksJudged = "acks_judged",
        AcksPassed = "acks_passed", AcksReturned = "acks_returned", Repairs = "repairs",
        Unjudged = "unjudged"
    }
    Cause {
        DupAck = "dup_ack", Rack = "rack", Forgotten = "forgotten", SecondCopy = "second_copy",
        TailProbe = "tail_probe", LocalTimeout = "local_timeout",
        RoundTripTimer = "round_trip_timer", PersistTimer = "persist_timer", Nack = "nack"
    }
    Bypass {
        NotIp = "not_ip", NotTcp = "not_tcp", Fragment = "fragment", Truncated = "truncated",
        Malformed = "malformed"
    }
    Uncached {
        HighWaterMark = "high_water", MemoryLimit = "memory", Reclaimed = "reclaimed",
        Unacceptable = "unacceptable"
    }
    FlowEnd { Closed = "closed", Reopened = "reopened", Idle = "idle", Evicted = "evicted" }
}

/// The most labels that any set has.
const PLACES: usize = 9;

/// One counter for each label.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tally<L> {
    counts: [u64; PLACES],
    label: PhantomData<L>,
}

impl<L> Default for Tally<L> {
    fn default() -> Self {
        Self { counts: [0; PLACES], label: PhantomData }
    }
}

impl<L: Label> Tally<L> {
    pub(super) fn add(&mut self, label: L, count: u64) {
        if let Some(counter) = self.counts.get_mut(label.index()) {
            *counter += count;
        }
    }

    pub(super) fn get(&self, label: L) -> u64 {
        self.counts.get(label.index()).copied().unwrap_or(0)
    }

    /// All of them by name, also those that are zero.
    pub(super) fn named(&self) -> BTreeMap<String, u64> {
        L::ALL.iter().map(|&(label, name)| (name.to_owned(), self.get(label))).collect()
    }

    /// All of them, and one more that is counted elsewhere.
    pub(super) fn with<const N: usize>(&self, more: [(&str, u64); N]) -> BTreeMap<String, u64> {
        let more = more.map(|(name, count)| (name.to_owned(), count));
        self.named().into_iter().chain(more).collect()
    }
}

/// The counters that have labels.
#[derive(Debug, Default)]
pub(super) struct Tallies {
    pub(super) packets: Tally<Path>,
    pub(super) bytes: Tally<Path>,
    pub(super) repairs: Tally<Cause>,
    pub(super) bypasses: Tally<Bypass>,
    pub(super) uncached: Tally<Uncached>,
    pub(super) ends: Tally<FlowEnd>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<L: Label>() {
        let mut tally = Tally::<L>::default();
        for (expected, &(label, name)) in L::ALL.iter().enumerate() {
            assert_eq!(label.index(), expected, "{name}");
            tally.add(label, expected as u64 + 1);
        }
        let mut counts: Vec<_> = tally.named().into_values().collect();
        counts.sort_unstable();
        let expected: Vec<_> = (1..=L::ALL.len() as u64).collect();
        assert_eq!(counts, expected, "names differ and each has its own place");
    }

    #[test]
    fn every_label_has_its_own_place_and_name() {
        check::<Path>();
        check::<Cause>();
        check::<Bypass>();
        check::<Uncached>();
        check::<FlowEnd>();
    }
}
