//! A histogram with fixed buckets, as in Prometheus.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Upper bounds of the buckets, in seconds; the air's round trip from a fast Wi-Fi to a satellite.
pub(super) const BOUNDS: [f64; 13] =
    [0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0];

/// Durations, counted in buckets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Histogram {
    /// Upper bound of each bucket in seconds; what is longer than the last one is in `count` only.
    pub bounds: Vec<f64>,
    /// The number of durations in each bucket and in no lower one.
    pub counts: Vec<u64>,
    /// The number of durations.
    pub count: u64,
    /// Their sum in seconds.
    pub sum: f64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { bounds: BOUNDS.to_vec(), counts: vec![0; BOUNDS.len()], count: 0, sum: 0.0 }
    }
}

impl Histogram {
    /// Counts one.
    pub(super) fn add(&mut self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        self.count += 1;
        self.sum += seconds;
        let bucket = self.bounds.partition_point(|bound| *bound < seconds);
        if let Some(count) = self.counts.get_mut(bucket) {
            *count += 1;
        }
    }

    /// The bound of the bucket in which this quantile (0 to 1) lies, in seconds: infinite beyond
    /// the last one, `None` if nothing was counted.
    pub fn quantile(&self, quantile: f64) -> Option<f64> {
        let rank = (quantile * self.count as f64).ceil().max(1.0) as u64;
        let mut below = 0;
        let bucket = self.bounds.iter().zip(&self.counts).find(|(_, count)| {
            below += **count;
            below >= rank
        });
        (self.count > 0).then(|| bucket.map_or(f64::INFINITY, |(bound, _)| *bound))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_belongs_to_its_bucket_and_quantiles_name_bounds() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.quantile(0.5), None);
        for millis in [1, 1, 2, 3, 5_000] {
            histogram.add(Duration::from_millis(millis));
        }
        assert_eq!(histogram.counts[2..5], [2, 1, 1]);
        assert_eq!((histogram.count, histogram.sum), (5, 5.007));
        assert_eq!(histogram.counts.iter().sum::<u64>(), 4, "one is beyond the last bound");
        assert_eq!(histogram.quantile(0.0), Some(0.001));
        assert_eq!(histogram.quantile(0.5), Some(0.002));
        assert_eq!(histogram.quantile(1.0), Some(f64::INFINITY));
    }
}
