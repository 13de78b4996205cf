//! The screen as text, and what keys change.

use super::*;
use airmend_live::gateway::observe::{Gain, Limit, Observation, ObservedFlow};
use airmend_live::gateway::telemetry::{FlowStatus, Goodput, Status, StatusLimits};
use airmend_live::tunnel::{LinkStatus, PathStatus, PeerStatus};
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
        goodput: Goodput { to_mobiles_bps: 8e6, from_mobiles_bps: 5e5, ..Goodput::default() },
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

fn screen(model: &Model, width: u16, height: u16) -> Vec<String> {
    drawn(width, height, |frame| view::draw(frame, model))
}

/// The lines of a screen of this size, without what is blank at their ends.
fn drawn(width: u16, height: u16, draw: impl FnOnce(&mut Frame<'_>)) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(draw).unwrap();
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
8.00 Mb/s to mobiles, 0.500 Mb/s from them
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
    assert_eq!(screen(&model(8), 90, 16).join("\n"), expected);
}

#[test]
fn what_is_gained_is_beside_the_rates() {
    let mut gaining = status(0);
    gaining.gain =
        Some(Gain { goodput_bps: 1.8e7, without_bps: 2e6, gain: Some(9.0), ..Gain::default() });
    let mut model = Model::default();
    model.update(gaining);
    let third = screen(&model, 120, 6)[2].clone();
    let expected = "8.00 Mb/s to mobiles, 0.500 Mb/s from them; while there was data 18.00 Mb/s, \
                    about 2.00 Mb/s without";
    assert_eq!(third, expected);
}

/// One that only observes, after so many seconds.
fn observing(seconds: u64) -> Status {
    let flow = |number: u64, rate: u64| ObservedFlow {
        wired: format!("10.0.0.{number}:80"),
        air: "10.0.1.2:5000".into(),
        bytes: rate / 8 * seconds,
        estimate_bps: 9e6,
        limit: Limit::Air,
        air_loss: Some(0.05),
        air_rtt_ms: Some(4.0),
        ..ObservedFlow::default()
    };
    let observation = Observation {
        goodput_bps: 2e6,
        estimate_bps: 18e6,
        gain: Some(9.0),
        capacity_from: airmend_live::gateway::observe::CapacityFrom::Shaper,
        air_frames: 1_000,
        air_losses: 50,
        timeouts: 3,
        flows: vec![flow(1, 400_000), flow(2, 1_600_000)],
        ..Observation::default()
    };
    let (air_packets, air_losses) = (1_000 * seconds, 50 * seconds);
    let observation = Some(observation);
    Status { observe: true, observation, air_packets, air_losses, top: vec![], ..status(seconds) }
}

#[test]
fn who_only_observes_sees_what_each_flow_would_gain() {
    let mut model = Model::default();
    (0..=8).for_each(|second| model.update(observing(second)));
    let expected = "\
8.00 Mb/s to mobiles, 0.500 Mb/s from them
mended about 18.00 Mb/s, 9.00 times as much
lost 50 of 1,000 frames on the air, 0 before; 3 timeouts saved by mending
loss 5 %, at most 5 %                         to mobiles 8.00 Mb/s, at most 8.00 Mb/s";
    let shown = screen(&model, 90, 16);
    assert_eq!(shown[2..6].join("\n"), expected);
    let expected = "\
fixed host     mobile                rate     mended↓     limited by    loss   air RTT
10.0.0.1:80    10.0.1.2:5000  0.400 Mb/s   9.00 Mb/s        the air     5 %   4.00 ms
10.0.0.2:80    10.0.1.2:5000   1.60 Mb/s   9.00 Mb/s        the air     5 %   4.00 ms";
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words(&shown[9..12].join("\n")), words(expected));
    assert!(shown[15].contains("by gain"), "{}", shown[15]);
    model.sort_by_next();
    assert!(screen(&model, 90, 16)[10].starts_with("10.0.0.2:80"), "by rate");
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
    let mut shown = Screen::Gateway(Box::new(model(2)));
    let gateway = |shown: &Screen| match shown {
        Screen::Gateway(model) => (model.order, model.flows()[0].flow),
        Screen::Link(_) => panic!("a gateway"),
    };
    let key = |shown: &mut Screen, key| press(shown, KeyEvent::from(key));
    assert_eq!(gateway(&shown), (Order::Mended, 1));
    for (order, flow) in
        [(Order::Rate, 2), (Order::Loss, 1), (Order::AirRtt, 1), (Order::Mended, 1)]
    {
        assert_eq!(key(&mut shown, KeyCode::Char('s')), Then::GoOn);
        assert_eq!(gateway(&shown), (order, flow));
    }
    key(&mut shown, KeyCode::Char('p'));
    let Screen::Gateway(paused) = &shown else { panic!("a gateway") };
    assert!(paused.is_paused() && screen(paused, 60, 6)[5].contains("paused"));
    key(&mut shown, KeyCode::Char('p'));
    assert!(!shown.is_paused());
    assert_eq!(key(&mut shown, KeyCode::Char('c')), Then::GoOn);
    for quits in [
        KeyEvent::from(KeyCode::Char('q')),
        KeyEvent::from(KeyCode::Esc),
        KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL),
    ] {
        assert_eq!(press(&mut shown, quits), Then::Quit);
    }
    // A link has taken the gateway's place.
    shown.update(Answer::Link(Box::default()));
    assert!(matches!(shown, Screen::Link(_)));
}

#[test]
fn a_gateway_that_restarted_has_no_past() {
    let mut model = model(5);
    assert_eq!(model.history.len(), 5);
    model.lost("it has died".into());
    assert!(screen(&model, 60, 6)[5].contains("it has died"));
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

/// A link's peers after so many seconds.
fn link(seconds: u64) -> LinkStatus {
    let path = PathStatus {
        rate_bps: Some(2e7),
        loss: Some(0.05),
        round_trip_seconds: Some(0.08),
        queued_packets: 12,
        ..PathStatus::default()
    };
    let oslo = PeerStatus {
        name: "oslo".into(),
        endpoint: Some("192.0.2.1:4433".into()),
        sent_bps: 1e6 * seconds as f64,
        received_bps: 3e5,
        path: Some(path),
        retransmitted_share: 0.004,
        coded_share: 0.056,
        estimated_without_bps: Some(1.1e6),
        ..PeerStatus::default()
    };
    let bergen = PeerStatus {
        name: "bergen".into(),
        endpoint: Some("198.51.100.7:999".into()),
        is_silent: true,
        heard_seconds_ago: Some(7.0),
        counters: [("forged".to_owned(), 3), ("wrong_source".to_owned(), 2)].into(),
        ..PeerStatus::default()
    };
    LinkStatus {
        interface: "home".into(),
        version: "1.2.3".into(),
        uptime_seconds: 60.0 + seconds as f64,
        mtu: 1_422,
        memory_bytes: 1_500_000,
        memory_limit_bytes: 600_000_000,
        peers: vec![oslo, bergen],
        ..LinkStatus::default()
    }
}

#[test]
fn a_links_screen_shows_each_peer() {
    let mut model = link::Model::new(link(0));
    (1..=8).for_each(|second| model.update(link(second)));
    let expected = "\
airmend home link 1.2.3 up 0:01:08
peers 1/2 MTU 1,422 memory 1.5 MB/600 MB
peer↓ endpoint sent received loss RTT at most waits again coded without drops
bergen silent for 7.0 s - - - - - - - - - 5
oslo 192.0.2.1:4433 8.00 Mb/s 0.300 Mb/s 5 % 80.00 ms 20.00 Mb/s 12 0.4 % 5.6 % 1.10 Mb/s -

q quit s sort (by name) p pause";
    let words = |line: String| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let shown = drawn(120, 7, |frame| link::draw(frame, &model)).into_iter().map(words);
    assert_eq!(shown.collect::<Vec<_>>().join("\n"), expected);
    let charts = drawn(120, 12, |frame| link::draw(frame, &model));
    assert!(charts[2].starts_with("sent 8.00 Mb/s, at most 8.00 Mb/s  "), "{charts:?}");
    assert!(charts[5].contains("▃▆██████"), "{charts:?}");
    let first = |model: &link::Model| model.peers()[0].name.clone();
    assert_eq!(first(&model), "bergen");
    model.sort_by_next();
    assert_eq!(first(&model), "oslo");
    for (width, height) in [(1, 1), (5, 3), (20, 14), (300, 100)] {
        let lines = drawn(width, height, |frame| link::draw(frame, &model));
        assert_eq!(lines.len(), usize::from(height));
    }
}
