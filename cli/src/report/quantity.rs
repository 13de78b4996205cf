//! What a figure draws, and what a published result is about.

use super::section::{Measure, Point};
use crate::text;
use serde::Deserialize;

/// What a paper counts in packets.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub(super) struct Packets {
    /// The payload of one.
    pub(super) bytes: f64,
    /// The time in which they are counted.
    pub(super) seconds: f64,
    /// The most that a receiver offers.
    pub(super) window: Option<f64>,
}

/// A quantity of the points of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Quantity {
    Goodput,
    /// Goodput, told as the packets of a time.
    Packets(Packets),
    Delay,
    /// A measure of the scenario, by its name.
    Measure(String),
}

impl Quantity {
    /// What the axis says.
    pub(super) fn unit(&self) -> String {
        match self {
            Self::Goodput => "goodput (Mb/s)".to_owned(),
            Self::Packets(packets) => format!("packets received in {} s", packets.seconds),
            Self::Delay => "delay (ms)".to_owned(),
            Self::Measure(name) => {
                let words = |name: &str| name.replace('_', " ");
                if let Some(time) = name.strip_suffix("_ms") {
                    format!("{} (ms)", words(time))
                } else if let Some(time) = name.strip_suffix("_s") {
                    format!("{} (s)", words(time))
                } else {
                    format!("{} (in a run)", words(name))
                }
            }
        }
    }

    /// From what the results have to the axis's unit.
    pub(super) fn factor(&self) -> f64 {
        match self {
            Self::Goodput => 1e-6,
            Self::Packets(_) | Self::Delay | Self::Measure(_) => 1.0,
        }
    }

    /// The value of a goodput on the axis.
    pub(super) fn of_bps(&self, bps: f64) -> Option<f64> {
        match self {
            Self::Goodput => Some(bps * 1e-6),
            Self::Packets(packets) => Some(packets.count(bps)),
            Self::Delay | Self::Measure(_) => None,
        }
    }

    /// The packets that are counted.
    pub(super) fn packets(&self) -> Option<Packets> {
        if let Self::Packets(packets) = self { Some(*packets) } else { None }
    }

    /// The measure of a point as the results have it: a goodput in bits per second.
    pub(super) fn of(&self, point: &Point) -> Option<Measure> {
        match self {
            Self::Goodput | Self::Packets(_) => Some(point.goodput),
            Self::Delay => point.delay,
            Self::Measure(name) => point.measures.get(name).copied(),
        }
    }

    /// The measure of a point in the axis's unit. A time of zero is that of nothing: no handoff was
    /// completed, no transfer either.
    pub(super) fn on_axis(&self, point: &Point) -> Option<Measure> {
        let is_time = |name: &str| name.ends_with("_ms") || name.ends_with("_s");
        let is_none =
            |mean: f64| mean == 0.0 && matches!(self, Self::Measure(name) if is_time(name));
        let Measure { mean, sd } = self.of(point).filter(|measure| !is_none(measure.mean))?;
        let place = |value: f64| self.of_bps(value).unwrap_or(value);
        Some(Measure { mean: place(mean), sd: sd.map(place) })
    }

    /// A value of the results in words.
    pub(super) fn words(&self, value: f64) -> String {
        match self {
            Self::Goodput => text::rate(value),
            Self::Packets(packets) => format!("{:.0} packets", packets.count(value)),
            Self::Delay => format!("{} ms", text::significant(value)),
            Self::Measure(name) if name.ends_with("_ms") => {
                format!("{} ms", text::significant(value))
            }
            Self::Measure(name) if name.ends_with("_s") => {
                format!("{} s", text::significant(value))
            }
            Self::Measure(_) => text::significant(value),
        }
    }
}

impl Packets {
    /// The goodput of so many.
    pub(super) fn bps(self, count: f64) -> f64 {
        count * self.bytes * 8.0 / self.seconds
    }

    /// The packets of a goodput.
    fn count(self, bps: f64) -> f64 {
        bps * self.seconds / 8.0 / self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_counted_in_the_time_of_the_paper() {
        let quantity = Quantity::Packets(Packets { bytes: 460.0, seconds: 200.0, window: None });
        assert_eq!(quantity.of_bps(1_840_000.0), Some(100_000.0));
        assert_eq!(quantity.words(1_840_000.0), "100000 packets");
        assert_eq!(quantity.unit(), "packets received in 200 s");
    }

    #[test]
    fn units_are_those_of_the_names() {
        let unit = |name: &str| Quantity::Measure(name.to_owned()).unit();
        assert_eq!(unit("handoff_p50_ms"), "handoff p50 (ms)");
        assert_eq!(unit("response_s"), "response (s)");
        assert_eq!(unit("resent_by_both"), "resent by both (in a run)");
    }
}
