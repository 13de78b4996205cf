//! The due time of an action: an instant, or the next opportunity to send.

use crate::time::Instant;

/// The due time of an action. An action that is due now needs no timer: it is taken as soon as the
/// link accepts a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Due {
    Never,
    At(Instant),
    Now,
}

impl Due {
    /// The expiry time of the timer that is needed, if one is.
    pub(crate) fn timer(self) -> Option<Instant> {
        match self {
            Self::At(at) => Some(at),
            Self::Never | Self::Now => None,
        }
    }

    /// Turns a timer that has expired into [`Due::Now`]; true if it has expired with this call.
    pub(crate) fn expire(&mut self, now: Instant) -> bool {
        let is_expired = matches!(*self, Self::At(at) if at <= now);
        if is_expired {
            *self = Self::Now;
        }
        is_expired
    }

    /// Moves the due time to `at` unless it is earlier already.
    pub(crate) fn no_later_than(&mut self, at: Instant) {
        *self = match *self {
            Self::Never => Self::At(at),
            Self::At(before) => Self::At(before.min(at)),
            Self::Now => Self::Now,
        };
    }
}
