//! Sequence-time plots of several runs on the same axes, with published rates as slopes.

use super::look::{
    Area, Entry, FADED, Frame, INK, Key, Marker, SERIES, distinct, line, picture, text,
};
use super::panel::{Axis, Marks, Panel};
use airmend_proto::outcome::TraceKind;
use anyhow::Result;
use plotters::style::text_anchor::HPos;

/// A chart of packets.
#[derive(Clone, Debug)]
pub(crate) struct Chart {
    /// The title.
    pub(crate) title: String,
    /// The set-up.
    pub(crate) subtitle: String,
    /// One for each run.
    pub(crate) traces: Vec<Trace>,
    /// Published goodputs: a few words, and bits per second.
    pub(crate) slopes: Vec<(String, f64)>,
}

/// The packets of one run, and what its ends and its agent had.
#[derive(Clone, Debug)]
pub(crate) struct Trace {
    /// The label of the run.
    pub(crate) label: String,
    /// The value of the swept setting, of which each may have a picture of its own.
    pub(crate) group: String,
    /// In the order of time.
    pub(crate) packets: Vec<Packet>,
}

impl Trace {
    /// Whether it has packets.
    pub(crate) fn has_data(&self) -> bool {
        self.packets.iter().any(|packet| packet.kind.is_data())
    }
}

/// One data packet, or a point of another kind at its value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    /// The time of departure, in seconds.
    pub(crate) seconds: f64,
    /// The offset in the stream, in bytes.
    pub(crate) offset: f64,
    /// The kind of the packet.
    pub(crate) kind: TraceKind,
}

/// Draws all runs to their ends, and beside it their beginning, where waiting times can be seen.
pub(crate) fn svg(chart: &Chart) -> Result<String> {
    let packets = || data(&chart.traces);
    let end = packets().map(|packet| packet.seconds).fold(1e-3, f64::max);
    let most = packets().map(|packet| packet.offset / 1e6).fold(1e-3, f64::max);
    let start = end * BEGINNING;
    // Scaled to the slowest run, whose waiting times are what there is to see.
    let reached = |trace: &Trace| {
        let early = data(std::slice::from_ref(trace)).filter(|packet| packet.seconds <= start);
        early.map(|packet| packet.offset / 1e6).fold(1e-3, f64::max)
    };
    let early = chart.traces.iter().map(reached).fold(f64::MAX, f64::min).min(most) * 2.0;
    let frame = Frame { title: &chart.title, subtitle: &chart.subtitle, legend: legend(chart) };
    picture(&frame, |root, area| {
        let (left, right) = area.split_horizontally(area.dim_in_pixel().0 * 53 / 100);
        let x = Axis { title: "time (s)", range: 0.0..end * 1.02, marks: Marks::Numbers };
        let title = "position in the stream (MB)";
        let y = Axis { title, range: 0.0..most * 1.04, marks: Marks::Numbers };
        draw(root, &Panel::new(root, &left, &x, &y)?, chart, (end, most), 2)?;
        let x = Axis { title: "the beginning (s)", range: 0.0..start, marks: Marks::Numbers };
        let y = Axis { title: "", range: 0.0..early * 1.04, marks: Marks::Numbers };
        draw(root, &Panel::new(root, &right, &x, &y)?, chart, (start, early), 6)
    })
}

/// The data packets of all runs.
fn data(traces: &[Trace]) -> impl Iterator<Item = &Packet> {
    traces.iter().flat_map(|trace| &trace.packets).filter(|packet| packet.kind.is_data())
}

fn legend(chart: &Chart) -> Vec<Entry> {
    let traces = chart.traces.iter().enumerate().map(|(index, trace)| Entry {
        label: trace.label.clone(),
        color: SERIES[index % SERIES.len()],
        key: Key::Point(Marker::Dot),
    });
    let mut legend: Vec<Entry> = traces.collect();
    let packets = || data(&chart.traces);
    for (kind, label, marker) in AGAIN {
        if packets().any(|packet| packet.kind == kind) {
            legend.push(Entry { label: label.to_owned(), color: INK, key: Key::Point(marker) });
        }
    }
    if !chart.slopes.is_empty() {
        let label = "published".to_owned();
        legend.push(Entry { label, color: FADED, key: Key::DashedLine });
    }
    legend
}

fn draw(
    root: &Area<'_>,
    panel: &Panel<'_>,
    chart: &Chart,
    (end, most): (f64, f64),
    size: i32,
) -> Result<()> {
    for (label, bps) in &chart.slopes {
        let mb_per_second = bps / 8e6;
        let until = end.min(most / mb_per_second);
        let top = panel.pixel(until, until * mb_per_second);
        line(root, &[panel.pixel(0.0, 0.0), top], FADED, 3, true)?;
        let anchor = if until < end { HPos::Center } else { HPos::Right };
        text(root, label, (top.0, top.1 - 30), 24, FADED, anchor)?;
    }
    for (index, trace) in chart.traces.iter().enumerate() {
        let color = SERIES[index % SERIES.len()];
        let kinds = std::iter::once((TraceKind::Data, Marker::Dot))
            .chain(AGAIN.map(|(kind, _, marker)| (kind, marker)));
        for (kind, marker) in kinds {
            let inside = |packet: &&Packet| {
                packet.kind == kind && panel.contains(packet.seconds, packet.offset / 1e6)
            };
            let packets = trace.packets.iter().filter(inside);
            let pixels = packets.map(|packet| {
                let (x, y) = panel.pixel(packet.seconds, packet.offset / 1e6);
                (x / COARSE * COARSE, y / COARSE * COARSE)
            });
            for at in distinct(pixels) {
                marker.draw(root, at, size, color)?;
            }
        }
    }
    Ok(())
}

/// The kinds of retransmissions, each with its label and shape.
const AGAIN: [(TraceKind, &str, Marker); 2] = [
    (TraceKind::LocalRetransmit, "resent locally", Marker::Diamond),
    (TraceKind::SenderRetransmit, "resent by the sender", Marker::Cross),
];
/// This share of the whole time is the beginning.
const BEGINNING: f64 = 0.1;
/// Pixels to which points are rounded: a picture of ten thousand packets stays small.
const COARSE: i32 = 2;
