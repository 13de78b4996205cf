//! What is judged of a cell: the share of its reference, bytes, ping, and what flows beside keep.

use super::cells::Cells;
use crate::row::short;
use crate::stats;
use airmend_sim::{Outcome, Point};
use serde::{Deserialize, Serialize};

/// The figures of one agent in one cell, one value for each seed. What a cell has not is empty.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct Figures {
    pub(crate) family: String,
    pub(crate) cell: String,
    pub(crate) agent: String,
    /// Goodput (of finite flows: their speed) relative to the bound, or to what plain has without
    /// losses less the share that losses take of the bound.
    pub(crate) share: Vec<f64>,
    /// Bytes on the air for each useful byte, relative to plain's without losses, less what losses
    /// cost anyone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) bytes: Vec<f64>,
    /// The median ping relative to plain's without losses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) ping: Vec<f64>,
    /// Goodput of the flows beside relative to what they have beside plain.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) beside: Vec<f64>,
    /// Events of the simulator in its runs; with the first agent, also in those without losses.
    #[serde(default)]
    pub(crate) steps: u64,
    /// The program, and when it ran.
    pub(crate) at: String,
}

/// One kind of figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Figure {
    Share,
    Bytes,
    Ping,
    Beside,
}

impl Figure {
    pub(crate) const ALL: [Self; 4] = [Self::Share, Self::Bytes, Self::Ping, Self::Beside];

    /// Its name in tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Share => "share",
            Self::Bytes => "bytes",
            Self::Ping => "ping",
            Self::Beside => "beside",
        }
    }

    /// 1 if more is better, else -1.
    pub(crate) fn sign(self) -> f64 {
        if matches!(self, Self::Share | Self::Beside) { 1.0 } else { -1.0 }
    }

    /// The values of the seeds.
    pub(crate) fn of(self, figures: &Figures) -> &[f64] {
        match self {
            Self::Share => &figures.share,
            Self::Bytes => &figures.bytes,
            Self::Ping => &figures.ping,
            Self::Beside => &figures.beside,
        }
    }

    /// Their mean.
    pub(crate) fn mean(self, figures: &Figures) -> Option<f64> {
        stats::mean(self.of(figures))
    }
}

impl Figures {
    /// What identifies the cell and the agent.
    pub(crate) fn key(&self) -> (&str, &str, &str) {
        (&self.family, &self.agent, &self.cell)
    }
}

/// The figures of the chosen cells from the outcomes of [`Cells::runs`], cell by cell.
pub(crate) fn judge(cells: &Cells, outcomes: &[Outcome], at: &str) -> Vec<Figures> {
    let runs = cells.experiment.runs as usize;
    let mut all = Vec::new();
    for (cell, outcomes) in cells.chosen.iter().zip(outcomes.chunks(cells.variants() * runs)) {
        let points = &cells.experiment.points[cell * cells.variants()..];
        let mut variants = points.iter().zip(outcomes.chunks(runs));
        let measured = |(point, outcomes): (&Point, &[Outcome])| -> Variant {
            Variant::of(point, outcomes, cells.family.beside)
        };
        let clean = cells.has_clean().then(|| variants.next().map(measured)).flatten();
        let mut steps = clean.as_ref().map_or(0, |clean| clean.steps);
        for (agent, variant) in cells.agents.iter().zip(variants) {
            let variant = measured(variant);
            steps += variant.steps;
            let relative = |values: &[f64], reference: Option<f64>, factor: f64| -> Vec<f64> {
                let reference = reference.filter(|reference| *reference > 0.0);
                let share = |value: &f64| reference.map(|reference| value * factor / reference);
                values.iter().filter_map(share).map(short).collect()
            };
            // What the losses leave of the bound, to anyone.
            let left = match (variant.bound, clean.as_ref().and_then(|clean| clean.bound)) {
                (Some(bound), Some(clean)) if clean > 0.0 => bound / clean,
                _ => 1.0,
            };
            let clean_mean = |values: fn(&Variant) -> &Vec<f64>| {
                clean.as_ref().and_then(|clean| stats::mean(values(clean)))
            };
            let reference = match &clean {
                Some(clean) => stats::mean(&clean.speed).map(|speed| speed * left),
                None => variant.bound,
            };
            all.push(Figures {
                family: cells.name.clone(),
                cell: cells.cell(*cell),
                agent: agent.label.clone(),
                share: relative(&variant.speed, reference, 1.0),
                bytes: relative(&variant.bytes, clean_mean(|clean| &clean.bytes), left),
                ping: relative(&variant.ping, clean_mean(|clean| &clean.ping), 1.0),
                beside: relative(&variant.beside, clean_mean(|clean| &clean.beside), 1.0),
                steps: std::mem::take(&mut steps),
                at: at.to_owned(),
            });
        }
    }
    all
}

/// The measurements of one variant of a cell, one value for each run.
struct Variant {
    bound: Option<f64>,
    /// Bits per second.
    speed: Vec<f64>,
    bytes: Vec<f64>,
    /// Milliseconds.
    ping: Vec<f64>,
    /// Bits per second.
    beside: Vec<f64>,
    steps: u64,
}

impl Variant {
    fn of(point: &Point, outcomes: &[Outcome], beside: usize) -> Self {
        let setting = point.plan.setting();
        let bulk = |outcome: &Outcome| -> Vec<usize> {
            let flows = outcome.flow_delay.iter().enumerate();
            flows.filter(|(_, delay)| delay.is_none()).map(|(flow, _)| flow).collect()
        };
        let goodput = |outcome: &Outcome, flows: &[usize]| -> f64 {
            flows.iter().map(|flow| outcome.flow_goodput_bps[*flow]).sum()
        };
        let speed = |outcome: &Outcome| {
            let flows = bulk(outcome);
            let mended = &flows[..flows.len().saturating_sub(beside)];
            let Some(bytes) = setting.bytes else { return goodput(outcome, mended) };
            // The time that a user waits for an object.
            let seconds: f64 = mended.iter().map(|flow| outcome.flow_seconds[*flow]).sum();
            8.0 * bytes as f64 * mended.len() as f64 / seconds.max(1e-9)
        };
        let kept = |outcome: &Outcome| {
            let flows = bulk(outcome);
            goodput(outcome, &flows[flows.len().saturating_sub(beside)..])
        };
        let ping = |outcome: &Outcome| {
            outcome.flow_delay.iter().flatten().next().map(|delay| delay.p50_ms)
        };
        let beside = if beside > 0 { outcomes } else { &[] };
        Self {
            bound: setting.bound_bps,
            speed: outcomes.iter().map(speed).collect(),
            bytes: outcomes.iter().filter_map(|outcome| outcome.wire_bytes_per_byte).collect(),
            ping: outcomes.iter().filter_map(ping).collect(),
            beside: beside.iter().map(kept).collect(),
            steps: outcomes.iter().map(|outcome| outcome.steps).sum(),
        }
    }
}
