use super::*;
use airmend_live::lab::Delay;
use airmend_live::lab::config::{Amount, Direction, LabConfig, Path, Place};
use airmend_live::lab::outcome::{Lateness, LinkReport, Outcome, Ping, SenderCounters, ShortFlows};
use airmend_proto::agents::AgentConfig;
use airmend_proto::link::ErrorModel;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

fn config() -> LabConfig {
    LabConfig {
        errors: ErrorModel::Loss(0.05),
        queue_frames: 200,
        window_segments: Some(200),
        ..LabConfig::default()
    }
}

fn written(row: &Line) -> String {
    let mut out = Vec::new();
    write(&mut out, row).unwrap();
    String::from_utf8(out).unwrap()
}

fn read(row: &Line) -> Value {
    serde_json::from_str(&written(row)).unwrap()
}

/// The example of the design, figure by figure.
#[test]
fn a_run_prints_the_designs_line() {
    let outcome = Outcome {
        completed: true,
        seconds: 4.61,
        bytes_received: 10_000_000,
        goodput_bps: 17_354_000.2,
        flow_goodput_bps: vec![17_354_000.2],
        overall_goodput_bps: 17_354_000.2,
        fairness: 1.0,
        completion_seconds: vec![4.61],
        bound_bps: 18_190_000.0,
        wire_bytes_per_byte: 1.11,
        sender: SenderCounters {
            recoveries: 7,
            undone_recoveries: 6,
            loss_probes: 5,
            loss_probe_recoveries: 4,
            undone_timeouts: 3,
            spurious_timeouts: 2,
            reorderings: 1,
            dsacks: 8,
            ..SenderCounters::default()
        },
        reordering: 12,
        agent_counters: BTreeMap::from(
            [("local_retransmits", 361), ("suppressed_dupacks", 1204)]
                .map(|(name, count)| (name.to_owned(), count)),
        ),
        links: BTreeMap::from([(
            "air_down",
            LinkReport {
                frames: 7300,
                lost: 361,
                bytes: 11_100_000,
                airtime_us: 4_440_000,
                ..LinkReport::default()
            },
        )]),
        tcp_ext: BTreeMap::from([("TCPSackRecovery".into(), 7)]),
        lateness_us: Lateness { p50: 9, p99: 60, max: 800 },
        ..Outcome::default()
    };
    let agent = AgentConfig::by_name("plain").unwrap();
    let settings = [("dupack_threshold".into(), "3".into())];
    let row = lab::run(&agent, &config(), &settings, &outcome);
    let golden = concat!(
        r#"{"agent":"plain","world":"lab","cc":"cubic","direction":"down","rate_bps":20000000,"#,
        r#""air_delay_ms":2,"wired_delay_ms":40,"ber":null,"loss":0.05,"bytes":10000000,"seed":1,"#,
        r#""completed":true,"seconds":4.61,"goodput_bps":17354000,"bound_bps":18190000,"#,
        r#""of_bound":0.954,"wire_bytes_per_byte":1.11,"#,
        r#""sender":{"retransmits":0,"timeouts":0,"recoveries":7,"#,
        r#""undone_recoveries":6,"undone_timeouts":3,"spurious_timeouts":2,"loss_probes":5,"#,
        r#""loss_probe_recoveries":4,"reorderings":1,"dsacks":8,"cwnd_reductions":7,"#,
        r#""reordering":12},"#,
        r#""agent_counters":{"local_retransmits":361,"suppressed_dupacks":1204},"#,
        r#""bytes_received":10000000,"overall_goodput_bps":17354000,"#,
        r#""realised_bound_bps":null,"of_realised_bound":null,"flows":1,"unmended_flows":0,"#,
        r#""sequential":1,"send_seconds":null,"warmup_seconds":0,"sack":true,"#,
        r#""timestamps":true,"ipv6":false,"wired_rate_bps":100000000,"#,
        r#""queue_frames":200,"wired_queue_frames":1000,"window_segments":200,"#,
        r#""port":"veth","burst":null,"fading":null,"settings":{"dupack_threshold":"3"},"#,
        r#""flow_goodput_bps":[17354000],"fairness":1,"#,
        r#""completion_ms":{"count":1,"p50":4610,"p90":4610,"p99":4610,"max":4610},"ping":null,"#,
        r#""links":{"air_down":{"frames":7300,"lost":361,"dropped":0,"bytes":11100000,"#,
        r#""airtime_us":4440000}},"#,
        r#""port_drops":0,"lateness_us":{"p50":9,"p99":60,"max":800},"#,
        r#""tcp_ext":{"TCPSackRecovery":7}}"#,
    );
    assert_eq!(written(&row).trim_end(), golden);
}

/// Each error process is told by its own fields, and the others are null.
#[test]
fn every_error_process_is_told_apart() {
    let line = |errors| {
        let config = LabConfig { errors, amount: Amount::Time(Duration::from_secs(5)), ..config() };
        let agent = AgentConfig::by_name("plain").unwrap();
        let outcome = Outcome::default();
        read(&lab::run(&agent, &config, &[], &outcome))
    };
    let none = line(ErrorModel::None);
    assert_eq!((&none["loss"], &none["ber"]), (&0.into(), &serde_json::Value::Null));
    assert_eq!((&none["bytes"], &none["send_seconds"]), (&serde_json::Value::Null, &5.into()));
    // Nothing divided by nothing is no number, and JSON has none.
    assert_eq!(none["of_bound"], serde_json::Value::Null);
    let ber = line(ErrorModel::Ber(3.8e-6));
    assert_eq!((&ber["loss"], &ber["ber"]), (&serde_json::Value::Null, &3.8e-6.into()));
    let burst = line(ErrorModel::Burst { frames: 4, every_bytes: 65_536 });
    assert_eq!(burst["burst"], serde_json::json!({"frames": 4, "every_bytes": 65_536}));
    let fading = line(ErrorModel::Fading {
        good: Duration::from_millis(100),
        bad: Duration::from_micros(12_500),
        bad_loss: 0.8,
        good_ber: 0.0,
    });
    let expected = serde_json::json!({"good_ms": 100, "bad_ms": 12.5, "loss": 0.8, "good_ber": 0});
    assert_eq!((&fading["fading"], &fading["burst"]), (&expected, &serde_json::Value::Null));
}

/// The ping and the bound of the run's own fades, where there are any.
#[test]
fn what_only_some_runs_have_is_not_null_there() {
    let millis = Duration::from_millis;
    let round_trip = Delay { min: millis(84), p50: millis(85), p99: millis(120), max: millis(200) };
    let outcome = Outcome {
        goodput_bps: 9e6,
        realised_bound_bps: Some(10e6),
        ping: Some(Ping { sent: 1000, received: 998, round_trip }),
        ..Outcome::default()
    };
    let agent = AgentConfig::by_name("plain").unwrap();
    let row = read(&lab::run(&agent, &config(), &[], &outcome));
    assert_eq!(
        (&row["realised_bound_bps"], &row["of_realised_bound"]),
        (&10_000_000.into(), &0.9.into())
    );
    let ping = serde_json::json!({
        "sent": 1000, "received": 998, "p50_ms": 85, "p99_ms": 120, "max_ms": 200
    });
    assert_eq!((&row["ping"], &row["completion_ms"]), (&ping, &serde_json::Value::Null));
}

/// Short flows, and the pairs of hosts where there are several.
#[test]
fn short_flows_are_told_where_there_are_some() {
    let agent = AgentConfig::by_name("plain").unwrap();
    let short = "10kB,50ms".parse().ok();
    let config = LabConfig { short, pairs: 2, flows: 2, ..config() };
    let line = |completion_seconds: Vec<f64>, overdue| {
        let short = Some(ShortFlows { completion_seconds, overdue });
        let outcome = Outcome { short, ..Outcome::default() };
        read(&lab::run(&agent, &config, &[], &outcome))
    };
    let some = line(vec![0.1, 0.3, 0.2], 1);
    assert_eq!((&some["short"], &some["pairs"]), (&"10000,50ms".into(), &2.into()));
    let times = serde_json::json!(
        {"count": 3, "p50": 200, "p90": 300, "p99": 300, "max": 300, "overdue": 1}
    );
    assert_eq!(some["short_completion_ms"], times);
    let none = serde_json::json!({"count": 0, "overdue": 0});
    assert_eq!(line(Vec::new(), 0)["short_completion_ms"], none);
}

/// Rows of a base station whose kernel forwards say so; older rows are in-line.
#[test]
fn the_path_is_told_where_it_is_not_the_usual_one() {
    let agent = AgentConfig::by_name("plain").unwrap();
    let line = |path, gateway_heartbeat_timeouts| {
        let config = LabConfig { path, ..config() };
        let outcome = Outcome { gateway_heartbeat_timeouts, ..Outcome::default() };
        read(&lab::run(&agent, &config, &[], &outcome))
    };
    let inline = line(Path::Inline, None);
    assert_eq!((inline.get("path"), inline.get("gateway_heartbeat_timeouts")), (None, None));
    assert_eq!(line(Path::Kernel, None)["path"], "kernel");
    let gateway = line(Path::Gateway, Some(2));
    assert_eq!(
        (&gateway["path"], &gateway["gateway_heartbeat_timeouts"]),
        (&"gateway".into(), &2.into())
    );
}

/// Rows of an agent in the mobile host say so; older rows are of the base station.
#[test]
fn the_place_is_told_where_it_is_the_mobile_host() {
    let agent = AgentConfig::by_name("snoop").unwrap();
    let line = |place| {
        let config = LabConfig { place, direction: Direction::Up, ..config() };
        read(&lab::run(&agent, &config, &[], &Outcome::default()))
    };
    assert_eq!(line(Place::Base).get("place"), None);
    assert_eq!(line(Place::Mobile)["place"], "mobile");
}
