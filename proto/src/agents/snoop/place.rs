//! The strategy of a flow: that of a base station, or that of the sending host.

use super::base_station::BaseStation;
use super::cache::Cached;
use super::decision::Sight;
use super::flow::Flow;
use super::own_host::OwnHost;
use super::settings::Settings;
use super::strategy::Strategy;
use crate::time::Instant;

impl Flow {
    /// The strategy for the place in which the agent is.
    pub(super) fn strategy(&self) -> &'static dyn Strategy {
        if self.is_in_sending_host() { &OwnHost } else { &BaseStation }
    }

    /// Whether the agent is in the sending host.
    pub(super) fn is_in_sending_host(&self) -> bool {
        self.sender.wired.answers_from_own_host(self.air.min())
    }

    /// [C-30] Whether the air has time for second copies: some of the sender's last data waited in
    /// the agent's queue for less than a quarter of the air's round trip.
    pub(super) fn has_spare_airtime(&self) -> bool {
        self.sender.wired.waited().is_some_and(|waited| waited < self.air.min() / 4)
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
