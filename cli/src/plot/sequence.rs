//! The sequence-time plot: data that left the base station, and the ACKs that came back.

use super::look::{
    Area, BLUE, Entry, FADED, Frame, GRID, Key, Marker, SKY, VERMILION, distinct, drawing, line,
    picture, save,
};
use super::panel::{Axis, Marks, Panel};
use crate::text;
use airmend_live::lab::outcome::{TraceKind, TracePoint};
use anyhow::Result;
use plotters::prelude::*;
use std::ops::Range;
use std::path::Path;

/// Draws the first flow's trace into an SVG file: all of it, and a part that shows each packet.
pub(crate) fn write(path: &Path, title: &str, subtitle: &str, trace: &[TracePoint]) -> Result<()> {
    let entry = |(kind, label, color, marker): (TraceKind, &str, RGBColor, Option<Marker>)| {
        let seen = trace.iter().filter(|point| point.kind == kind).count();
        let label = format!("{label} ({})", text::count(seen as u64));
        Entry { label, color, key: marker.map_or(Key::Line, Key::Point) }
    };
    let frame = Frame { title, subtitle, legend: KINDS.map(entry).into() };
    let end = trace.iter().map(|point| point.seconds).fold(1e-3, f64::max);
    let most = trace.iter().map(megabytes).fold(1e-3, f64::max);
    let part = part(trace, end);
    let svg = picture(&frame, |root, area| {
        let (left, right) = area.split_horizontally(area.dim_in_pixel().0 * 53 / 100);
        let x = Axis { title: "time (s)", range: 0.0..end * 1.02, marks: Marks::Numbers };
        let title = "position in the stream (MB)";
        let y = Axis { title, range: 0.0..most * 1.04, marks: Marks::Numbers };
        let whole = Panel::new(root, &left, &x, &y)?;
        let inside = trace.iter().filter(|point| part.contains(&point.seconds)).map(megabytes);
        let (low, high) =
            inside.fold((f64::MAX, 0.0), |(low, high): (f64, f64), mb| (low.min(mb), high.max(mb)));
        let (low, high) = if low < high { (low, high) } else { (0.0, most) };
        let edge = (high - low) * 0.05;
        let (low, high) = (low - edge, high + edge);
        let corners = [whole.pixel(part.start, low), whole.pixel(part.end, high)];
        root.draw(&Rectangle::new(corners, GRID.filled())).map_err(drawing)?;
        draw(root, &whole, trace, 3)?;
        let x = Axis { title: "the shaded part (s)", range: part, marks: Marks::Numbers };
        let y = Axis { title: "", range: low..high, marks: Marks::Numbers };
        draw(root, &Panel::new(root, &right, &x, &y)?, trace, 7)
    })?;
    save(path, &svg)
}

fn draw(root: &Area<'_>, panel: &Panel<'_>, trace: &[TracePoint], size: i32) -> Result<()> {
    for (kind, _, color, marker) in KINDS {
        let points = trace
            .iter()
            .filter(|point| point.kind == kind && panel.contains(point.seconds, megabytes(point)));
        let pixels = distinct(points.map(|point| panel.pixel(point.seconds, megabytes(point))));
        match marker {
            None => line(root, &steps(&pixels), color, 2, false)?,
            Some(marker) => {
                for at in pixels {
                    marker.draw(root, at, size, color)?;
                }
            }
        }
    }
    Ok(())
}

/// The time of [`PART`] packets around the middle one of the local retransmissions, of the sender's
/// if there are none, or of all packets.
fn part(trace: &[TracePoint], end: f64) -> Range<f64> {
    let packets: Vec<&TracePoint> = trace.iter().filter(|point| point.kind.is_data()).collect();
    let middle_of = |kind| {
        let places = packets.iter().enumerate().filter(|(_, point)| point.kind == kind);
        let places: Vec<usize> = places.map(|(place, _)| place).collect();
        places.get(places.len() / 2).copied()
    };
    let middle = middle_of(TraceKind::LocalRetransmit)
        .or_else(|| middle_of(TraceKind::SenderRetransmit))
        .unwrap_or(packets.len() / 2);
    let first = middle.saturating_sub(PART / 2);
    let last = (first + PART).min(packets.len().saturating_sub(1));
    match (packets.get(first), packets.get(last)) {
        (Some(first), Some(last)) if first.seconds < last.seconds => first.seconds..last.seconds,
        _ => 0.0..end,
    }
}

fn megabytes(point: &TracePoint) -> f64 {
    point.offset as f64 / 1e6
}

/// Packets in the part that is shown larger: few enough to be distinguished.
const PART: usize = 120;

/// An ACK holds until the next one: a staircase through its points.
pub(super) fn steps(pixels: &[(i32, i32)]) -> Vec<(i32, i32)> {
    let mut path: Vec<(i32, i32)> = Vec::with_capacity(pixels.len() * 2);
    for at in pixels {
        if let Some(last) = path.last().copied()
            && last.0 != at.0
            && last.1 != at.1
        {
            path.push((at.0, last.1));
        }
        path.push(*at);
    }
    path
}

/// The order of drawing: rare kinds are last and stay visible.
const KINDS: [(TraceKind, &str, RGBColor, Option<Marker>); 4] = [
    (TraceKind::Ack, "ACKs to the sender", FADED, None),
    (TraceKind::Data, "first sends", SKY, Some(Marker::Dot)),
    (TraceKind::LocalRetransmit, "local retransmissions", BLUE, Some(Marker::Diamond)),
    (TraceKind::SenderRetransmit, "sender's retransmissions", VERMILION, Some(Marker::Cross)),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(place: usize, kind: TraceKind) -> TracePoint {
        let (seconds, offset) = (place as f64 / 100.0, place as u64 * 1448);
        TracePoint { seconds, offset, side: airmend_proto::Port::Air, kind }
    }

    #[test]
    fn the_part_lies_around_a_local_retransmission() {
        let mut trace: Vec<_> = (0..1_000).map(|place| packet(place, TraceKind::Data)).collect();
        trace[300].kind = TraceKind::SenderRetransmit;
        assert_eq!(part(&trace, 10.0), 2.4..3.6);
        trace[990].kind = TraceKind::LocalRetransmit;
        assert_eq!(part(&trace, 10.0), 9.3..9.99);
        assert_eq!(part(&[], 10.0), 0.0..10.0);
        assert_eq!(part(&trace[..1], 10.0), 0.0..10.0);
    }

    #[test]
    fn a_staircase_turns_only_where_both_change() {
        assert_eq!(
            steps(&[(0, 9), (4, 9), (6, 5), (6, 2)]),
            [(0, 9), (4, 9), (6, 9), (6, 5), (6, 2)]
        );
    }
}
