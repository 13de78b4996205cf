//! The events of one end of the link.

use super::malformed::Malformed;
use crate::event::{Event, OwnEvent};
use crate::wire::seq::SeqNumber;
use core::time::Duration;

/// An event of one end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum LinkEvent {
    /// The first frame of the other end arrived; its epoch.
    PeerFound(u32),
    /// The other end has restarted with this epoch: unacknowledged packets are retransmitted.
    PeerRestarted(u32),
    /// The other end knows a later epoch of this end, which takes the next one.
    EpochRaised(u32),
    /// A packet is retransmitted.
    Retransmitted {
        /// Its sequence number.
        seq: SeqNumber,
        /// 1 for the first retransmission.
        attempt: u32,
        /// Whether the retransmission follows a reply timeout; otherwise a link ACK showed the
        /// loss.
        overdue: bool,
    },
    /// The packet with this sequence number was given up after the time of its class.
    GaveUp(SeqNumber),
    /// A link ACK was sent without a packet; its next expected sequence number.
    BareAck(SeqNumber),
    /// A TCP ACK that waited was dropped, since the next one stands for it.
    AckFiltered,
    /// The packet with this sequence number arrived a second time.
    Duplicate(SeqNumber),
    /// The packet with this sequence number was dropped: beyond the widest window, or no memory.
    BeyondWindow(SeqNumber),
    /// An unreliable packet was dropped: too many wait for reliable packets of their flow, or for
    /// the network layer.
    HoldFull,
    /// A packet without ECN was dropped, since its frame was marked "congestion experienced".
    EcnDropped,
    /// The other end reports so many frames marked "congestion experienced".
    Marked(u16),
    /// A frame with an epoch of another run was dropped.
    Stale,
    /// A frame could not be parsed and was dropped.
    Malformed(Malformed),
    /// A link ACK acknowledges packets that were never sent, and was ignored.
    BadAck,
    /// A packet of more than 65,535 bytes, which no frame can carry, was dropped; its length.
    TooLong(u32),
    /// The link reports that a frame arrived damaged.
    Damaged,
    /// A round-trip sample of the link.
    RoundTrip(Duration),
    /// A host sent a packet again.
    SenderDuplicate,
    /// The bytes of a connection from one sequence number up to another were lost before this end.
    LostBefore(SeqNumber, SeqNumber),
    /// An EACK showed a loss.
    Eack,
    /// A repair frame was sent, over so many packets.
    Repair(u32),
    /// The packet with this sequence number was lost, and recovered from repair frames.
    Recovered(SeqNumber),
    /// A packet in flight was transmitted once more, since the link had nothing else to carry.
    Copied(SeqNumber),
    /// A TCP ACK that none had followed was sent once more.
    AckCopied,
}

/// The counters of these events.
pub(crate) const LINK_COUNTERS: &[&str] = &[
    "link_peers",
    "link_restarts",
    "link_epochs_raised",
    "link_retransmits",
    "link_probes",
    "link_given_up",
    "link_bare_acks",
    "link_acks_filtered",
    "link_duplicates",
    "link_beyond_window",
    "link_hold_drops",
    "link_ecn_drops",
    "link_ce_reports",
    "link_stale",
    "link_malformed",
    "link_bad_acks",
    "link_too_long",
    "link_sender_duplicates",
    "link_lost_before",
    "link_copies",
    "link_ack_copies",
    "link_repairs",
    "link_recovered",
    "link_eacks",
    "link_damaged",
    "link_rtt_samples",
];

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
                "link: {} retransmitted (missing, attempt {})",
                [number(seq), attempt.into()],
            ),
            E::Retransmitted { seq, attempt, overdue: true } => (
                "link_probes",
                "link: {} retransmitted (no answer, attempt {})",
                [number(seq), attempt.into()],
            ),
            E::GaveUp(seq) => ("link_given_up", "link: {} given up", [number(seq), 0]),
            E::BareAck(next) => {
                ("link_bare_acks", "link: ACK {} without a packet", [number(next), 0])
            }
            E::AckFiltered => ("link_acks_filtered", "link: TCP ACK left out", [0; 2]),
            E::Duplicate(seq) => {
                ("link_duplicates", "link: {} had arrived before", [number(seq), 0])
            }
            E::BeyondWindow(seq) => {
                ("link_beyond_window", "link: {} dropped, beyond the window", [number(seq), 0])
            }
            E::HoldFull => {
                ("link_hold_drops", "link: unreliable packet dropped, too many wait", [0; 2])
            }
            E::EcnDropped => {
                ("link_ecn_drops", "link: packet without ECN dropped, its frame was marked", [0; 2])
            }
            E::Marked(frames) => {
                ("link_ce_reports", "link: {} frames were marked", [frames.into(), 0])
            }
            E::Stale => ("link_stale", "link: dropped, of another run", [0; 2]),
            E::Malformed(why) => ("link_malformed", why.sentence(), [0; 2]),
            E::BadAck => ("link_bad_acks", "link: ACK of what was never sent ignored", [0; 2]),
            E::TooLong(len) => ("link_too_long", "link: {} bytes are too long", [len.into(), 0]),
            E::SenderDuplicate => {
                ("link_sender_duplicates", "link: the host sent the packet again", [0; 2])
            }
            E::LostBefore(from, to) => {
                ("link_lost_before", "link: {} to {} lost upstream", [number(from), number(to)])
            }
            E::Copied(seq) => {
                ("link_copies", "link: {} transmitted once more while idle", [number(seq), 0])
            }
            E::AckCopied => ("link_ack_copies", "link: last TCP ACK of a burst once more", [0; 2]),
            E::Repair(packets) => ("link_repairs", "link: repair of {}", [packets.into(), 0]),
            E::Recovered(seq) => ("link_recovered", "link: {} recovered", [number(seq), 0]),
            E::Eack => ("link_eacks", "link: an EACK shows a loss", [0; 2]),
            E::Damaged => ("link_damaged", "link: a frame arrived damaged", [0; 2]),
            E::RoundTrip(sample) => {
                let micros = u64::try_from(sample.as_micros()).unwrap_or(u64::MAX);
                ("link_rtt_samples", "link: round trip {} us", [micros, 0])
            }
        };
        let is_retransmission = matches!(event, E::Retransmitted { .. });
        Self::Own(OwnEvent { counter, text, values, is_retransmission })
    }
}
