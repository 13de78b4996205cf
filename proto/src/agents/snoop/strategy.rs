//! What an agent does differently by its place: at a base station it masks holes, in the sending
//! host it lets loss signals wait.

use super::base_station::BaseStation;
use super::cache::Cached;
use super::decision::Sight;
use super::flow::Flow;
use super::hop::Hop;
use super::own_host::OwnHost;
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
    fn has_spare_airtime(&self, flow: &Flow, hop: &Hop) -> bool;

    /// Whether the receiver may report copies of the agent as duplicates, which the sender has not
    /// sent.
    fn has_own_duplicates(&self, flow: &Flow) -> bool;
}

impl Flow {
    /// The strategy for the place in which the agent is.
    pub(super) fn strategy(&self) -> &'static dyn Strategy {
        if self.own.place.is_own_host(self.air.min()) { &OwnHost } else { &BaseStation }
    }

    /// What the sender sees of a cached range that is under repair.
    pub(super) fn sight(&self, cached: &Cached, now: Instant, settings: &Settings) -> Sight {
        let strategy = self.strategy();
        match settings.suppress {
            true => strategy.sight(self, cached, now, strategy.hold_budget(self, settings)),
            false => Sight::ShownAlways,
        }
    }

    /// When the withheld ACK is to be looked at again, if there is one.
    pub(super) fn release_due(&self, now: Instant, settings: &Settings) -> Option<Instant> {
        self.suppressed.as_ref()?;
        let strategy = self.strategy();
        strategy.release_due(self, now, strategy.hold_budget(self, settings))
    }
}
