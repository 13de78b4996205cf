//! The rate of the path, measured with trains of frames that follow each other closely.

use crate::time::Instant;

/// Frames that are left out at a train's beginning: a shaper lets some go at once.
const LEAD: u8 = 2;
/// Frames from the first that is timed to the last: all together are no more than a sender begins
/// with (RFC 6928), which is often the only train of a lossy flow.
const TIMED: u8 = 7;

/// Times one train after the other.
///
/// The rate is what lay between its first and its last frame, over the longer of two times: between
/// their departures, and between the first ACKs of their arrival. A driver may take many
/// frames at once, and a mobile may answer many at once, but both together are rare.
#[derive(Debug, Default)]
pub(super) struct RateProbe {
    frames: u8,
    bytes: u64,
    first: Option<Timed>,
    last: Option<Timed>,
}

#[derive(Clone, Copy, Debug)]
struct Timed {
    end: u64,
    left: Instant,
    arrived: Option<Instant>,
}

impl RateProbe {
    /// New data up to the position `end` has left, with so many bytes of IP.
    pub(super) fn left(&mut self, now: Instant, end: u64, ip_bytes: u64) {
        if self.last.is_some() {
            return;
        }
        self.frames += 1;
        if self.frames > LEAD + 1 {
            self.bytes += ip_bytes;
        }
        let timed = Some(Timed { end, left: now, arrived: None });
        if self.frames == LEAD + 1 {
            self.first = timed;
        } else if self.frames == LEAD + 1 + TIMED {
            self.last = timed;
        }
    }

    /// Data up to `end` has arrived; the rate in bits per second, if this ends a train.
    pub(super) fn arrived(&mut self, now: Instant, end: u64) -> Option<f64> {
        if let Some(first) = &mut self.first
            && first.arrived.is_none()
            && end >= first.end
        {
            first.arrived = Some(now);
        }
        let (first, last) = (self.first?, self.last.filter(|last| end >= last.end)?);
        let bits = self.bytes as f64 * 8.0;
        self.give_up();
        let answers = now - first.arrived?;
        let took = (last.left - first.left).max(answers).as_secs_f64();
        (!answers.is_zero()).then(|| bits / took)
    }

    /// The train is broken; the next one begins.
    pub(super) fn give_up(&mut self) {
        *self = Self::default();
    }
}
