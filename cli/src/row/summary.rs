//! The line that ends a combination.

use super::{MoreSettings, Setting, Times, compact, compact_option, whole_option};
use serde::Serialize;

/// All runs of one combination; `seed` is the first one's.
#[derive(Debug, Serialize)]
pub(crate) struct Summary {
    pub(crate) summary: bool,
    #[serde(flatten)]
    pub(crate) setting: Setting,
    pub(crate) runs: usize,
    pub(crate) completed: usize,
    #[serde(serialize_with = "whole_option")]
    pub(crate) goodput_mean_bps: Option<f64>,
    #[serde(serialize_with = "whole_option")]
    pub(crate) goodput_sd_bps: Option<f64>,
    #[serde(serialize_with = "whole_option")]
    pub(crate) bound_bps: Option<f64>,
    #[serde(serialize_with = "compact_option")]
    pub(crate) of_bound: Option<f64>,
    /// The median run's goodput, and the median of the runs' shares of their bounds.
    #[serde(serialize_with = "whole_option")]
    pub(crate) goodput_median_bps: Option<f64>,
    #[serde(serialize_with = "compact_option")]
    pub(crate) of_bound_median: Option<f64>,
    /// The same of the bound with each run's own fades.
    #[serde(serialize_with = "compact_option")]
    pub(crate) of_realised_bound_median: Option<f64>,
    /// Median of the paired ratios to the first agent.
    #[serde(serialize_with = "compact_option")]
    pub(crate) ratio_median: Option<f64>,
    #[serde(serialize_with = "compact_option")]
    pub(crate) timeouts_mean: Option<f64>,
    /// Entries into recovery that were not undone, in a run.
    #[serde(serialize_with = "compact_option")]
    pub(crate) standing_recoveries_mean: Option<f64>,
    #[serde(serialize_with = "compact_option")]
    pub(crate) wire_bytes_per_byte_mean: Option<f64>,
    /// Of the flows that the agent mends, together, and of those that it did not see; null where
    /// there are none of the latter.
    #[serde(serialize_with = "whole_option")]
    pub(crate) mended_goodput_median_bps: Option<f64>,
    #[serde(serialize_with = "whole_option")]
    pub(crate) unmended_goodput_median_bps: Option<f64>,
    #[serde(serialize_with = "compact_option")]
    pub(crate) fairness_median: Option<f64>,
    /// Of all flows of all runs.
    pub(crate) completion_ms: Option<Times>,
    pub(crate) ping: Option<PingSummary>,
    #[serde(flatten)]
    pub(crate) more: MoreSettings,
}

/// The ping of all runs of one combination, medians in milliseconds.
#[derive(Debug, Serialize)]
pub(crate) struct PingSummary {
    #[serde(serialize_with = "compact")]
    pub(crate) p50_ms: f64,
    #[serde(serialize_with = "compact")]
    pub(crate) p99_ms: f64,
    /// More than with the first agent on the same seed.
    #[serde(serialize_with = "compact_option")]
    pub(crate) added_p50_ms: Option<f64>,
    #[serde(serialize_with = "compact_option")]
    pub(crate) added_p99_ms: Option<f64>,
    /// The share that did not come back.
    #[serde(serialize_with = "compact")]
    pub(crate) lost: f64,
}
