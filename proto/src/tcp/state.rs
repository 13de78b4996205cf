//! What an endpoint waits for, and the states of a connection.

use crate::named;
use crate::time::Instant;

/// What a timer of an endpoint is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// Retransmission, or the probe of a closed window.
    Retransmit,
    /// The end of RACK's wait for what may only be reordered (RFC 8985 §6.3).
    Reordering,
    /// A tail loss probe (RFC 8985 §7.2).
    LossProbe,
    /// The departure of the next segment at the pacing rate.
    Pace,
    /// A delayed ACK.
    DelayedAck,
    /// The end of TIME-WAIT.
    TimeWait,
}

named! { Timer:
Retransmit = "tcp-rto", Reordering = "tcp-reordering", LossProbe = "tcp-loss-probe",
Pace = "tcp-pace", DelayedAck = "tcp-delayed-ack", TimeWait = "tcp-time-wait" }

/// When an endpoint wants to be woken, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    /// Not before this instant.
    pub at: Instant,
    /// What will then be done.
    pub why: Timer,
}

/// The states of RFC 9293 §3.3.2, under its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It waits for a SYN.
    Listen,
    /// Its SYN left.
    SynSent,
    /// The peer's SYN arrived, its own is not acknowledged.
    SynReceived,
    /// Both SYNs are acknowledged.
    Established,
    /// Its FIN left.
    FinWait1,
    /// Its FIN is acknowledged.
    FinWait2,
    /// The peer's FIN arrived, its own did not leave yet.
    CloseWait,
    /// Its FIN left before the peer's arrived, and is not acknowledged.
    Closing,
    /// Its FIN left after the peer's arrived, and is not acknowledged.
    LastAck,
    /// Both FINs are acknowledged; the peer may not know yet.
    TimeWait,
    /// It is over. A FIN that comes again is still acknowledged, unless there was a reset.
    Closed,
}
