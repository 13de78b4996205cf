//! Draws the model.

use super::chart::{Line as Charted, chart};
use super::model::{Interval, Model, Order};
use crate::observation;
use crate::status::{clock, decisions, goodput};
use crate::text::{bytes, count, counted, percent, rate, significant};
use airmend_live::gateway::observe::Observation;
use airmend_live::gateway::telemetry::Status;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::Line;
use ratatui::widgets::{Paragraph, Row, Table};

/// With fewer lines than this the flows need the place of the sparklines.
const HEIGHT_FOR_SPARKLINES: u16 = 16;
const SPARKLINES: u16 = 4;

/// The whole screen.
pub(super) fn draw(frame: &mut Frame<'_>, model: &Model) {
    let sparklines = if frame.area().height < HEIGHT_FOR_SPARKLINES { 0 } else { SPARKLINES };
    let [header, charts, flows, footer] = Layout::vertical([
        Constraint::Length(5),
        Constraint::Length(sparklines),
        Constraint::Min(0),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(Paragraph::new(header_lines(model).to_vec()), header);
    let [loss, other] = Layout::horizontal([Constraint::Fill(1); 2]).spacing(1).areas(charts);
    let values = |of: fn(&Interval) -> Option<f64>| model.history.iter().map(of).collect();
    let line = Charted { name: "loss", color: Color::Red, words: &percent };
    chart(frame, loss, &line, values(|interval| interval.loss));
    match &model.status.observation {
        // Who only observes sees round trips of flows, each its own.
        Some(_) => {
            let line = Charted { name: "to mobiles", color: Color::Green, words: &rate };
            chart(frame, other, &line, values(|interval| Some(interval.to_mobiles_bps)));
            observed_table(frame, flows, model);
        }
        None => {
            let line = Charted { name: "air RTT", color: Color::Cyan, words: &millis };
            chart(frame, other, &line, values(|interval| interval.rtt_ms));
            mended_table(frame, flows, model);
        }
    }
    frame.render_widget(footer_line(model), footer);
}

fn header_lines(model: &Model) -> [Line<'static>; 5] {
    let status = &model.status;
    let now = model.history.back().copied().unwrap_or_default();
    let observe = if status.observe { "  only observing" } else { "" };
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
    let [third, fourth] = match &status.observation {
        Some(observed) => observing(observed),
        None => mending(status, &now),
    };
    [
        Line::from(vec![
            format!("airmend {}", status.interface).bold(),
            format!(
                "  {} {}  up {}{observe}",
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
        Line::from(format!("{}{}", goodput(&status.goodput), since_start(status))),
        Line::from(third),
        Line::from(fourth),
    ]
}

/// `; while there was data 18.10 Mb/s, about 1.20 Mb/s without`.
fn since_start(status: &Status) -> String {
    let gain = status.gain.as_ref().filter(|gain| gain.gain.is_some());
    gain.map_or_else(String::new, |gain| {
        let [goodput, without] = [gain.goodput_bps, gain.without_bps].map(rate);
        format!("; while there was data {goodput}, about {without} without")
    })
}

fn mending(status: &Status, now: &Interval) -> [String; 2] {
    let saved = status.timeouts_saved.tail + status.timeouts_saved.handshake;
    let repairs = format!(
        "repairs {} ({}/s)  suppressed DUPACKs {}  forwarded {}  timeouts saved ≤ {}",
        count(status.repairs.values().sum()),
        significant(now.repairs),
        count(status.counters.suppressed_dupacks),
        count(status.counters.forwarded_loss_signals),
        count(saved)
    );
    [repairs, format!("losses {}", decisions(status))]
}

fn observing(observed: &Observation) -> [String; 2] {
    let lost = format!(
        "lost {} of {} frames on the air, {} before; {} saved by mending",
        count(observed.air_losses),
        count(observed.air_frames),
        count(observed.lost_before),
        counted(observed.timeouts, "timeout")
    );
    [format!("mended {}", observation::mended(observed)), lost]
}

fn mended_table(frame: &mut Frame<'_>, area: Rect, model: &Model) {
    let columns = [
        ("fixed host", Constraint::Fill(1), None),
        ("mobile", Constraint::Fill(1), None),
        ("rate", Constraint::Length(11), Some(Order::Rate)),
        ("loss", Constraint::Length(7), Some(Order::Loss)),
        ("repairs", Constraint::Length(9), Some(Order::Mended)),
        ("hidden", Constraint::Length(9), None),
        ("air RTT", Constraint::Length(9), Some(Order::AirRtt)),
    ];
    let rows = model.flows().into_iter().map(|flow| {
        [
            flow.wired.clone(),
            flow.air.clone(),
            known(model.rate(flow).map(rate)),
            known(flow.loss.map(percent)),
            count(flow.repairs),
            count(flow.suppressed_dupacks),
            known(flow.air_rtt_ms.map(millis)),
        ]
    });
    table(frame, area, model.order, columns, rows);
}

fn observed_table(frame: &mut Frame<'_>, area: Rect, model: &Model) {
    let columns = [
        ("fixed host", Constraint::Fill(1), None),
        ("mobile", Constraint::Fill(1), None),
        ("rate", Constraint::Length(11), Some(Order::Rate)),
        ("mended", Constraint::Length(11), Some(Order::Mended)),
        ("limited by", Constraint::Length(14), None),
        ("loss", Constraint::Length(7), Some(Order::Loss)),
        ("air RTT", Constraint::Length(9), Some(Order::AirRtt)),
    ];
    let rows = model.observed().into_iter().map(|flow| {
        [
            flow.wired.clone(),
            flow.air.clone(),
            known(model.observed_rate(flow).map(rate)),
            rate(flow.estimate_bps),
            observation::limit(flow.limit).to_owned(),
            known(flow.air_loss.map(percent)),
            known(flow.air_rtt_ms.map(millis)),
        ]
    });
    table(frame, area, model.order, columns, rows);
}

/// A column: its name, its width, and the order that sorts by it.
type Column = (&'static str, Constraint, Option<Order>);

fn table(
    frame: &mut Frame<'_>,
    area: Rect,
    sorted_by: Order,
    columns: [Column; 7],
    rows: impl Iterator<Item = [String; 7]>,
) {
    let header = columns.iter().enumerate().map(|(position, (name, _, order))| {
        let arrow = if *order == Some(sorted_by) { "↓" } else { "" };
        aligned(position, format!("{name}{arrow}"))
    });
    let rows = rows.map(|cells| {
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

fn known(value: Option<String>) -> String {
    value.unwrap_or_else(|| "-".to_owned())
}

fn millis(value: f64) -> String {
    significant(value) + " ms"
}

fn footer_line(model: &Model) -> Line<'static> {
    if let Some(trouble) = &model.trouble {
        return Line::from(trouble.clone()).red();
    }
    let pause = if model.is_paused() { "p go on (paused)" } else { "p pause" };
    let order = model.order.words(model.status.observation.is_some());
    Line::from(format!("q quit  s sort (by {order})  {pause}")).dim()
}
