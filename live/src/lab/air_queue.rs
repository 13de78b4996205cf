//! The queueing disciplines that the air interface can have where a kernel forwards.

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

impl AirQueue {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::FastBand, Self::Fifo, Self::Prio, Self::Tbf, Self::Netem, Self::FqCodel, Self::Cake];

    /// The name in flags and in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::FastBand => "fast-band",
            Self::Fifo => "fifo",
            Self::Prio => "prio",
            Self::Tbf => "tbf",
            Self::Netem => "netem",
            Self::FqCodel => "fq_codel",
            Self::Cake => "cake",
        }
    }
}
