//! What an end of the link did or noticed.

use super::frame::Malformed;
use crate::event::{Event, OwnEvent};
use crate::wire::seq::SeqNumber;
use core::time::Duration;

/// One thing that an end of a TULIP link did or noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum LinkEvent {
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

impl From<LinkEvent> for Event {
    fn from(event: LinkEvent) -> Self {
        use LinkEvent as E;
        let number = |seq: SeqNumber| u64::from(seq.0);
        let (counter, text, values) = match event {
            E::PeerFound(epoch) => {
                ("link_peers", "link: the other end is in epoch {}", [epoch.into(), 0])
            }
            E::PeerRestarted(epoch) => {
                ("link_restarts", "link: the other end restarted in epoch {}", [epoch.into(), 0])
            }
            E::EpochRaised(epoch) => {
                ("link_epochs_raised", "link: this end takes epoch {}", [epoch.into(), 0])
            }
            E::Retransmitted { seq, attempt, overdue: false } => (
                "link_retransmits",
                "link: {} sent again (missing, attempt {})",
                [number(seq), attempt.into()],
            ),
            E::Retransmitted { seq, attempt, overdue: true } => (
                "link_probes",
                "link: {} sent again (no answer, attempt {})",
                [number(seq), attempt.into()],
            ),
            E::GaveUp(seq) => ("link_given_up", "link: {} given up", [number(seq), 0]),
            E::BareAck(next) => {
                ("link_bare_acks", "link: ACK {} without a packet", [number(next), 0])
            }
            E::Duplicate(seq) => {
                ("link_duplicates", "link: {} had arrived before", [number(seq), 0])
            }
            E::BeyondWindow(seq) => {
                ("link_beyond_window", "link: {} dropped, beyond the window", [number(seq), 0])
            }
            E::HoldFull => {
                ("link_hold_drops", "link: unreliable packet dropped, too many wait", [0; 2])
            }
            E::Stale => ("link_stale", "link: dropped, of another run", [0; 2]),
            E::Malformed(why) => ("link_malformed", why.sentence(), [0; 2]),
            E::BadAck => ("link_bad_acks", "link: ACK of what was never sent ignored", [0; 2]),
            E::TooLong(len) => {
                ("link_too_long", "link: packet of {} bytes dropped, too long", [len.into(), 0])
            }
            E::Damaged => ("link_damaged", "link: a frame arrived damaged", [0; 2]),
            E::RoundTrip(sample) => (
                "link_rtt_samples",
                "link: round trip {} us",
                [u64::try_from(sample.as_micros()).unwrap_or(u64::MAX), 0],
            ),
        };
        let is_retransmission = matches!(event, E::Retransmitted { .. });
        Self::Own(OwnEvent { counter, text, values, is_retransmission })
    }
}
