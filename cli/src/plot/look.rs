//! Colours, fonts, markers, and the frame that every picture shares.

use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::collections::HashSet;
use std::path::Path;

/// The area of a picture.
pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Pixels of every picture; twice what a page shows, so that whole pixels are fine enough.
const SIZE: (u32, u32) = (1600, 1000);

/// Text, from black to the grey of the grid.
pub(super) const INK: RGBColor = RGBColor(0x22, 0x22, 0x22);
pub(super) const FADED: RGBColor = RGBColor(0x66, 0x66, 0x66);
pub(super) const BOUND: RGBColor = RGBColor(0x8a, 0x8a, 0x8a);
pub(super) const GRID: RGBColor = RGBColor(0xe6, 0xe6, 0xe6);
pub(super) const AXIS: RGBColor = RGBColor(0x99, 0x99, 0x99);

/// Okabe and Ito's palette, which colour-blind readers can distinguish.
pub(super) const VERMILION: RGBColor = RGBColor(0xd5, 0x5e, 0x00);
pub(super) const BLUE: RGBColor = RGBColor(0x00, 0x72, 0xb2);
pub(super) const GREEN: RGBColor = RGBColor(0x00, 0x9e, 0x73);
pub(super) const PURPLE: RGBColor = RGBColor(0xcc, 0x79, 0xa7);
pub(super) const ORANGE: RGBColor = RGBColor(0xe6, 0x9f, 0x00);
pub(super) const SKY: RGBColor = RGBColor(0x56, 0xb4, 0xe9);

/// The colours of series, in order.
pub(super) const SERIES: [RGBColor; 6] = [VERMILION, BLUE, GREEN, PURPLE, ORANGE, SKY];

/// The shape of a point; each differs without colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Marker {
    Circle,
    Square,
    Triangle,
    Diamond,
    Cross,
    Dot,
}

impl Marker {
    /// The shapes of series, in order.
    pub(super) const SERIES: [Self; 4] =
        [Self::Circle, Self::Square, Self::Triangle, Self::Diamond];

    /// The shape of a series: with its colour no other of the first 24 has it.
    pub(super) fn of_series(index: usize) -> Self {
        Self::SERIES[(index + index / SERIES.len()) % Self::SERIES.len()]
    }

    /// Draws the shape around a pixel.
    pub(super) fn draw(
        self,
        area: &Area<'_>,
        at: (i32, i32),
        size: i32,
        color: RGBColor,
    ) -> Result<()> {
        let (x, y) = at;
        let filled = color.filled();
        let polygon = |corners: Vec<(i32, i32)>| area.draw(&Polygon::new(corners, filled));
        let drawn = match self {
            Self::Circle => area.draw(&Circle::new(at, size, filled)),
            Self::Dot => area.draw(&Circle::new(at, (size / 2).max(2), filled)),
            Self::Square => {
                let s = size - 1;
                area.draw(&Rectangle::new([(x - s, y - s), (x + s, y + s)], filled))
            }
            Self::Triangle => {
                let (w, h) = (size + 2, size + 1);
                polygon(vec![(x, y - h - 1), (x + w, y + h - 2), (x - w, y + h - 2)])
            }
            Self::Diamond => {
                let s = size + 2;
                polygon(vec![(x, y - s), (x + s, y), (x, y + s), (x - s, y)])
            }
            Self::Cross => area.draw(&Cross::new(at, size, color.stroke_width(3))),
        };
        drawn.map_err(drawing)
    }
}

/// One entry of the legend.
pub(super) struct Entry {
    pub(super) label: String,
    pub(super) color: RGBColor,
    pub(super) key: Key,
}

/// The symbol before the label of an entry.
pub(super) enum Key {
    Point(Marker),
    Line,
    DashedLine,
    LineWith(Marker),
}

/// The texts of a picture around its data.
pub(super) struct Frame<'a> {
    pub(super) title: &'a str,
    pub(super) subtitle: &'a str,
    pub(super) legend: Vec<Entry>,
}

/// Writes a picture's SVG into `path`.
pub(super) fn save(path: &Path, svg: &str) -> Result<()> {
    std::fs::write(path, svg)
        .map_err(|error| anyhow!("cannot write the picture {}: {error}", path.display()))
}

/// The SVG of a picture: title, subtitle and legend above, then what `draw` draws.
pub(super) fn picture(
    frame: &Frame<'_>,
    draw: impl FnOnce(&Area<'_>, &Area<'_>) -> Result<()>,
) -> Result<String> {
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        root.fill(&WHITE).map_err(drawing)?;
        text(&root, frame.title, (LEFT, 30), 40, INK, HPos::Left)?;
        text(&root, frame.subtitle, (LEFT, 84), 25, FADED, HPos::Left)?;
        let header = legend(&root, &frame.legend)?;
        let (_, below) = root.split_vertically(header);
        draw(&root, &below)?;
        root.present().map_err(drawing)?;
    }
    Ok(svg)
}

/// Writes text at a pixel.
pub(super) fn text(
    area: &Area<'_>,
    content: &str,
    at: (i32, i32),
    size: i32,
    color: RGBColor,
    anchor: HPos,
) -> Result<()> {
    let style = font(size, color).pos(Pos::new(anchor, VPos::Top));
    area.draw_text(content, &style, at).map_err(drawing)
}

/// Each pixel once: a picture of a hundred thousand packets stays as small as it looks.
pub(super) fn distinct(pixels: impl Iterator<Item = (i32, i32)>) -> Vec<(i32, i32)> {
    let mut seen = HashSet::new();
    pixels.filter(|pixel| seen.insert(*pixel)).collect()
}

/// plotters' errors borrow the drawing area; only their words are kept.
pub(super) fn drawing<E: std::fmt::Display>(error: E) -> anyhow::Error {
    anyhow!("cannot draw the picture: {error}")
}

/// A line through points, by its style: plain or dashed.
pub(super) fn line(
    area: &Area<'_>,
    points: &[(i32, i32)],
    color: RGBColor,
    width: u32,
    dashed: bool,
) -> Result<()> {
    let style = color.stroke_width(width);
    if dashed {
        let dashes = DashedPathElement::new(points.iter().copied(), 14, 10, style);
        return area.draw(&dashes).map_err(drawing);
    }
    area.draw(&PathElement::new(points.to_vec(), style)).map_err(drawing)
}

/// Draws the legend, in as many rows as it takes, and returns where the data may begin.
fn legend(root: &Area<'_>, entries: &[Entry]) -> Result<i32> {
    let (mut x, mut y) = (LEFT, LEGEND);
    for entry in entries {
        let key = match entry.key {
            Key::Point(_) => 22,
            _ => 56,
        };
        // Without a font at hand the width is an estimate: a sans-serif letter is half as wide.
        let width = key + 12 + entry.label.chars().count() as i32 * 12;
        if x > LEFT && x + width > SIZE.0 as i32 - LEFT {
            (x, y) = (LEFT, y + LEGEND_ROW);
        }
        let middle = y + 14;
        let ends = [(x, middle), (x + key, middle)];
        match entry.key {
            Key::Point(Marker::Dot) => {
                Marker::Circle.draw(root, (x + 11, middle), 5, entry.color)?;
            }
            Key::Point(marker) => marker.draw(root, (x + 11, middle), 8, entry.color)?,
            Key::Line => line(root, &ends, entry.color, 4, false)?,
            Key::DashedLine => line(root, &ends, entry.color, 4, true)?,
            Key::LineWith(marker) => {
                line(root, &ends, entry.color, 4, false)?;
                marker.draw(root, (x + key / 2, middle), 9, entry.color)?;
            }
        }
        text(root, &entry.label, (x + key + 12, y), 26, INK, HPos::Left)?;
        x += width + 48;
    }
    Ok(y + BELOW_LEGEND)
}

pub(super) fn font(size: i32, color: RGBColor) -> TextStyle<'static> {
    ("sans-serif", size).into_font().color(&color)
}

/// Left edge of title, subtitle and legend, in pixels.
const LEFT: i32 = 40;
/// Upper edge of the legend.
const LEGEND: i32 = 134;
/// From one row of the legend to the next.
const LEGEND_ROW: i32 = 38;
/// From the last row of the legend to the data.
const BELOW_LEGEND: i32 = 50;
