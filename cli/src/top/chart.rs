//! One quantity over time.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style};
use ratatui::widgets::{Block, Sparkline};

/// What a chart shows.
pub(super) struct Line<'a> {
    pub(super) name: &'a str,
    pub(super) color: Color,
    /// A value as text.
    pub(super) words: &'a dyn Fn(f64) -> String,
}

/// Draws values, the newest at the right edge; `None` where nothing was measured.
pub(super) fn chart(frame: &mut Frame<'_>, area: Rect, line: &Line<'_>, all: Vec<Option<f64>>) {
    let width = usize::from(area.width);
    let shown = all.len().min(width);
    let known = all.into_iter().rev().take(shown).collect::<Vec<_>>().into_iter().rev();
    let values: Vec<_> = std::iter::repeat_n(None, width - shown).chain(known).collect();
    let most = values.iter().flatten().copied().fold(0.0, f64::max);
    let said = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), line.words);
    let last = values.last().copied().flatten();
    let most_said = said((most > 0.0).then_some(most));
    let title = format!("{} {}, at most {most_said}", line.name, said(last));
    // Only the share of the highest one counts.
    let scaled =
        values.iter().map(|value| value.map(|v| (v / most.max(1e-9) * 1e4).round() as u64));
    let sparkline = Sparkline::default()
        .block(Block::new().title_top(title))
        .style(Style::new().fg(line.color))
        .max(10_000)
        .data(scaled.collect::<Vec<_>>());
    frame.render_widget(sparkline, area);
}
