//! What is decided on a loss, and why: the causes that counters, captures and scripts show.
//!
//! A loss is repaired, or left to the sender; a hole under repair is masked, or shown to the
//! sender. Why a loss is repaired is the [`crate::event::Cause`] of the retransmission.

use crate::event::Decision;

/// Why a loss is left to the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// A queue stands, and nobody knows what the air loses [C-22].
    UnknownAir,
    /// A queue stands, and the air loses nothing without one [C-22].
    CleanAir,
    /// The delay is at a peak that it does not exceed: the queue is full [C-22].
    FullQueue,
    /// The queue exceeds the sender's round trip [C-22].
    LongQueue,
    /// More is lost than without a queue [C-22].
    Excess,
    /// Several flows share the queue, which outlasts the answer of this one [C-34].
    SharedQueue,
    /// The loss belongs to the last sign of congestion, which the sender cannot have answered yet
    /// [C-22].
    SameEvent,
    /// The sender ignores losses: a mask gains it nothing [C-22].
    IgnoringSender,
    /// The flow has spent its budget [C-23].
    Budget,
    /// The queue towards the air refused the repair [C-3].
    Refused,
    /// The mobile would refuse the repair: the packet is damaged [C-24], or signed, and its
    /// timestamp is old [C-12, C-16].
    Unrepairable,
    /// The sender has sent other bytes for the same range [C-24].
    OtherBytes,
}

impl Left {
    /// Whether the loss is a sign of congestion that the sender has not been shown before.
    pub(super) fn is_new_congestion(self) -> bool {
        !matches!(
            self,
            Self::SameEvent
                | Self::IgnoringSender
                | Self::Budget
                | Self::Refused
                | Self::Unrepairable
                | Self::OtherBytes
        )
    }
}

impl From<Left> for Decision {
    fn from(cause: Left) -> Self {
        let (counter, words) = match cause {
            Left::UnknownAir => (
                "left_unknown_air",
                "left to the sender: a queue stands, and the losses of the air are not known",
            ),
            Left::CleanAir => (
                "left_clean_air",
                "left to the sender: a queue stands, and the air alone loses nothing",
            ),
            Left::FullQueue => ("left_full_queue", "left to the sender: the delay is at its peak"),
            Left::LongQueue => {
                ("left_long_queue", "left to the sender: the queue exceeds its round trip")
            }
            Left::Excess => {
                ("left_excess", "left to the sender: more is lost than without a queue")
            }
            Left::SharedQueue => {
                ("left_shared_queue", "left to the sender: the queue outlasts its answer")
            }
            Left::SameEvent => {
                ("left_same_event", "left to the sender: part of the last congestion")
            }
            Left::IgnoringSender => {
                ("left_ignoring_sender", "left to the sender, which ignores losses")
            }
            Left::Budget => ("left_budget", "left to the sender: no budget for repairs"),
            Left::Refused => ("left_refused", "left to the sender: the air queue is full"),
            Left::Unrepairable => {
                ("left_unrepairable", "left to the sender: the mobile would refuse a repair")
            }
            Left::OtherBytes => {
                ("left_other_bytes", "left to the sender, which sent other bytes for it")
            }
        };
        Self { counter, words }
    }
}

/// What the sender sees of a hole under repair, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sight {
    /// Masked: the mobile has no SACK [C-31].
    MaskedNoSack,
    /// Masked: the round trip of the sender is not known [C-31].
    MaskedNoRoundTrip,
    /// Masked: the mask is brief [C-31].
    MaskedBrief,
    /// Shown: a mask would be long, and the sender can undo what it does too early [C-31].
    ShownPatient,
    /// Shown: the sender answers congestion, and needs the SACK blocks [C-22].
    ShownRecovery,
    /// Shown: the sender has retransmitted it [C-10].
    ShownResent,
    /// Shown: the hold budget is spent [C-13].
    ShownLate,
    /// Shown: the ACK answers a retransmission of the sender, which needs all of it [C-9].
    ShownAnswer,
    /// Shown: nothing is masked from a sender in this host [C-28], or at all [C-18].
    ShownAlways,
}

impl Sight {
    /// Whether the hole is masked.
    pub(super) fn is_masked(self) -> bool {
        matches!(self, Self::MaskedNoSack | Self::MaskedNoRoundTrip | Self::MaskedBrief)
    }
}

impl From<Sight> for Decision {
    fn from(sight: Sight) -> Self {
        let (counter, words) = match sight {
            Sight::MaskedNoSack => ("masked_no_sack", "masked: the mobile has no SACK"),
            Sight::MaskedNoRoundTrip => {
                ("masked_no_round_trip", "masked: the sender's round trip is not known")
            }
            Sight::MaskedBrief => ("masked_brief", "masked: the mask is brief"),
            Sight::ShownPatient => {
                ("shown_patient", "shown to the sender, which can undo what it does too early")
            }
            Sight::ShownRecovery => {
                ("shown_recovery", "shown to the sender, which answers congestion")
            }
            Sight::ShownResent => {
                ("shown_resent", "shown to the sender, which has retransmitted it")
            }
            Sight::ShownLate => ("shown_late", "shown to the sender: the hold budget is spent"),
            Sight::ShownAnswer => {
                ("shown_answer", "shown to the sender: the ACK answers its retransmission")
            }
            Sight::ShownAlways => ("shown_always", "shown to the sender, as everything is"),
        };
        Self { counter, words }
    }
}
