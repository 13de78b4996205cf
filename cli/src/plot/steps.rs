//! What changes in steps over time, of several runs on the same axes: a window, a timeout, a cache.

use super::look::{Entry, Frame, Key, SERIES, line, picture};
use super::panel::{Axis, Marks, Panel};
use super::traces::Trace;
use airmend_proto::outcome::TraceKind;
use anyhow::Result;

/// What is counted in packets of so many bytes of payload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InPackets {
    pub(crate) bytes: f64,
    /// The most that a receiver offers: a congestion window above it is not used.
    pub(crate) window: Option<f64>,
}

/// Draws the points of one kind of all runs, each to its end; what has been received and windows in
/// packets, if they are given.
pub(crate) fn svg(
    (title, subtitle): (&str, &str),
    traces: &[&Trace],
    kind: TraceKind,
    packets: Option<InPackets>,
) -> Result<String> {
    let (name, scale) = axis(kind, packets.map(|packets| packets.bytes));
    let window = packets.and_then(|packets| packets.window);
    let most = window.filter(|_| kind == TraceKind::Window).unwrap_or(f64::INFINITY);
    let of_kind = |trace: &&Trace| -> Vec<(f64, f64)> {
        let points = trace.packets.iter().filter(|point| point.kind == kind);
        let mut points: Vec<(f64, f64)> =
            points.map(|point| (point.seconds, (point.offset * scale).min(most))).collect();
        // The last value holds to the end of its run.
        let end = trace.packets.last().map_or(0.0, |last| last.seconds);
        points.extend(points.last().map(|(_, value)| (end, *value)));
        points
    };
    let runs: Vec<Vec<(f64, f64)>> = traces.iter().map(of_kind).collect();
    let ends = traces.iter().filter_map(|trace| trace.packets.last().map(|last| last.seconds));
    let end = ends.fold(1e-3, f64::max);
    let most = runs.iter().flatten().map(|(_, value)| *value).fold(1e-3, f64::max);
    let legend = traces.iter().enumerate().map(|(index, trace)| Entry {
        label: trace.label.clone(),
        color: SERIES[index % SERIES.len()],
        key: Key::Line,
    });
    let frame = Frame { title, subtitle, legend: legend.collect() };
    picture(&frame, |root, area| {
        let x = Axis { title: "time (s)", range: 0.0..end * 1.02, marks: Marks::Numbers };
        let y = Axis { title: name, range: 0.0..most * 1.08, marks: Marks::Numbers };
        let panel = Panel::new(root, area, &x, &y)?;
        for (index, points) in runs.iter().enumerate() {
            let pixels = staircase(points).into_iter();
            let pixels: Vec<_> = pixels.map(|(x, y)| panel.pixel(x, y)).collect();
            line(root, &thinned(&pixels), SERIES[index % SERIES.len()], 3, false)?;
        }
        Ok(())
    })
}

/// The corners of the steps: each value holds until the next one.
fn staircase(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut corners: Vec<(f64, f64)> = Vec::with_capacity(2 * points.len());
    for &(seconds, value) in points {
        corners.extend(corners.last().map(|(_, before)| (seconds, *before)));
        corners.push((seconds, value));
    }
    corners
}

/// The same line with at most four points in each column of pixels: where it enters, its extremes,
/// and where it leaves. So a picture of a hundred thousand packets stays small.
fn thinned(pixels: &[(i32, i32)]) -> Vec<(i32, i32)> {
    let mut line = Vec::new();
    for column in pixels.chunk_by(|one, next| one.0 == next.0) {
        let heights = || column.iter().copied();
        let extremes = [heights().min_by_key(|at| at.1), heights().max_by_key(|at| at.1)];
        let ends = [column.first().copied(), column.last().copied()];
        line.extend([ends[0], extremes[0], extremes[1], ends[1]].into_iter().flatten());
    }
    line.dedup();
    line
}

/// The words of the vertical axis, and the factor to its unit.
fn axis(kind: TraceKind, packet: Option<f64>) -> (&'static str, f64) {
    match (kind, packet) {
        (TraceKind::Window, Some(bytes)) => return ("congestion window (packets)", 1.0 / bytes),
        (TraceKind::Received, Some(bytes)) => return ("packets received in order", 1.0 / bytes),
        _ => {}
    }
    match kind {
        TraceKind::Window => ("congestion window (kB)", 1e-3),
        TraceKind::Timeout => ("retransmission timeout (s)", 1e-3),
        TraceKind::Cached => ("packets in the agent's cache", 1.0),
        TraceKind::Received => ("received in order (kB)", 1e-3),
        TraceKind::Data
        | TraceKind::LocalRetransmit
        | TraceKind::SenderRetransmit
        | TraceKind::Ack => ("position in the stream (kB)", 1e-3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::traces::Packet;

    #[test]
    fn values_hold_until_the_next_one() {
        let steps = staircase(&[(0.0, 1.0), (1.0, 3.0), (5.0, 2.0)]);
        assert_eq!(steps, [(0.0, 1.0), (1.0, 1.0), (1.0, 3.0), (5.0, 3.0), (5.0, 2.0)]);
        assert!(staircase(&[]).is_empty());
    }

    #[test]
    fn a_column_of_pixels_keeps_its_extremes() {
        let many = [(0, 5), (1, 5), (1, 9), (1, 2), (1, 4), (1, 6), (2, 6)];
        assert_eq!(thinned(&many), [(0, 5), (1, 5), (1, 2), (1, 9), (1, 6), (2, 6)]);
        let few = [(0, 5), (3, 5), (3, 7), (8, 7)];
        assert_eq!(thinned(&few), few);
        assert!(thinned(&[]).is_empty());
    }

    #[test]
    fn one_line_is_drawn_for_each_run() {
        let point = |seconds, offset| Packet { seconds, offset, kind: TraceKind::Window };
        let trace = |label: &str, packets| {
            let (group, label) = (String::new(), label.to_owned());
            Trace { label, group, packets }
        };
        let runs = [
            trace("plain", vec![point(0.0, 2_264.0), point(40.0, 4_528.0)]),
            trace("snoop", vec![point(0.0, 2_264.0), point(10.0, 9_000.0)]),
        ];
        let runs: Vec<&Trace> = runs.iter().collect();
        let drawn = svg(("windows", "set-up"), &runs, TraceKind::Window, None).unwrap();
        assert!(drawn.contains("congestion window (kB)") && drawn.contains("plain"), "{drawn}");
        // The longest run is drawn to its end.
        assert!(drawn.contains("\n40\n"), "{drawn}");
        let packets = InPackets { bytes: 2_264.0, window: Some(3.0) };
        let drawn = svg(("windows", "set-up"), &runs, TraceKind::Window, Some(packets)).unwrap();
        assert!(drawn.contains("congestion window (packets)"), "{drawn}");
    }
}
