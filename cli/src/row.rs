//! The JSON lines of runs and of summaries. Names and units are stable.

pub(crate) mod lab;

use crate::stats;
use serde::Serialize;

pub(crate) use airmend_sim::row::{
    Line, ber_and_loss, line, millis, rounded, sender, short, write,
};

/// The distribution of durations, in milliseconds.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Times {
    count: usize,
    pub(crate) p50: f64,
    pub(crate) p90: f64,
    pub(crate) p99: f64,
    pub(crate) max: f64,
}

impl Times {
    /// The distribution of times in seconds; `None` without times.
    pub(crate) fn of(seconds: &[f64]) -> Option<Self> {
        let millis = |share| stats::quantile(seconds, share).map(|s| rounded(s * 1e3, 3));
        Some(Self {
            count: seconds.len(),
            p50: millis(0.5)?,
            p90: millis(0.9)?,
            p99: millis(0.99)?,
            max: millis(1.0)?,
        })
    }
}

#[cfg(test)]
mod tests;
