//! Notices, limited in rate: somebody who sends datagrams, or relays them, can cause any number.

use super::notice::Notice;
use crate::rate::MessageLimit;
use airmend_proto::Instant;
use std::fmt;
use std::mem::discriminant;
use std::sync::Arc;

/// A notice, and how many of its kind were left out before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// What has changed.
    pub notice: Notice,
    /// Notices of this kind since the last one that was told.
    pub left_out: u64,
    /// What people call the peer that it is about, where there are several.
    pub peer: Option<Arc<str>>,
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(peer) = &self.peer {
            write!(f, "{peer}: ")?;
        }
        match self.left_out {
            0 => write!(f, "{}", self.notice),
            more => {
                write!(f, "{} (the same happened {more} times since it was last told)", self.notice)
            }
        }
    }
}

/// What was told of each kind.
#[derive(Debug, Default)]
pub(super) struct Limiter {
    /// The newest notice of each kind, told or not.
    kinds: Vec<(Notice, MessageLimit)>,
}

impl Limiter {
    /// The notice, if it is within the rate of its kind, and how many were left out before it.
    pub(super) fn take(&mut self, now: Instant, notice: Notice) -> Option<(Notice, u64)> {
        let which = discriminant(&notice);
        let known = self.kinds.iter().position(|(newest, _)| discriminant(newest) == which);
        let index = known.unwrap_or_else(|| {
            self.kinds.push((notice, MessageLimit::default()));
            self.kinds.len() - 1
        });
        let (newest, limit) = &mut self.kinds[index];
        *newest = notice;
        limit.take(now).map(|left_out| (notice, left_out))
    }

    /// The newest notice of a kind, if it was left out and may be told now: where the peer is at
    /// last, although it moves no more.
    pub(super) fn poll(&mut self, now: Instant) -> Option<(Notice, u64)> {
        self.kinds.iter_mut().find_map(|(notice, limit)| {
            let left_out = limit.take_left_out(now)?;
            Some((*notice, left_out - 1))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tunnel::carrier::Address;
    use std::time::Duration;

    /// A relay changes the source port of each of 28,349 datagrams in ten seconds.
    #[test]
    fn a_relay_that_changes_ports_makes_few_sentences() {
        let mut limiter = Limiter::default();
        let mut told = Vec::new();
        let address = |port| Address::Udp(([203, 0, 113, 7], port).into());
        for number in 0..28_349_u64 {
            let now = Instant::ZERO + Duration::from_micros(number * 353);
            let notice = Notice::PeerMoved(address(number as u16));
            told.extend(limiter.take(now, notice));
        }
        assert_eq!(told.len(), 6);
        assert!(told[..5].iter().all(|(_, left_out)| *left_out == 0));
        let (notice, left_out) = told[5];
        let last = Told { notice, left_out, peer: Some("oslo".into()) }.to_string();
        assert!(last.starts_with("oslo: the peer has moved to"), "{last}");
        assert!(last.contains("the same happened 28324 times"), "{last}");
        // The newest one is told when the rate allows it, and once.
        assert_eq!(limiter.poll(Instant::ZERO + Duration::from_secs(10)), None);
        let newest = limiter.poll(Instant::ZERO + Duration::from_secs(20));
        assert_eq!(newest.map(|(notice, _)| notice), Some(Notice::PeerMoved(address(28_348))));
        assert_eq!(limiter.poll(Instant::ZERO + Duration::from_secs(60)), None);
        // Another kind has a rate of its own.
        let now = Instant::ZERO + Duration::from_secs(10);
        assert!(limiter.take(now, Notice::Mtu(1_400)).is_some());
    }
}
