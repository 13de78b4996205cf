//! What an end of the link did or noticed.

use crate::wire::seq::SeqNumber;
use crate::wire::tulip::Malformed;
use core::fmt;
use core::time::Duration;

/// One thing that an end of a TULIP link did or noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinkEvent {
    /// A run of the other end was heard of for the first time.
    PeerFound(u32),
    /// The other end has started anew: what it had not acknowledged is sent again.
    PeerRestarted(u32),
    /// The other end remembers a later run of this one, which took a later epoch.
    EpochRaised(u32),
    /// A packet that the other end lacks leaves again; `overdue` if no answer came at all.
    Retransmitted {
        /// Its number.
        seq: SeqNumber,
        /// 1 for the first retransmission.
        attempt: u32,
        /// No answer came in time, or the state of the receiver showed the loss.
        overdue: bool,
    },
    /// A packet with bounded persistence was given up.
    GaveUp(SeqNumber),
    /// A link ACK left without a packet.
    BareAck(SeqNumber),
    /// A packet arrived that had arrived before.
    Duplicate(SeqNumber),
    /// A packet arrived that is beyond the widest window, or for which there is no memory.
    BeyondWindow(SeqNumber),
    /// An unreliable packet was dropped: too many wait for reliable ones of their flow, or for the
    /// network layer.
    HoldFull,
    /// A frame of another run of either end was dropped.
    Stale,
    /// A frame could not be read and was dropped.
    Malformed(Malformed),
    /// A link ACK speaks of packets that were never sent, and was ignored.
    BadAck,
    /// A packet that no frame can carry was dropped: longer than 65,535 bytes.
    TooLong(u32),
    /// The link says that a frame arrived damaged.
    Damaged,
    /// The round trip of the link was measured.
    RoundTrip(Duration),
}

impl LinkEvent {
    /// The name under which runs count it; stable.
    pub fn counter(self) -> &'static str {
        match self {
            Self::PeerFound(_) => "link_peers",
            Self::PeerRestarted(_) => "link_restarts",
            Self::EpochRaised(_) => "link_epochs_raised",
            Self::Retransmitted { overdue: false, .. } => "link_retransmits",
            Self::Retransmitted { overdue: true, .. } => "link_probes",
            Self::GaveUp(_) => "link_given_up",
            Self::BareAck(_) => "link_bare_acks",
            Self::Duplicate(_) => "link_duplicates",
            Self::BeyondWindow(_) => "link_beyond_window",
            Self::HoldFull => "link_hold_drops",
            Self::Stale => "link_stale",
            Self::Malformed(_) => "link_malformed",
            Self::BadAck => "link_bad_acks",
            Self::TooLong(_) => "link_too_long",
            Self::Damaged => "link_damaged",
            Self::RoundTrip(_) => "link_rtt_samples",
        }
    }
}

/// One short sentence, as a packet comment tells it in Wireshark.
impl fmt::Display for LinkEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PeerFound(epoch) => write!(f, "link: the other end is in epoch {epoch:#x}"),
            Self::PeerRestarted(epoch) => {
                write!(f, "link: the other end started anew in epoch {epoch:#x}")
            }
            Self::EpochRaised(epoch) => write!(f, "link: this end takes epoch {epoch:#x}"),
            Self::Retransmitted { seq, attempt, overdue } => {
                let cause = if *overdue { "no answer" } else { "missing" };
                write!(f, "link: {seq} sent again ({cause}, attempt {attempt})")
            }
            Self::GaveUp(seq) => write!(f, "link: {seq} given up"),
            Self::BareAck(next) => write!(f, "link: ACK {next} without a packet"),
            Self::Duplicate(seq) => write!(f, "link: {seq} had arrived before"),
            Self::BeyondWindow(seq) => write!(f, "link: {seq} dropped, beyond the window"),
            Self::HoldFull => f.write_str("link: unreliable packet dropped, too many wait"),
            Self::Stale => f.write_str("link: dropped, of another run"),
            Self::Malformed(why) => write!(f, "link: dropped, {why}"),
            Self::BadAck => f.write_str("link: ACK of what was never sent ignored"),
            Self::TooLong(len) => write!(f, "link: packet of {len} bytes dropped, too long"),
            Self::Damaged => f.write_str("link: a frame arrived damaged"),
            Self::RoundTrip(sample) => {
                write!(f, "link: round trip {:.3} ms", sample.as_secs_f64() * 1e3)
            }
        }
    }
}
