//! Draws the model.

use super::chart::{Line as Charted, chart};
use super::model::{Interval, Model, Order};
use crate::status::{clock, decisions};
use crate::text::{bytes, count, counted, percent, rate, significant};
use airmend_live::gateway::telemetry::FlowStatus;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::Line;
use ratatui::widgets::{Paragraph, Row, Table};

/// With fewer lines than this the flows need the place of the sparklines.
const HEIGHT_FOR_SPARKLINES: u16 = 15;
const SPARKLINES: u16 = 4;

/// The whole screen.
pub(super) fn draw(frame: &mut Frame<'_>, model: &Model) {
    let sparklines = if frame.area().height < HEIGHT_FOR_SPARKLINES { 0 } else { SPARKLINES };
    let [header, charts, flows, footer] = Layout::vertical([
        Constraint::Length(4),
        Constraint::Length(sparklines),
        Constraint::Min(0),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(Paragraph::new(header_lines(model).to_vec()), header);
    let [loss, rtt] = Layout::horizontal([Constraint::Fill(1); 2]).spacing(1).areas(charts);
    let values = |of: fn(&Interval) -> Option<f64>| model.history.iter().map(of).collect();
    let line = Charted { name: "loss", color: Color::Red, words: &percent };
    chart(frame, loss, &line, values(|interval| interval.loss));
    let millis = |value| significant(value) + " ms";
    let line = Charted { name: "air RTT", color: Color::Cyan, words: &millis };
    chart(frame, rtt, &line, values(|interval| interval.rtt_ms));
    table(frame, flows, model);
    frame.render_widget(footer_line(model), footer);
}

fn header_lines(model: &Model) -> [Line<'static>; 4] {
    let status = &model.status;
    let now = model.history.back().copied().unwrap_or_default();
    let observe = if status.observe { "  only observing" } else { "" };
    let gain = status.gain.as_ref().filter(|gain| gain.gain.is_some()).map(|gain| {
        let [goodput, without] = [gain.goodput_bps, gain.without_bps].map(rate);
        format!("  {goodput}, about {without} without")
    });
    let gain = gain.unwrap_or_default();
    let saved = status.timeouts_saved.tail + status.timeouts_saved.handshake;
    let panics = status.counters.agent_panics;
    let health =
        format!("heartbeat timeouts {}  panics {panics}", count(status.heartbeat_timeouts));
    let unanswered = status.flows_unanswered;
    let health = match unanswered {
        0 => health,
        _ => format!("{health}  no ACKs of {}", counted(unanswered, "flow")),
    };
    let is_well = status.heartbeat_timeouts == 0 && panics == 0 && unanswered == 0;
    let health = if is_well { health.into() } else { health.red() };
    [
        Line::from(vec![
            format!("airmend {}", status.interface).bold(),
            format!(
                "  {} {}  up {}{observe}{gain}",
                status.agent,
                status.version,
                clock(status.uptime_seconds)
            )
            .into(),
        ]),
        Line::from(vec![
            format!(
                "flows {}/{}  cache {}/{}  CPU {}  ",
                count(status.flows),
                count(status.limits.flows),
                bytes(status.cache_bytes),
                bytes(status.limits.cache_bytes),
                percent(now.cpu)
            )
            .into(),
            health,
        ]),
        Line::from(format!(
            "repairs {} ({}/s)  suppressed DUPACKs {}  forwarded {}  timeouts saved ≤ {}",
            count(status.repairs.values().sum()),
            significant(now.repairs),
            count(status.counters.suppressed_dupacks),
            count(status.counters.forwarded_loss_signals),
            count(saved)
        )),
        Line::from(format!("losses {}", decisions(status))),
    ]
}

fn table(frame: &mut Frame<'_>, area: Rect, model: &Model) {
    let columns = [
        ("fixed host", Constraint::Fill(1), None),
        ("mobile", Constraint::Fill(1), None),
        ("rate", Constraint::Length(11), Some(Order::Rate)),
        ("loss", Constraint::Length(7), Some(Order::Loss)),
        ("repairs", Constraint::Length(9), Some(Order::Mended)),
        ("hidden", Constraint::Length(9), None),
        ("air RTT", Constraint::Length(9), Some(Order::AirRtt)),
    ];
    let header = columns.iter().enumerate().map(|(position, (name, _, order))| {
        let is_sorted = *order == Some(model.order);
        let name = if is_sorted { format!("{name}↓") } else { (*name).to_owned() };
        aligned(position, name)
    });
    let rows = model.flows().into_iter().map(|flow| {
        let cells = cells(model, flow);
        Row::new(cells.into_iter().enumerate().map(|(position, cell)| aligned(position, cell)))
    });
    let table = Table::new(rows, columns.map(|(_, width, _)| width))
        .header(Row::new(header).style(Style::new().reversed()))
        .column_spacing(1);
    frame.render_widget(table, area);
}

/// Names to the left, numbers to the right.
fn aligned(column: usize, text: String) -> Line<'static> {
    let line = Line::from(text);
    if column < 2 { line } else { line.right_aligned() }
}

fn cells(model: &Model, flow: &FlowStatus) -> [String; 7] {
    let known = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    [
        flow.wired.clone(),
        flow.air.clone(),
        known(model.rate(flow).map(rate)),
        known(flow.loss.map(percent)),
        count(flow.repairs),
        count(flow.suppressed_dupacks),
        known(flow.air_rtt_ms.map(|rtt| significant(rtt) + " ms")),
    ]
}

fn footer_line(model: &Model) -> Line<'static> {
    if let Some(trouble) = &model.trouble {
        return Line::from(trouble.clone()).red();
    }
    let pause = if model.is_paused() { "p go on (paused)" } else { "p pause" };
    Line::from(format!("q quit  s sort (by {})  {pause}", model.order.name())).dim()
}
