//! What `airmend top` shows of a link: its peers, each end's own direction in full.

use super::chart::{Line as Charted, chart};
use crate::status::clock;
use crate::text::{bytes, count, percent, rate, significant};
use airmend_live::tunnel::{LinkStatus, PeerStatus};
use airmend_proto::named;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::Line;
use ratatui::widgets::{Paragraph, Row, Table};
use std::collections::VecDeque;

/// Statuses that are remembered.
const HISTORY: usize = 600;
/// With fewer lines than this the peers need the place of the charts.
const HEIGHT_FOR_CHARTS: u16 = 12;
const CHARTS: u16 = 4;
/// What a peer loses that is not its path's.
const DROPS: [&str; 7] = [
    "send_errors",
    "forged",
    "unreadable",
    "reordered_too_far",
    "wrong_source",
    "no_peer",
    "crowded_out",
];

/// The sort key of peers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Order {
    #[default]
    Name,
    Rate,
    Loss,
    RoundTrip,
}

named! { Order: Name = "name", Rate = "rate", Loss = "loss", RoundTrip = "RTT" }

/// Everything on the screen.
#[derive(Debug)]
pub(super) struct Model {
    status: LinkStatus,
    /// Bits per second sent and received by all peers, the newest last.
    history: VecDeque<(f64, f64)>,
    order: Order,
    /// Why there was no status the last time.
    trouble: Option<String>,
    paused: bool,
}

impl Model {
    pub(super) fn new(status: LinkStatus) -> Self {
        let (history, order) = (VecDeque::new(), Order::Name);
        let mut model =
            Self { status: LinkStatus::default(), history, order, trouble: None, paused: false };
        model.update(status);
        model
    }

    /// Takes a new status.
    pub(super) fn update(&mut self, status: LinkStatus) {
        if status.uptime_seconds < self.status.uptime_seconds {
            self.history.clear();
        }
        let sum = |of: fn(&PeerStatus) -> f64| status.peers.iter().map(of).sum();
        self.history.push_back((sum(|peer| peer.sent_bps), sum(|peer| peer.received_bps)));
        if self.history.len() > HISTORY {
            self.history.pop_front();
        }
        (self.status, self.trouble) = (status, None);
    }

    /// The link did not answer: what was seen last stays.
    pub(super) fn lost(&mut self, why: String) {
        self.trouble = Some(why);
    }

    pub(super) fn sort_by_next(&mut self) {
        self.order = Order::ALL[(self.order as usize + 1) % Order::ALL.len()];
    }

    pub(super) fn pause_or_go_on(&mut self) {
        self.paused = !self.paused;
    }

    pub(super) fn is_paused(&self) -> bool {
        self.paused
    }

    /// The peers as they are sorted now; what is not known is last.
    pub(super) fn peers(&self) -> Vec<&PeerStatus> {
        let mut peers: Vec<_> = self.status.peers.iter().collect();
        let key = |peer: &PeerStatus| match self.order {
            Order::Name => None,
            Order::Rate => Some(peer.sent_bps + peer.received_bps),
            Order::Loss => peer.path.and_then(|path| path.loss),
            Order::RoundTrip => peer.path.and_then(|path| path.round_trip_seconds),
        };
        peers.sort_by(|a, b| a.name.cmp(&b.name));
        let value = |peer: &PeerStatus| key(peer).unwrap_or(f64::NEG_INFINITY);
        peers.sort_by(|a, b| value(b).total_cmp(&value(a)));
        peers
    }
}

/// The whole screen.
pub(super) fn draw(frame: &mut Frame<'_>, model: &Model) {
    let charts = if frame.area().height < HEIGHT_FOR_CHARTS { 0 } else { CHARTS };
    let [header, charts, peers, footer] = Layout::vertical([
        Constraint::Length(2),
        Constraint::Length(charts),
        Constraint::Min(0),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(Paragraph::new(header_lines(&model.status).to_vec()), header);
    let [sent, received] = Layout::horizontal([Constraint::Fill(1); 2]).spacing(1).areas(charts);
    for (area, name, color, of) in [
        (sent, "sent", Color::Green, (|rates| rates.0) as fn(&(f64, f64)) -> f64),
        (received, "received", Color::Cyan, |rates| rates.1),
    ] {
        let values = model.history.iter().map(|rates| Some(of(rates)));
        chart(frame, area, &Charted { name, color, words: &rate }, values.collect());
    }
    table(frame, peers, model);
    frame.render_widget(footer_line(model), footer);
}

fn header_lines(status: &LinkStatus) -> [Line<'static>; 2] {
    let LinkStatus { interface, version, uptime_seconds, mtu, peers, .. } = status;
    let there = peers.iter().filter(|peer| peer.is_up()).count();
    let [memory, limit] = [status.memory_bytes, status.memory_limit_bytes].map(bytes);
    [
        Line::from(vec![
            format!("airmend {interface}").bold(),
            format!("  link {version}  up {}", clock(*uptime_seconds)).into(),
        ]),
        Line::from(format!(
            "peers {there}/{}  MTU {}  memory {memory}/{limit}",
            peers.len(),
            count(u64::from(*mtu))
        )),
    ]
}

const COLUMNS: [(&str, Constraint, Option<Order>); 12] = [
    ("peer", Constraint::Fill(2), Some(Order::Name)),
    ("endpoint", Constraint::Fill(5), None),
    ("sent", Constraint::Length(10), Some(Order::Rate)),
    ("received", Constraint::Length(10), None),
    ("loss", Constraint::Length(6), Some(Order::Loss)),
    ("RTT", Constraint::Length(9), Some(Order::RoundTrip)),
    ("at most", Constraint::Length(10), None),
    ("waits", Constraint::Length(5), None),
    ("again", Constraint::Length(6), None),
    ("coded", Constraint::Length(6), None),
    ("without", Constraint::Length(10), None),
    ("drops", Constraint::Length(5), None),
];

fn table(frame: &mut Frame<'_>, area: Rect, model: &Model) {
    let aligned = |column: usize, text: String| {
        let line = Line::from(text);
        if column < 2 { line } else { line.right_aligned() }
    };
    let header = COLUMNS.iter().enumerate().map(|(column, (name, _, order))| {
        let arrow = if *order == Some(model.order) { "↓" } else { "" };
        aligned(column, format!("{name}{arrow}"))
    });
    let rows = model.peers().into_iter().map(|peer| {
        let cells = cells(peer).into_iter().enumerate();
        let row = Row::new(cells.map(|(column, cell)| aligned(column, cell)));
        if peer.is_up() { row } else { row.red() }
    });
    let table = Table::new(rows, COLUMNS.map(|(_, width, _)| width))
        .header(Row::new(header).style(Style::new().reversed()))
        .column_spacing(1);
    frame.render_widget(table, area);
}

fn cells(peer: &PeerStatus) -> [String; 12] {
    let known = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    let path = peer.path.unwrap_or_default();
    let is_there = |value: f64, words: fn(f64) -> String| {
        known(peer.path.filter(|_| peer.is_up()).map(|_| words(value)))
    };
    let endpoint = match (&peer.endpoint, peer.is_silent) {
        (_, true) => {
            let ago = peer.heard_seconds_ago.map(|ago| format!("silent for {ago:.1} s"));
            ago.unwrap_or_else(|| "never heard".to_owned())
        }
        (Some(endpoint), false) => endpoint.clone(),
        (None, false) => "not there yet".to_owned(),
    };
    let drops: u64 = DROPS.iter().filter_map(|name| peer.counters.get(*name)).sum();
    [
        peer.name.clone(),
        endpoint,
        known(peer.is_up().then(|| rate(peer.sent_bps))),
        known(peer.is_up().then(|| rate(peer.received_bps))),
        known(path.loss.map(percent)),
        known(path.round_trip_seconds.map(|time| significant(time * 1e3) + " ms")),
        known(path.rate_bps.map(rate)),
        is_there(path.queued_packets as f64, |waits| count(waits as u64)),
        is_there(peer.retransmitted_share, percent),
        is_there(peer.coded_share, percent),
        known(peer.estimated_without_bps.map(rate)),
        if drops == 0 { "-".to_owned() } else { count(drops) },
    ]
}

fn footer_line(model: &Model) -> Line<'static> {
    if let Some(trouble) = &model.trouble {
        return Line::from(trouble.clone()).red();
    }
    let pause = if model.paused { "p go on (paused)" } else { "p pause" };
    Line::from(format!("q quit  s sort (by {})  {pause}", model.order.name())).dim()
}
