//! Something that shall be done at a time, or at the next opportunity.

use crate::time::Instant;

/// When something shall be done. What is due now needs no timer: it happens as soon as the link
/// can take a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Due {
    Never,
    At(Instant),
    Now,
}

impl Due {
    /// The instant for which a timer is needed.
    pub(super) fn timer(self) -> Option<Instant> {
        match self {
            Self::At(at) => Some(at),
            Self::Never | Self::Now => None,
        }
    }

    /// Becomes [`Due::Now`] if its time has come; true if it just did.
    pub(super) fn ripen(&mut self, now: Instant) -> bool {
        let is_ripe = matches!(*self, Self::At(at) if at <= now);
        if is_ripe {
            *self = Self::Now;
        }
        is_ripe
    }

    /// Due at `at`, or before if it already was.
    pub(super) fn at_latest(&mut self, at: Instant) {
        *self = match *self {
            Self::Never => Self::At(at),
            Self::At(before) => Self::At(before.min(at)),
            Self::Now => Self::Now,
        };
    }
}
