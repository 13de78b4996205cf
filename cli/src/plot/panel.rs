//! A pair of axes with their grid, and where a value lies in it.

use super::look::{AXIS, Area, FADED, GRID, INK, drawing, font, line, text};
use anyhow::Result;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;
use std::ops::Range;

/// One axis: its title, its range, and what stands along it.
pub(super) struct Axis<'a> {
    pub(super) title: &'a str,
    pub(super) range: Range<f64>,
    pub(super) marks: Marks<'a>,
}

/// The marks along an axis.
pub(super) enum Marks<'a> {
    /// Round numbers.
    Numbers,
    /// These words at these values.
    Words(&'a [(f64, String)]),
    /// Round numbers, of which the values are decimal logarithms; of a vertical axis only.
    PowersOfTen,
}

/// Drawn axes.
pub(super) struct Panel<'a> {
    chart: ChartContext<'a, SVGBackend<'a>, Cartesian2d<RangedCoordf64, RangedCoordf64>>,
    x: Range<f64>,
    y: Range<f64>,
}

impl<'a> Panel<'a> {
    /// Draws the axes into `area`, a part of `root`.
    pub(super) fn new(
        root: &Area<'_>,
        area: &Area<'a>,
        x: &Axis<'_>,
        y: &Axis<'_>,
    ) -> Result<Self> {
        let words = match x.marks {
            Marks::Words(words) => in_lines(words, area.dim_in_pixel().0 as usize),
            _ => Vec::new(),
        };
        let lines = words.iter().map(|(_, lines)| lines.len()).max().unwrap_or(1);
        let mut chart = ChartBuilder::on(area)
            .margin(24)
            .margin_top(12)
            .margin_right(40)
            .x_label_area_size(84 + LINE * (lines as i32 - 1))
            .y_label_area_size(104)
            .build_cartesian_2d(x.range.clone(), y.range.clone())
            .map_err(drawing)?;
        let numbers = |value: &f64| number(*value);
        let powers = |value: &f64| rounded(10f64.powf(*value));
        let nothing = |_: &f64| String::new();
        let mut mesh = chart.configure_mesh();
        mesh.light_line_style(TRANSPARENT)
            .bold_line_style(GRID.stroke_width(2))
            .axis_style(AXIS.stroke_width(2))
            .label_style(font(25, FADED))
            .axis_desc_style(font(27, INK))
            .x_labels((area.dim_in_pixel().0 / 150) as usize)
            .y_labels(9)
            .x_desc(x.title)
            .y_desc(y.title)
            .x_label_formatter(&numbers)
            .y_label_formatter(&numbers);
        if let Marks::PowersOfTen = y.marks {
            mesh.y_label_formatter(&powers);
        }
        if let Marks::Words(_) = x.marks {
            mesh.disable_x_mesh().x_label_formatter(&nothing);
            mesh.set_tick_mark_size(LabelAreaPosition::Bottom, 0);
        }
        mesh.draw().map_err(drawing)?;
        let panel = Self { chart, x: x.range.clone(), y: y.range.clone() };
        panel.words(root, &words)?;
        Ok(panel)
    }

    /// The pixel of a value; what lies outside is drawn on the edge.
    pub(super) fn pixel(&self, x: f64, y: f64) -> (i32, i32) {
        let x = x.clamp(self.x.start, self.x.end);
        let y = y.clamp(self.y.start, self.y.end);
        self.chart.backend_coord(&(x, y))
    }

    /// Whether a value lies within the axes.
    pub(super) fn contains(&self, x: f64, y: f64) -> bool {
        self.x.contains(&x) && self.y.contains(&y)
    }

    /// Grid lines at words; a word that would touch the last one is left out.
    fn words(&self, root: &Area<'_>, words: &[(f64, Vec<String>)]) -> Result<()> {
        let mut free = i32::MIN;
        for (value, lines) in words {
            let bottom = self.pixel(*value, self.y.start);
            line(root, &[bottom, self.pixel(*value, self.y.end)], GRID, 2, false)?;
            let longest = lines.iter().map(|words| words.chars().count()).max().unwrap_or(0);
            let half = longest as i32 * LETTER / 2;
            if bottom.0 - half < free {
                continue;
            }
            for (row, words) in (0..).zip(lines) {
                let at = (bottom.0, bottom.1 + 12 + LINE * row);
                text(root, words, at, 25, FADED, HPos::Center)?;
            }
            free = bottom.0 + half + 12;
        }
        Ok(())
    }
}

/// The words below an axis in a picture of this width: in several lines where one would not fit
/// between its neighbours.
fn in_lines(words: &[(f64, String)], width: usize) -> Vec<(f64, Vec<String>)> {
    let letters = width.saturating_sub(BESIDE) / words.len().max(1) / LETTER as usize;
    let lines = |(value, words): &(f64, String)| {
        let mut lines = vec![String::new()];
        for word in words.split(' ') {
            match lines.last_mut() {
                Some(last) if last.is_empty() => last.push_str(word),
                Some(last) if last.chars().count() + 1 + word.chars().count() < letters => {
                    last.push(' ');
                    last.push_str(word);
                }
                _ => lines.push(word.to_owned()),
            }
        }
        (*value, lines)
    };
    words.iter().map(lines).collect()
}

/// Pixels to the left and right of the axes.
const BESIDE: usize = 24 + 104 + 40;
/// The mean width of a letter below an axis, in pixels.
const LETTER: i32 = 14;
/// From one line of words to the next.
const LINE: i32 = 28;

/// Two significant digits.
fn rounded(value: f64) -> String {
    let unit = 10f64.powf(value.abs().max(1e-9).log10().floor() - 1.0);
    number((value / unit).round() * unit)
}

/// A number without needless zeros at its end.
pub(super) fn number(value: f64) -> String {
    let text = format!("{value:.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}
