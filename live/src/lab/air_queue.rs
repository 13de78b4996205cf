//! The queueing disciplines that the air interface can have where a kernel forwards.

use airmend_proto::named;

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
    /// HTB with `fq_codel`.
    FqCodel,
    /// CAKE, with its own shaper.
    Cake,
}

named! { AirQueue, "is no queue of the air interface":
FastBand = "fast-band", Fifo = "fifo", Prio = "prio", Tbf = "tbf", Netem = "netem",
FqCodel = "fq_codel", Cake = "cake" }
