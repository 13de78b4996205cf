//! What handoffs count.

use crate::event::OwnEvent;

/// Something to be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counted {
    /// A mobile host came, and the station claimed it.
    Claimed,
    /// The state of its flows arrived.
    Completed,
    /// It did not arrive: the flows began without it.
    WithoutState,
    /// A mobile host went to another station, which got the state of its flows.
    HandedOver,
    /// A claim was older than the last attachment that is known.
    StaleClaim,
    /// A copy of a packet was kept for a mobile host that may come.
    Primed,
    /// A packet that was kept was forwarded when the mobile host had come.
    Released,
    /// A packet for a mobile host that had left was sent to its new station.
    Relayed,
    /// A packet of another station was for a mobile host that is not expected.
    Stray,
    /// A message had the tag of another key, or had been changed.
    Forged,
    /// A message arrived twice, or is of an earlier run of its sender.
    Replayed,
    /// A message is of a run that has not been shown to be the present one.
    UnknownRun,
    /// A message is of another version.
    OtherVersion,
    /// A message had a right tag and no right content.
    Malformed,
    /// A hello came from a station beyond the most that there may be.
    TooManyStations,
}

/// What handoffs count, by name.
pub const COUNTERS: &[&str] = &[
    "handoffs_claimed",
    "handoffs_completed",
    "handoffs_without_state",
    "handoffs_away",
    "handoff_stale_claims",
    "handoff_packets_primed",
    "handoff_packets_released",
    "handoff_packets_relayed",
    "handoff_packets_stray",
    "handoff_messages_forged",
    "handoff_messages_replayed",
    "handoff_messages_unknown_run",
    "handoff_messages_version",
    "handoff_messages_malformed",
    "handoff_stations_refused",
];

impl Counted {
    pub(super) fn event(self) -> OwnEvent {
        let (counter, text) = match self {
            Self::Claimed => ("handoffs_claimed", "a mobile host has come"),
            Self::Completed => ("handoffs_completed", "its state has come"),
            Self::WithoutState => ("handoffs_without_state", "no state has come"),
            Self::HandedOver => ("handoffs_away", "a mobile host has left"),
            Self::StaleClaim => ("handoff_stale_claims", "the mobile host has come back since"),
            Self::Primed => ("handoff_packets_primed", "kept for a mobile host that may come"),
            Self::Released => ("handoff_packets_released", "forwarded to the mobile host"),
            Self::Relayed => ("handoff_packets_relayed", "sent to the mobile host's new station"),
            Self::Stray => ("handoff_packets_stray", "for a mobile host that is not expected"),
            Self::Forged => ("handoff_messages_forged", "handoff message with a wrong tag"),
            Self::Replayed => ("handoff_messages_replayed", "handoff message seen before"),
            Self::UnknownRun => ("handoff_messages_unknown_run", "handoff message of another run"),
            Self::OtherVersion => {
                ("handoff_messages_version", "handoff message of another version")
            }
            Self::Malformed => ("handoff_messages_malformed", "handoff message without sense"),
            Self::TooManyStations => ("handoff_stations_refused", "too many base stations"),
        };
        OwnEvent { counter, text, values: [0; 2], is_retransmission: false }
    }
}
