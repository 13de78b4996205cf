//! The screen as text, and what keys change.

use super::*;
use airmend_live::gateway::telemetry::{FlowStatus, Status, StatusLimits};
use model::Order;
use ratatui::Terminal;
use ratatui::backend::TestBackend;

fn flow(number: u64, bytes: u64, repairs: u64, rtt: Option<f64>) -> FlowStatus {
    FlowStatus {
        flow: number,
        wired: format!("10.0.0.{number}:80"),
        air: "10.0.1.2:5000".into(),
        bytes: Some(bytes),
        loss: Some(repairs as f64 / 1_000.0),
        repairs,
        suppressed_dupacks: repairs * 20,
        air_rtt_ms: rtt,
        ..FlowStatus::default()
    }
}

/// A gateway after so many seconds.
fn status(seconds: u64) -> Status {
    let mut status = Status {
        interface: "wlan0".into(),
        agent: "snoop".into(),
        version: "1.2.3".into(),
        started_unix_seconds: 9.0,
        uptime_seconds: 3_600.0 + seconds as f64,
        cpu_seconds: seconds as f64 * 0.125,
        limits: StatusLimits { flows: 100_000, cache_bytes: 256_000_000 },
        flows: 2,
        cache_bytes: 1_500_000,
        // The air loses more and more.
        air_packets: 1_000 * seconds,
        air_losses: 5 * seconds * (seconds + 1),
        repairs: [("rack".to_owned(), 1_000 + 60 * seconds)].into(),
        decisions: [("left_budget", 3), ("left_full_queue", 12), ("masked_brief", 1_465)]
            .map(|(name, number)| (name.to_owned(), number))
            .into(),
        top: vec![
            flow(1, 250_000 * seconds, 40, Some(4.0)),
            flow(2, 1_000_000 * seconds, 20, None),
        ],
        ..Status::default()
    };
    status.counters.suppressed_dupacks = 1_204;
    status.timeouts_saved.tail = 7;
    status.air_rtt_seconds.count = 10 * seconds;
    status.air_rtt_seconds.sum = 0.04 * seconds as f64;
    status
}

fn model(seconds: u64) -> Model {
    let mut model = Model::default();
    (0..=seconds).for_each(|second| model.update(status(second)));
    model
}

/// The lines of a screen of this size, without what is blank at their ends.
fn screen(model: &Model, width: u16, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| view::draw(frame, model)).unwrap();
    let buffer = terminal.backend().buffer().clone();
    let lines = buffer.content.chunks(usize::from(width));
    lines
        .map(|line| line.iter().map(|cell| cell.symbol()).collect::<String>())
        .map(|line| line.trim_end().to_owned())
        .collect()
}

#[test]
fn the_screen_shows_header_sparklines_flows_and_keys() {
    let expected = "\
airmend wlan0  snoop 1.2.3  up 1:00:08
flows 2/100,000  cache 1.5 MB/256 MB  CPU 12.5 %  heartbeat timeouts 0  panics 0
repairs 1,480 (60.00/s)  suppressed DUPACKs 1,204  forwarded 0  timeouts saved ≤ 7
losses left to senders: 12 full queue, 3 budget; masked: 1,465 brief
loss 8 %, at most 8 %                         air RTT 4.00 ms, at most 4.00 ms
                                          ▂▅█                                     ████████
                                       ▁▄▇███                                     ████████
                                     ▃▆██████                                     ████████
fixed host           mobile                     rate    loss  repairs↓    hidden   air RTT
10.0.0.1:80          10.0.1.2:5000         2.00 Mb/s     4 %        40       800   4.00 ms
10.0.0.2:80          10.0.1.2:5000         8.00 Mb/s     2 %        20       400         -



q quit  s sort (by repairs)  p pause";
    assert_eq!(screen(&model(8), 90, 15).join("\n"), expected);
}

#[test]
fn any_size_is_drawn() {
    for (width, height) in [(0, 0), (1, 1), (5, 3), (20, 14), (20, 15), (300, 100)] {
        let lines = screen(&model(700), width.max(1), height.max(1));
        assert_eq!(lines.len(), usize::from(height.max(1)));
    }
}

#[test]
fn keys_sort_pause_and_quit() {
    let mut model = model(2);
    let first = |model: &Model| model.flows()[0].flow;
    let key = |model: &mut Model, key| press(model, KeyEvent::from(key));
    assert_eq!((model.order, first(&model)), (Order::Mended, 1));
    for (order, flow) in
        [(Order::Rate, 2), (Order::Loss, 1), (Order::AirRtt, 1), (Order::Mended, 1)]
    {
        assert_eq!(key(&mut model, KeyCode::Char('s')), Then::GoOn);
        assert_eq!((model.order, first(&model)), (order, flow));
    }
    key(&mut model, KeyCode::Char('p'));
    assert!(model.is_paused() && screen(&model, 60, 5)[4].contains("paused"));
    key(&mut model, KeyCode::Char('p'));
    assert!(!model.is_paused());
    assert_eq!(key(&mut model, KeyCode::Char('c')), Then::GoOn);
    for quits in [
        KeyEvent::from(KeyCode::Char('q')),
        KeyEvent::from(KeyCode::Esc),
        KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL),
    ] {
        assert_eq!(press(&mut model, quits), Then::Quit);
    }
}

#[test]
fn a_gateway_that_restarted_has_no_past() {
    let mut model = model(5);
    assert_eq!(model.history.len(), 5);
    model.lost("it has died".into());
    assert!(screen(&model, 60, 5)[4].contains("it has died"));
    model.update(Status { started_unix_seconds: 10.0, ..status(0) });
    assert_eq!((model.history.len(), model.trouble.is_none()), (0, true));
    assert_eq!(model.rate(&flow(1, 0, 0, None)), None);
    (0..1_000).for_each(|second| model.update(status(second)));
    assert_eq!(model.history.len(), 600);
}

#[test]
fn intervals_have_bounds() {
    assert_eq!(interval("100ms"), Ok(Duration::from_millis(100)));
    for wrong in ["10ms", "2h", "0", "often"] {
        assert!(interval(wrong).is_err(), "{wrong}");
    }
}
