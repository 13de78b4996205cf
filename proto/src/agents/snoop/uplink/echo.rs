//! Round trips from the timestamps that a host echoes.

use crate::time::Instant;
use alloc::collections::VecDeque;
use core::time::Duration;

/// The most timestamps that are remembered: one for each millisecond of a round trip.
const REMEMBERED: usize = 256;

/// When which timestamp departed last.
#[derive(Clone, Debug, Default)]
pub(super) struct EchoTimes {
    departed: VecDeque<(u32, Instant)>,
}

impl EchoTimes {
    /// A packet with this TSval departed.
    pub(super) fn departed(&mut self, now: Instant, value: u32) {
        if let Some((_, at)) = self.departed.back_mut().filter(|(last, _)| *last == value) {
            *at = now;
            return;
        }
        if self.departed.len() >= REMEMBERED {
            self.departed.pop_front();
        }
        self.departed.push_back((value, now));
    }

    /// A packet that echoes this TSval came back: the time since the last packet that had it.
    pub(super) fn echoed(&mut self, now: Instant, echo: u32) -> Option<Duration> {
        let index = self.departed.iter().position(|(value, _)| *value == echo)?;
        self.departed.drain(..index);
        self.departed.front().map(|(_, at)| now - *at)
    }
}
