//! What an agent does differently by its place: at a base station it masks holes, in the sending
//! host it lets loss signals wait.

use super::cache::Cached;
use super::decision::Sight;
use super::flow::Flow;
use super::hop::Hop;
use super::settings::Settings;
use crate::ranges::Span;
use crate::time::Instant;
use crate::wire::tcp::Segment;
use core::time::Duration;

/// The part of an ACK that is forwarded to the sender.
#[derive(Clone, Copy)]
pub(super) enum Visible {
    /// The whole ACK.
    All,
    /// The whole ACK, although it is a loss signal for this masked hole: it answers a
    /// retransmission of the sender [C-9].
    Answer(Span),
    /// All but the SACK blocks that begin at this position or above.
    Below(u64),
    /// Nothing: the ACK is only a loss signal for masked holes; the position of the lowest one.
    Nothing(u64),
}

/// What an ACK says beside its SACK blocks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    /// The ACK number differs from that of the last ACK.
    pub(super) advances: bool,
    /// Data arrived that the sender had sent again, or the ACK reports it as a duplicate: the
    /// sender takes all unacknowledged data that it had sent before for lost [C-9].
    pub(super) is_answer: bool,
}

/// The questions whose answers depend on the place. None of them changes the flow.
pub(super) trait Strategy {
    /// The longest time for which an ACK is withheld.
    fn hold_budget(&self, flow: &Flow, settings: &Settings) -> Duration;

    /// What the sender sees of a cached range that is under repair.
    fn sight(&self, flow: &Flow, cached: &Cached, now: Instant, budget: Duration) -> Sight;

    /// The part of an ACK that is forwarded.
    fn visible(
        &self,
        flow: &Flow,
        now: Instant,
        budget: Duration,
        segment: &Segment,
        progress: Progress,
    ) -> Visible;

    /// Whether the withheld ACK of the flow says nothing that the newer one does not say.
    fn is_replaced(&self, flow: &Flow, segment: &Segment) -> bool;

    /// When the withheld ACK of the flow is to be looked at again.
    fn release_due(&self, flow: &Flow, now: Instant, budget: Duration) -> Option<Instant>;

    /// Whether a second copy of a repair is of use, and costs no other packet time on the air
    /// [C-30].
    fn sends_copies(&self, flow: &Flow, hop: &Hop) -> bool;
}
