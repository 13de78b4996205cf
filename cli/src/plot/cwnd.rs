//! The sender's congestion window over time.

use super::look::{Area, Entry, FADED, Frame, Key, Marker, SERIES, VERMILION, line, picture, save};
use super::panel::{Axis, Marks, Panel};
use super::sequence::steps;
use airmend_live::lab::outcome::TcpSample;
use anyhow::Result;
use plotters::prelude::RGBColor;
use std::path::Path;

/// Draws congestion window and slow start threshold of each flow into an SVG file.
pub(crate) fn write(path: &Path, title: &str, subtitle: &str, samples: &[TcpSample]) -> Result<()> {
    let flows = samples.iter().map(|sample| sample.flow + 1).max().unwrap_or(1);
    let shown = flows.min(SHOWN);
    let timeouts: Vec<&TcpSample> = (0..shown).flat_map(|flow| timeouts(samples, flow)).collect();
    let frame = Frame { title, subtitle, legend: legend(shown, flows) };
    let end = samples.iter().map(|sample| sample.seconds).fold(1e-3, f64::max);
    let most = samples.iter().map(|sample| sample.cwnd).max().unwrap_or(0).max(10);
    let x = Axis { title: "time (s)", range: 0.0..end * 1.02, marks: Marks::Numbers };
    let y = Axis {
        title: "congestion window (segments)",
        range: 0.0..f64::from(most) * 1.06,
        marks: Marks::Numbers,
    };
    let svg = picture(&frame, |root, area| {
        let panel = Panel::new(root, area, &x, &y)?;
        threshold(root, &panel, samples)?;
        for flow in (0..shown).rev() {
            let of_flow = samples.iter().filter(|sample| sample.flow == flow);
            let window: Vec<_> =
                of_flow.map(|s| panel.pixel(s.seconds, f64::from(s.cwnd))).collect();
            line(root, &steps(&window), color(flow), 3, false)?;
        }
        for sample in timeouts {
            let at = panel.pixel(sample.seconds, f64::from(sample.cwnd));
            Marker::Cross.draw(root, at, 9, VERMILION)?;
        }
        Ok(())
    })?;
    save(path, &svg)
}

/// The first flow's slow start threshold, where it is not infinite as before the first loss.
fn threshold(root: &Area<'_>, panel: &Panel<'_>, samples: &[TcpSample]) -> Result<()> {
    let first = samples.iter().filter(|sample| sample.flow == 0);
    let shown = first.filter(|s| panel.contains(s.seconds, f64::from(s.ssthresh)));
    let pixels: Vec<_> = shown.map(|s| panel.pixel(s.seconds, f64::from(s.ssthresh))).collect();
    line(root, &steps(&pixels), FADED, 3, true)
}

/// The samples in which a flow is first seen recovering from another timeout.
fn timeouts(samples: &[TcpSample], flow: u32) -> impl Iterator<Item = &TcpSample> {
    let of_flow = move || samples.iter().filter(move |sample| sample.flow == flow);
    of_flow()
        .zip(of_flow().skip(1))
        .filter(|(before, after)| {
            // While it recovers the window only grows, unless there is another timeout.
            after.after_timeout && (!before.after_timeout || after.cwnd < before.cwnd)
        })
        .map(|(_, after)| after)
}

fn legend(shown: u32, flows: u32) -> Vec<Entry> {
    let mut entries: Vec<Entry> = (0..shown)
        .map(|flow| Entry {
            label: match (flows, flow + 1 == shown && shown < flows) {
                (1, _) => "congestion window".into(),
                (_, true) => format!("flow {} of {flows}", flow + 1),
                _ => format!("flow {}", flow + 1),
            },
            color: color(flow),
            key: Key::Line,
        })
        .collect();
    let label = if flows == 1 { "slow start threshold" } else { "threshold of flow 1" };
    entries.push(Entry { label: label.into(), color: FADED, key: Key::DashedLine });
    entries.push(Entry {
        label: "timeout".into(),
        color: VERMILION,
        key: Key::Point(Marker::Cross),
    });
    entries
}

/// The colour of a timeout's marker is no flow's.
fn color(flow: u32) -> RGBColor {
    SERIES[1 + flow as usize % (SERIES.len() - 1)]
}

/// More flows than this would be a tangle.
const SHOWN: u32 = 5;
