//! Heat maps side by side: a share in each cell, by colour and in words.

use super::look::{
    Area, Entry, FADED, Frame, INK, Key, Marker, drawing, font, line, picture, save, text,
};
use anyhow::Result;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::path::Path;

/// Heat maps with common axes.
#[derive(Clone, Debug)]
pub(crate) struct Heat {
    pub(crate) title: String,
    pub(crate) subtitle: String,
    pub(crate) x: HeatAxis,
    pub(crate) y: HeatAxis,
    /// From top to bottom, and in each row from left to right.
    pub(crate) maps: Vec<Vec<HeatMap>>,
}

/// An axis: what it shows, and the word of each value.
#[derive(Clone, Debug)]
pub(crate) struct HeatAxis {
    pub(crate) title: String,
    pub(crate) labels: Vec<String>,
}

/// One map.
#[derive(Clone, Debug)]
pub(crate) struct HeatMap {
    pub(crate) title: String,
    /// From bottom to top, and in each row from left to right; from 0 to 1, `None` if unknown.
    pub(crate) shares: Vec<Vec<Option<f64>>>,
}

/// Draws the maps into an SVG file.
pub(crate) fn write(path: &Path, heat: &Heat) -> Result<()> {
    let key = |quarter: u8| {
        let share = f64::from(quarter) / 4.0;
        let label = format!("{:.0} %", share * 100.0);
        Entry { label, color: color(share), key: Key::Point(Marker::Square) }
    };
    let legend = (0..=4).map(key).collect();
    let frame = Frame { title: &heat.title, subtitle: &heat.subtitle, legend };
    save(path, &picture(&frame, |root, area| draw(root, area, heat))?)
}

fn draw(root: &Area<'_>, area: &Area<'_>, heat: &Heat) -> Result<()> {
    let (width, height) = area.dim_in_pixel();
    let (width, height) = (width as i32, height as i32);
    let top = area.get_base_pixel().1;
    let columns = heat.maps.iter().map(Vec::len).max().unwrap_or(0).max(1) as i32;
    let rows = heat.maps.len().max(1) as i32;
    let map_width = (width - LEFT - RIGHT - (columns - 1) * GAP) / columns;
    let map_height = (height - BOTTOM - rows * TITLE) / rows;
    for (row, maps) in (0..).zip(&heat.maps) {
        for (column, map) in (0..).zip(maps) {
            let corner =
                (LEFT + column * (map_width + GAP), top + TITLE + row * (map_height + TITLE));
            let place = Place { corner, size: (map_width, map_height) };
            text(root, &map.title, (corner.0, corner.1 - 34), 25, INK, HPos::Left)?;
            cells(root, &place, map)?;
            if column == 0 {
                y_labels(root, &place, &heat.y)?;
            }
            if row == rows - 1 {
                x_labels(root, &place, &heat.x)?;
            }
        }
    }
    Ok(())
}

/// Where a map is, in pixels.
struct Place {
    corner: (i32, i32),
    size: (i32, i32),
}

impl Place {
    /// The corners of a cell of so many by so many, counted from the lower left.
    fn cell(&self, (x, y): (usize, usize), (xs, ys): (usize, usize)) -> [(i32, i32); 2] {
        let share =
            |length: i32, index: usize, count: usize| length * index as i32 / count.max(1) as i32;
        let (left, top) = self.corner;
        let from_top = ys - 1 - y;
        [
            (left + share(self.size.0, x, xs), top + share(self.size.1, from_top, ys)),
            (left + share(self.size.0, x + 1, xs), top + share(self.size.1, from_top + 1, ys)),
        ]
    }
}

fn cells(root: &Area<'_>, place: &Place, map: &HeatMap) -> Result<()> {
    let count = (map.shares.first().map_or(0, Vec::len), map.shares.len());
    for (y, shares) in map.shares.iter().enumerate() {
        for (x, share) in shares.iter().enumerate() {
            let [from, to] = place.cell((x, y), count);
            let fill = share.map_or(UNKNOWN, color);
            root.draw(&Rectangle::new([from, to], fill.filled())).map_err(drawing)?;
            root.draw(&Rectangle::new([from, to], WHITE.stroke_width(2))).map_err(drawing)?;
            let Some(share) = share else { continue };
            if to.0 - from.0 < LEAST_CELL.0 || to.1 - from.1 < LEAST_CELL.1 {
                continue;
            }
            let is_light = *share > 0.6;
            let ink = if is_light { INK } else { RGBColor(0xff, 0xff, 0xff) };
            let middle = (i32::midpoint(from.0, to.0), i32::midpoint(from.1, to.1));
            let style = font(22, ink).pos(Pos::new(HPos::Center, VPos::Center));
            let percent = format!("{:.0}", share * 100.0);
            root.draw_text(&percent, &style, middle).map_err(drawing)?;
        }
    }
    Ok(())
}

fn x_labels(root: &Area<'_>, place: &Place, axis: &HeatAxis) -> Result<()> {
    let count = (axis.labels.len(), 1);
    let bottom = place.corner.1 + place.size.1;
    for (x, label) in axis.labels.iter().enumerate() {
        let [from, to] = place.cell((x, 0), count);
        let middle = i32::midpoint(from.0, to.0);
        line(root, &[(middle, bottom), (middle, bottom + 6)], FADED, 2, false)?;
        text(root, label, (middle, bottom + 12), 22, FADED, HPos::Center)?;
    }
    let middle = place.corner.0 + place.size.0 / 2;
    text(root, &axis.title, (middle, bottom + 42), 25, INK, HPos::Center)
}

fn y_labels(root: &Area<'_>, place: &Place, axis: &HeatAxis) -> Result<()> {
    let count = (1, axis.labels.len());
    for (y, label) in axis.labels.iter().enumerate() {
        let [from, to] = place.cell((0, y), count);
        let middle = i32::midpoint(from.1, to.1);
        text(root, label, (place.corner.0 - 12, middle - 12), 22, FADED, HPos::Right)?;
    }
    let above = (place.corner.0 - 12, place.corner.1 - 34);
    text(root, &axis.title, above, 25, INK, HPos::Right)
}

/// From dark violet to yellow: evenly spaced in lightness, also for colour-blind readers and in
/// grey (the stops of Matplotlib's "viridis").
fn color(share: f64) -> RGBColor {
    const STOPS: [(u8, u8, u8); 5] = [
        (0x44, 0x01, 0x54),
        (0x3b, 0x52, 0x8b),
        (0x21, 0x91, 0x8c),
        (0x5e, 0xc9, 0x62),
        (0xfd, 0xe7, 0x25),
    ];
    let at = share.clamp(0.0, 1.0) * (STOPS.len() - 1) as f64;
    let below = (at as usize).min(STOPS.len() - 2);
    let (low, high) = (STOPS[below], STOPS[below + 1]);
    let mix = |low: u8, high: u8| {
        (f64::from(low) + (f64::from(high) - f64::from(low)) * (at - below as f64)).round() as u8
    };
    RGBColor(mix(low.0, high.0), mix(low.1, high.1), mix(low.2, high.2))
}

const UNKNOWN: RGBColor = RGBColor(0xdd, 0xdd, 0xdd);
/// Pixels left, right and below the maps, between them, and above each.
const LEFT: i32 = 150;
const RIGHT: i32 = 40;
const BOTTOM: i32 = 100;
const GAP: i32 = 36;
const TITLE: i32 = 46;
/// A smaller cell has no number.
const LEAST_CELL: (i32, i32) = (40, 24);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_go_from_dark_to_light() {
        let lightness = |share| {
            let RGBColor(r, g, b) = color(share);
            0.2 * f64::from(r) + 0.7 * f64::from(g) + 0.1 * f64::from(b)
        };
        let steps: Vec<f64> = (0..=20).map(|step| lightness(f64::from(step) / 20.0)).collect();
        assert!(steps.is_sorted(), "{steps:?}");
        assert_eq!((color(-1.0), color(2.0)), (color(0.0), color(1.0)));
    }

    #[test]
    fn cells_begin_at_the_lower_left_and_fill_the_map() {
        let place = Place { corner: (10, 20), size: (100, 50) };
        assert_eq!(place.cell((0, 0), (4, 2)), [(10, 45), (35, 70)]);
        assert_eq!(place.cell((3, 1), (4, 2)), [(85, 20), (110, 45)]);
    }
}
