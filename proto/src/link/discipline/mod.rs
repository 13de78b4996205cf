//! Queue disciplines in front of a serialiser, other than the FIFO that every link has.

mod codel;
mod fq_codel;
mod queue;
mod red;
#[cfg(test)]
mod tests;

pub use crate::codel::CoDelParams;
pub(super) use queue::{Discipline, Drops, Waiting};

use crate::random::Stream;
use alloc::boxed::Box;
use codel::CoDel;
use core::time::Duration;
use fq_codel::FqCoDel;
use red::Red;

/// Which packet leaves a queue next, and which ones it drops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueDiscipline {
    /// First in, first out; what comes to the full queue is dropped.
    #[default]
    Fifo,
    /// CoDel (RFC 8289).
    CoDel,
    /// FQ-CoDel (RFC 8290).
    FqCoDel,
    /// RED (Floyd and Jacobson 1993), gentle.
    Red,
}

crate::named! { QueueDiscipline, "is no queue discipline":
    Fifo = "fifo", CoDel = "codel", FqCoDel = "fq_codel", Red = "red"
}

/// Bits of the packet by which RED measures idle times.
const TYPICAL_BITS: u64 = 1500 * 8;

impl QueueDiscipline {
    /// A queue of at most `frames` in front of a serialiser of this rate, in bit/s; `None` of the
    /// FIFO, which the link has itself. A limit of 0 counts as 1.
    pub(super) fn queue(
        self,
        frames: usize,
        rate_bps: u64,
        codel: CoDelParams,
        mut random: Stream,
    ) -> Option<Box<dyn Discipline + Send>> {
        let limit = frames.max(1);
        Some(match self {
            Self::Fifo => return None,
            Self::CoDel => Box::new(CoDel::new(limit, codel)),
            Self::FqCoDel => {
                let perturbation = (random.uniform() * (1u64 << 53) as f64) as u64;
                Box::new(FqCoDel::new(limit, codel, perturbation))
            }
            Self::Red => {
                let nanos = TYPICAL_BITS * 1_000_000_000 / rate_bps.max(1);
                Box::new(Red::new(limit, Duration::from_nanos(nanos), random))
            }
        })
    }
}
