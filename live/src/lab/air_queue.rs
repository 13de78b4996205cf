//! The queueing disciplines in front of the air: in the interface of a kernel that forwards, or in
//! a modem beyond the base station.

use airmend_proto::named;
use std::fmt;

/// The queueing discipline of the air interface; each sends at the rate of the air.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AirQueue {
    /// HTB with two FIFOs, of which that for repairs goes first: what a radio's driver has.
    #[default]
    FastBand,
    /// HTB with one FIFO.
    Fifo,
    /// HTB with `prio`, whose three bands `SO_PRIORITY` chooses.
    Prio,
    /// A token bucket with its own FIFO.
    Tbf,
    /// `netem`, which emulates a slow link.
    Netem,
    /// HTB with `codel`.
    Codel,
    /// HTB with `fq_codel`.
    FqCodel,
    /// CAKE, with its own shaper.
    Cake,
}

named! { AirQueue, "is no queue of the air interface":
FastBand = "fast-band", Fifo = "fifo", Prio = "prio", Tbf = "tbf", Netem = "netem",
Codel = "codel", FqCodel = "fq_codel", Cake = "cake" }

/// The queue in front of the air where that stands beyond the base station, in a modem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FarQueue {
    /// A FIFO of so many frames.
    Fifo(usize),
    /// CoDel (RFC 8289).
    Codel,
    /// FQ-CoDel (RFC 8290).
    FqCodel,
}

impl FarQueue {
    /// The queueing discipline of the modem's interface.
    pub(crate) fn discipline(self) -> AirQueue {
        match self {
            Self::Fifo(_) => AirQueue::Fifo,
            Self::Codel => AirQueue::Codel,
            Self::FqCodel => AirQueue::FqCodel,
        }
    }

    /// Frames that it holds at most; of CoDel and FQ-CoDel, the kernel's defaults.
    pub(crate) fn frames(self) -> usize {
        match self {
            Self::Fifo(frames) => frames,
            Self::Codel => 1_000,
            Self::FqCodel => 10_240,
        }
    }
}

impl fmt::Display for FarQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fifo(frames) => frames.fmt(f),
            Self::Codel | Self::FqCodel => f.pad(self.discipline().name()),
        }
    }
}
