//! An air hop with an agent at each end.

use super::{config, failure};
use airmend_live::lab::config::{Amount, Direction, Hop, LabConfig};
use airmend_live::lab::outcome::Outcome;
use airmend_live::lab::{self, LabError};
use airmend_proto::agents::{AgentConfig, Limits};
use airmend_proto::link::ErrorModel;
use airmend_proto::recording::RecordedAgent;
use std::error::Error;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// A link mends its losses below both TCPs, whichever way the data flows; and what its end hands
/// on towards a slower wired hop still meets that hop's queue.
pub(crate) fn both_ends_of_the_air() -> Result<(), Box<dyn Error>> {
    for (direction, ipv6) in [(Direction::Down, false), (Direction::Up, true)] {
        mends(direction, ipv6)?;
    }
    let wired = Hop { rate_bps: 5_000_000, delay: Duration::from_millis(5) };
    let amount = Amount::Bytes(300_000);
    let up = LabConfig { direction: Direction::Up, amount, ..config() };
    let outcome = run(&LabConfig { wired, wired_queue_frames: 5, ..up })?;
    assert!(outcome.links.get("wired_up").is_some_and(|link| link.dropped > 0));
    assert!(outcome.completed && outcome.sender.retransmits > 0);

    let amount = Amount::Bytes(100_000);
    let outcome = run(&LabConfig { unmended_flows: 1, amount, ..config() })?;
    assert!(outcome.completed && outcome.bytes_received == 200_000);
    let recorded = run(&LabConfig { pcap: Some("/nowhere".into()), ..config() });
    assert!(failure(recorded).to_string().contains("run it without one"));
    Ok(())
}

/// Radios that take turns: no more than their channel can carry gets through, and all of it does,
/// with an agent at each end or at one.
pub(crate) fn half_duplex() -> Result<(), Box<dyn Error>> {
    let full_duplex = config();
    let radios = LabConfig {
        turnaround: Some(Duration::from_micros(10)),
        air: Hop { delay: Duration::from_micros(20), ..full_duplex.air },
        amount: Amount::Bytes(200_000),
        ..config()
    };
    assert!(radios.bound_bps() < 0.7 * full_duplex.bound_bps());
    for errors in [ErrorModel::None, ErrorModel::Loss(0.05)] {
        let config = LabConfig { errors, ..radios.clone() };
        let mended = run(&config)?;
        let ends = [&mended.agent_counters, &mended.mobile_counters];
        assert!(ends.iter().all(|end| end.get("link_peers") == Some(&1)), "{ends:?}");
        for outcome in [mended, super::run_plain(&config)?] {
            assert!(outcome.completed && outcome.bytes_received == 200_000);
            assert!(outcome.goodput_bps < outcome.bound_bps, "{}", outcome.goodput_bps);
            let lost = outcome.links.get("air_down").map(|link| link.lost > 0);
            assert_eq!(lost, Some(errors != ErrorModel::None));
        }
    }
    Ok(())
}

/// So little data that no queue overflows: whatever is lost, is lost on the air.
fn mends(direction: Direction, ipv6: bool) -> Result<(), Box<dyn Error>> {
    let (errors, amount) = (ErrorModel::Loss(0.1), Amount::Bytes(150_000));
    let outcome = run(&LabConfig { direction, ipv6, errors, amount, ..config() })?;
    assert!(outcome.completed && outcome.goodput_bps < outcome.bound_bps);
    assert_eq!(outcome.port_drops, 0);
    assert_eq!(outcome.sender.recoveries, 0, "{:?}", outcome.tcp_ext);
    let ends = [&outcome.agent_counters, &outcome.mobile_counters];
    assert!(ends.iter().all(|end| end.get("link_peers") == Some(&1)), "{ends:?}");
    let resent = match direction {
        Direction::Down => ends,
        Direction::Up => [ends[1], ends[0]],
    };
    let resent = resent.map(|end| end.get("link_retransmits").copied().unwrap_or(0));
    // About a tenth of 104 packets; ACKs are not resent.
    assert!(resent[0] > 0 && resent[1] == 0, "{ends:?}");
    // What crosses the air is frames: packets with a header of 22 bytes in front.
    assert!(outcome.wire_bytes_per_byte > 1522.0 / 1448.0, "{}", outcome.wire_bytes_per_byte);
    assert!(!outcome.trace.is_empty());
    Ok(())
}

/// Through `tulip` at each end.
pub(crate) fn run(config: &LabConfig) -> Result<Outcome, LabError> {
    let limits = Limits { egress: config.egress_limits(), ..Limits::default() };
    let mut tulip = AgentConfig::by_name("tulip").expect("there is such an agent");
    let takes_turns = config.turnaround.is_some().to_string();
    tulip.set("half_duplex", &takes_turns).expect("it has such a setting");
    config.unmended_ports().for_each(|port| tulip.exempt(port));
    let recorded_agent = Some(RecordedAgent { config: tulip.clone(), limits });
    lab::run(
        &LabConfig { recorded_agent, ..config.clone() },
        [1, 2].map(|seed| tulip.build(limits, seed)),
        &AtomicBool::new(false),
        &mut |_| (),
    )
}
