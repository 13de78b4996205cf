//! What is decided on a loss, and why: the causes that counters, captures and scripts show.
//!
//! A loss is repaired, or left to the sender; a hole under repair is masked, or shown to the
//! sender. Why a loss is repaired is the [`crate::event::Cause`] of the retransmission.

use crate::event::Decision;

/// Enums of causes, each with its counter and its words, and the names of all counters.
macro_rules! causes {
    ($($(#[$what:meta])* $type:ident {
        $($(#[$why:meta])* $variant:ident = $counter:literal, $words:literal;)*
    })*) => {
        /// The counters of all causes, and those of the agent's other events.
        pub(crate) const COUNTERS: &[&str] = &[
            "reported_duplicates",
            "withheld_duplicates",
            "consumed_negative_acks",
            "restored_timestamps",
            $($($counter,)*)*
        ];

        $(
            $(#[$what])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            pub(super) enum $type {
                $($(#[$why])* $variant,)*
            }

            impl From<$type> for Decision {
                fn from(cause: $type) -> Self {
                    match cause {
                        $($type::$variant => Self { counter: $counter, words: $words },)*
                    }
                }
            }
        )*
    };
}

causes! {
    /// Why a loss is left to the sender.
    Left {
        /// A queue stands, and nobody knows what the air loses [C-22].
        UnknownAir = "left_unknown_air",
            "left to the sender: a queue stands, and the losses of the air are not known";
        /// A queue stands, and the air loses nothing without one [C-22].
        CleanAir = "left_clean_air",
            "left to the sender: a queue stands, and the air alone loses nothing";
        /// The delay is at a peak that it does not exceed: the queue is full [C-22].
        FullQueue = "left_full_queue", "left to the sender: the delay is at its peak";
        /// The queue exceeds the sender's round trip [C-22].
        LongQueue = "left_long_queue", "left to the sender: the queue exceeds its round trip";
        /// More is lost than without a queue [C-22].
        Excess = "left_excess", "left to the sender: more is lost than without a queue";
        /// Several flows share the queue, which outlasts the answer of this one [C-34].
        SharedQueue = "left_shared_queue",
            "left to the sender: the queue outlasts its answer";
        /// The loss belongs to the last sign of congestion, which the sender cannot have answered
        /// yet [C-22].
        SameEvent = "left_same_event", "left to the sender: part of the last congestion";
        /// The sender ignores losses: a mask gains it nothing [C-22].
        IgnoringSender = "left_ignoring_sender",
            "left to the sender, which ignores losses";
        /// The flow has spent its budget [C-23].
        Budget = "left_budget", "left to the sender: no budget for repairs";
        /// The queue towards the air refused the repair [C-3].
        Refused = "left_refused", "left to the sender: the air queue is full";
        /// The mobile would refuse the repair: the packet is damaged [C-24], or signed, and its
        /// timestamp is old [C-12, C-16].
        Unrepairable = "left_unrepairable",
            "left to the sender: the mobile would refuse a repair";
        /// The sender has sent other bytes for the same range [C-24].
        OtherBytes = "left_other_bytes",
            "left to the sender, which sent other bytes for it";
    }

    /// What the sender sees of a hole under repair, and why.
    Sight {
        /// The mobile has no SACK [C-31].
        MaskedNoSack = "masked_no_sack", "masked: the mobile has no SACK";
        /// The round trip of the sender is not known [C-31].
        MaskedNoRoundTrip = "masked_no_round_trip",
            "masked: the sender's round trip is not known";
        /// The mask is brief [C-31].
        MaskedBrief = "masked_brief", "masked: the mask is brief";
        /// A mask would be long, and the sender can undo what it does too early [C-31].
        ShownPatient = "shown_patient",
            "shown to the sender, which can undo what it does too early";
        /// The sender answers congestion, and needs the SACK blocks [C-22].
        ShownRecovery = "shown_recovery",
            "shown to the sender, which answers congestion";
        /// The sender has retransmitted it [C-10].
        ShownResent = "shown_resent", "shown to the sender, which has retransmitted it";
        /// The hold budget is spent [C-13].
        ShownLate = "shown_late", "shown to the sender: the hold budget is spent";
        /// The ACK answers a retransmission of the sender, which needs all of it [C-9].
        ShownAnswer = "shown_answer",
            "shown to the sender: the ACK answers its retransmission";
        /// Nothing is masked from a sender in this host [C-28], or at all [C-18].
        ShownAlways = "shown_always", "shown to the sender, as everything is";
    }
}

impl Left {
    /// Whether the loss is a sign of congestion that the sender has not been shown before.
    pub(super) fn is_new_congestion(self) -> bool {
        use Left::{CleanAir, Excess, FullQueue, LongQueue, SharedQueue, UnknownAir};
        matches!(self, UnknownAir | CleanAir | FullQueue | LongQueue | Excess | SharedQueue)
    }
}

impl Sight {
    /// Whether the hole is masked.
    pub(super) fn is_masked(self) -> bool {
        matches!(self, Self::MaskedNoSack | Self::MaskedNoRoundTrip | Self::MaskedBrief)
    }
}
