//! The settings of an endpoint, and the profiles of the papers and of today's hosts.

use crate::with_defaults;
use core::time::Duration;

with_defaults! {
    /// The TCP of a host, as plain data: take a named profile and change fields. The default is
    /// that of [`Self::linux`].
    #[derive(Clone, Copy, Debug, PartialEq)]
    Profile;
    /// Largest segment to send and to announce, in bytes (RFC 9293 §3.7.1). As there, TCP options
    /// of a segment are taken off: with timestamps a full segment has 12 bytes less payload.
    mss: u16 = 1460;
    /// Window at start, in full segments (RFC 5681 §3.1: 2 to 4, RFC 6928: 10, until 1997: 1).
    initial_window: u32 = 10;
    /// Receive buffer, in bytes. It limits what the peer may have unacknowledged, since the
    /// application reads at once.
    receive_window: u32 = 3 << 20;
    /// Whether the receive buffer begins small and grows to `receive_window` as Linux tunes it, the
    /// announced window with each segment. Otherwise the whole of it is announced always.
    moderate_rcvbuf: bool = true;
    /// Whether to offer window scaling (RFC 7323 §2); without it a window is at most 65,535 bytes.
    window_scaling: bool = true;
    /// Bytes that the application may have written and the peer not yet acknowledged.
    send_buffer: u64 = 4 << 20;
    /// Whether to offer selective acknowledgments (RFC 2018). Where both ends offer them, losses
    /// are recovered by `sack_recovery` and not by `recovery`.
    sack: bool = true;
    /// Whether the sender takes SACK blocks where it alone offered them, as a mobile host does
    /// whose base station reports what the air has lost [snoop95 §3.2]. By RFC 6675
    /// it recovers from the first block on, and by `recovery` before.
    sack_alone: bool = false;
    /// Whether the first SACK block reports a segment that arrived twice (RFC 2883).
    dsack: bool = true;
    /// Whether to offer timestamps (RFC 7323 §3), which tick every millisecond as in Linux.
    timestamps: bool = true;
    /// Loss recovery without selective acknowledgments.
    recovery: Recovery = Recovery::NewReno;
    /// Whether only the first partial ACK of NewReno's recovery restarts the retransmission timer
    /// (RFC 6582 §4, "Impatient"). In Linux each does.
    impatient: bool = false;
    /// Loss recovery where both ends agreed on selective acknowledgments.
    sack_recovery: SackRecovery = SackRecovery::Linux;
    /// In Linux's recovery, whether losses are detected by time (RACK, RFC 8985). Otherwise so many
    /// SACKed segments mean a loss as the path has reordered: 3 at first, 300 at most
    /// (`tcp_update_scoreboard`, `net.ipv4.tcp_recovery=0`).
    rack: bool = true;
    /// In Linux's recovery, whether the tail of a flight is probed (TLP, RFC 8985 §7).
    tlp: bool = true;
    /// In Linux's recovery, whether a timeout that was spurious is recognised by what was sent only
    /// once (F-RTO, RFC 5682 §3.1).
    frto: bool = true;
    /// The congestion control.
    congestion: CongestionControl = CongestionControl::Cubic { hystart: true };
    /// What an ACK adds to the window in slow start and, of Reno, in congestion avoidance.
    growth: Growth = Growth::PerByte;
    /// The number of duplicate ACKs that signals a loss (RFC 5681 §3.2): 3.
    dupack_threshold: u32 = 3;
    /// Whether the first two duplicate ACKs send new data beyond the window (RFC 3042).
    limited_transmit: bool = true;
    /// Whether a second timeout in a row leaves the slow start threshold alone (RFC 5681 eq. 4);
    /// BSD halves the window of one segment again, and the threshold ends at two segments. Nor does
    /// then a timeout in fast recovery lower it a second time (Linux `tcp_enter_loss`).
    hold_ssthresh: bool = true;
    /// Whether a small segment waits until all is acknowledged (Nagle, RFC 9293 §3.7.4).
    nagle: bool = true;
    /// Whether the sender lets a window smaller than a segment stay unused
    /// (RFC 9293 §3.8.6.2.1) instead of filling it with a short segment.
    sws_avoidance: bool = true;
    /// The retransmission timer.
    rto: Retransmission = Retransmission {
        initial: Duration::from_secs(1),
        min: Duration::from_millis(200),
        max: Duration::from_secs(120),
        tick: Duration::ZERO,
        estimator: Estimator::Linux,
        backoff_reset: BackoffReset::CleanSample,
    };
    /// When the receiver acknowledges.
    ack: Acknowledging = Acknowledging {
        every: 2,
        delay: Duration::from_millis(40),
        free_running: false,
        quick: 16,
        push: true,
        adaptive: true,
        compress: 44,
    };
    /// How long the end that closed first still answers a FIN before its state ends.
    time_wait: Duration = Duration::from_secs(60);
}

/// Loss recovery without selective acknowledgments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// Fast retransmit, then slow start from one segment [4.3BSD-Tahoe].
    Tahoe,
    /// Fast recovery until the first new ACK (RFC 5681 §3.2) [4.3BSD-Reno].
    Reno,
    /// Fast recovery until all is acknowledged that was in flight (RFC 6582).
    NewReno,
}

/// Loss recovery with selective acknowledgments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SackRecovery {
    /// Three SACKed segments mean a loss, and no reduction is undone (RFC 6675).
    Rfc6675,
    /// As in Linux: proportional rate reduction (RFC 6937), and undo by timestamps (RFC 3522) and
    /// by duplicate SACKs (RFC 3708).
    Linux,
}

/// The growth of the window in congestion avoidance, and its reduction after a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CongestionControl {
    /// One segment per round trip; half (RFC 5681).
    Reno,
    /// RFC 9438 as in Linux, with fast convergence and the Reno-friendly region.
    Cubic {
        /// Whether slow start ends when ACK trains or round trips grow long, as in Linux.
        hystart: bool,
    },
    /// BBR, version 1, with pacing, as in Linux. It needs Linux's recovery and SACK at both ends;
    /// without it is Reno.
    Bbr,
}

/// What an ACK adds to the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// One segment, or one window's share of it (RFC 5681 eq. 2 and 3, BSD): half as fast when only
    /// every second segment is acknowledged.
    PerAck,
    /// By the bytes acknowledged (RFC 3465), without limit in slow start, as in Linux.
    PerByte,
}

/// The retransmission timer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Retransmission {
    /// Timeout before the first round-trip sample (RFC 6298 2.1: 1 s; RFC 1122: 3 s).
    pub initial: Duration,
    /// Least timeout.
    pub min: Duration,
    /// Largest timeout, also after back-off.
    pub max: Duration,
    /// Round trips are measured, and timers fire, on multiples of this tick of the host's clock
    /// (BSD: 500 ms). Zero measures and fires exactly.
    pub tick: Duration,
    /// The estimator of the timeout.
    pub estimator: Estimator,
    /// What ends the back-off.
    pub backoff_reset: BackoffReset,
}

/// From round trips to the timeout; gains 1/8 and 1/4, and four deviations, in all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Estimator {
    /// RFC 6298 2.2 and 2.3, the least timeout applied to the sum; G is the tick.
    Rfc6298,
    /// The least timeout applied to the deviation term, which is the largest of a round trip and
    /// shrinks slowly: SRTT + max(min, 4 RTTVAR) where round trips are even.
    Linux,
    /// Integer arithmetic in whole ticks [4.4BSD `tcp_xmit_timer`]. A timer of n ticks fires at the
    /// n-th tick of the free-running clock, so up to a tick early.
    Bsd,
}

/// The event that ends the back-off of the timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackoffReset {
    /// A round trip of a segment that was sent once (Karn; RFC 6298 §5).
    CleanSample,
    /// Any ACK of new data.
    AnyAck,
    /// Nothing: the timeout stays where back-off left it (papers B.3 note 8).
    Never,
}

/// When the receiver acknowledges. Out of order, filling a gap and FIN are always answered at once
/// (RFC 5681 §4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledging {
    /// Segments in order that make an ACK due: 2, or 1 for an ACK per segment.
    pub every: u32,
    /// How long an ACK may wait for a second segment (RFC 9293: at most 500 ms).
    pub delay: Duration,
    /// Whether `delay` is a free-running clock (BSD: 200 ms), so that the wait is up to one delay.
    pub free_running: bool,
    /// ACKs that are sent at once at the start of the connection, after a segment that came twice
    /// and after a silence of more than a timeout (Linux: 16).
    pub quick: u32,
    /// Whether a segment with PSH is acknowledged at once, since the sender may wait for that
    /// (Linux from 6.7 on).
    pub push: bool,
    /// Whether the wait doubles whenever it was in vain, up to the round trip, and shrinks back to
    /// `delay` while segments follow each other closely (Linux, its `ato`).
    pub adaptive: bool,
    /// With SACK, how many duplicate ACKs may be merged into one after the first three of a gap
    /// (Linux `tcp_comp_sack_nr`: 44), which then waits for 1 ms or a twentieth of the round trip.
    pub compress: u32,
}

impl Profile {
    /// BSD/OS 2.0 and its like, the hosts of the 1995 Snoop paper [snoop95 §5] (S0-50, S0-51):
    /// 4.4BSD Reno with a 500 ms clock and a 64 KB window. Sources are 4.4BSD's.
    pub const fn bsd95() -> Self {
        Self {
            mss: 1460,
            initial_window: 1,
            receive_window: 65_535,
            moderate_rcvbuf: false,
            window_scaling: false,
            send_buffer: 65_535,
            sack: false,
            sack_alone: false,
            dsack: false,
            timestamps: false,
            recovery: Recovery::Reno,
            impatient: true,
            sack_recovery: SackRecovery::Rfc6675,
            rack: false,
            tlp: false,
            frto: false,
            congestion: CongestionControl::Reno,
            growth: Growth::PerAck,
            dupack_threshold: 3,
            limited_transmit: false,
            hold_ssthresh: false,
            nagle: true,
            sws_avoidance: true,
            rto: Retransmission {
                initial: Duration::from_secs(3),
                min: Duration::from_secs(1),
                max: Duration::from_secs(64),
                tick: Duration::from_millis(500),
                estimator: Estimator::Bsd,
                backoff_reset: BackoffReset::CleanSample,
            },
            ack: Acknowledging {
                every: 2,
                delay: Duration::from_millis(200),
                free_running: true,
                quick: 0,
                push: false,
                adaptive: false,
                compress: 0,
            },
            time_wait: Duration::from_secs(60),
        }
    }

    /// The OPNET workstation of the 2002 study (S3-10). Where its table is silent, the value is
    /// `bsd95`'s.
    pub const fn opnet02() -> Self {
        Self {
            mss: 2264,
            receive_window: 8760,
            nagle: false,
            sws_avoidance: false,
            hold_ssthresh: true,
            rto: Retransmission {
                initial: Duration::from_secs(1),
                min: Duration::from_millis(500),
                max: Duration::from_secs(64),
                tick: Duration::from_millis(500),
                estimator: Estimator::Rfc6298,
                backoff_reset: BackoffReset::CleanSample,
            },
            ack: Acknowledging {
                every: 2,
                delay: Duration::from_millis(200),
                free_running: false,
                quick: 0,
                push: false,
                adaptive: false,
                compress: 0,
            },
            ..Self::bsd95()
        }
    }

    /// A host of today whose TCP is that of the RFCs and not Linux's, as the BSDs have it: three
    /// SACKed segments mean a loss, the window is halved, and nothing is undone. Buffers and timers
    /// are those of [`Self::linux`].
    pub fn bsd() -> Self {
        Self {
            sack_recovery: SackRecovery::Rfc6675,
            rack: false,
            tlp: false,
            frto: false,
            congestion: CongestionControl::Reno,
            ..Self::linux()
        }
    }

    /// Linux of today with its default settings, without `fq`, which would pace. The send buffer is
    /// `tcp_wmem`'s, the receive window `tcp_rmem`'s maximum less a half of overhead.
    pub fn linux() -> Self {
        Self::default()
    }
}
