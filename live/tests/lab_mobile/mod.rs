//! An agent in the mobile host, between the host's kernel and the air.

use super::agents::{Cheating, Panicking};
use super::{config, failure, plain};
use airmend_live::lab::config::{
    Amount, CongestionControl, Direction, Hop, LabConfig, Path, Place,
};
use airmend_live::lab::outcome::{Outcome, TraceKind};
use airmend_live::lab::{LabError, run};
use airmend_proto::agents::{AgentConfig, Limits};
use airmend_proto::link::ErrorModel;
use airmend_proto::{Agent, Port};
use airmend_testkit::has_steady_clock;
use std::error::Error;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Losses of the air are repaired behind the sender's back, so that its window stays open. Each
/// byte and each rule of agents is checked inside.
pub(crate) fn mobile_mends_uploads() -> Result<(), Box<dyn Error>> {
    for ipv6 in [false, true] {
        let config = LabConfig { errors: ErrorModel::Loss(0.05), ipv6, ..upload() };
        let [plain, mended] = [complete(&config, plain())?, complete(&config, snoop(&config))?];
        let ratio = mended.goodput_bps / plain.goodput_bps;
        println!("{} and {} bit/s", plain.goodput_bps, mended.goodput_bps);
        assert!(!has_steady_clock() || ratio > 2.0, "{ratio} times as much");
        assert!(mended.goodput_bps < mended.bound_bps, "{} bit/s", mended.goodput_bps);
        // The counters and the plot are those of the agent, whose data leaves on its air side.
        assert!(mended.agent_counters.get("local_retransmits") > Some(&0));
        assert!(plain.agent_counters.is_empty() && mended.mobile_counters.is_empty());
        let sides = |kind| mended.trace.iter().filter(move |point| point.kind == kind);
        assert!(sides(TraceKind::LocalRetransmit).count() > 0);
        assert!(sides(TraceKind::Data).all(|point| point.side == Port::Air));
        assert!(sides(TraceKind::Ack).all(|point| point.side == Port::Wired));
    }
    Ok(())
}

/// What goes down comes to the mobile's agent from the air: such an agent passes it.
pub(crate) fn mobile_passes_downloads() -> Result<(), Box<dyn Error>> {
    let config = LabConfig { direction: Direction::Down, ..upload() };
    let outcome = complete(&config, snoop(&config))?;
    assert_eq!(outcome.agent_counters.get("local_retransmits"), None);
    let mut data = outcome.trace.iter().filter(|point| point.kind == TraceKind::Data);
    assert!(data.all(|point| point.side == Port::Wired));
    Ok(())
}

/// The queues of the base station stay where they are, before the wire and before the air.
pub(crate) fn mobile_leaves_the_station_its_queues() -> Result<(), Box<dyn Error>> {
    let wired = Hop { rate_bps: 5_000_000, delay: Duration::from_millis(5) };
    let slow = LabConfig { wired, wired_queue_frames: 5, ..upload() };
    let dropped = |outcome: &Outcome| {
        ["wired_up", "air_down"].map(|link| outcome.links.get(link).map(|link| link.dropped))
    };
    let up = complete(&slow, plain())?;
    assert!(dropped(&up)[0] > Some(0) && up.agent_counters.is_empty(), "{:?}", up.links);
    // The queue in front of the radio is the agent's.
    let short = LabConfig { queue_frames: 5, ..upload() };
    let up = complete(&short, plain())?;
    assert_eq!(dropped(&up), [Some(0); 2]);
    assert!(up.agent_counters.get("egress_drops_air") > Some(&0), "{:?}", up.agent_counters);
    let down = complete(&LabConfig { direction: Direction::Down, ..short }, plain())?;
    assert!(dropped(&down)[1] > Some(0) && down.agent_counters.is_empty(), "{:?}", down.links);
    Ok(())
}

/// Radios that take turns, of which the agent owns one.
pub(crate) fn mobile_takes_turns() -> Result<(), Box<dyn Error>> {
    let upload = upload();
    let config = LabConfig {
        turnaround: Some(Duration::from_micros(10)),
        air: Hop { delay: Duration::from_micros(20), ..upload.air },
        errors: ErrorModel::Loss(0.02),
        amount: Amount::Bytes(200_000),
        ..upload
    };
    let outcome = complete(&config, snoop(&config))?;
    assert!(outcome.agent_counters.get("local_retransmits") > Some(&0));
    Ok(())
}

/// An agent that panics is replaced, and one that breaks a rule ends the run.
pub(crate) fn mobile_agent_misbehaves() -> Result<(), Box<dyn Error>> {
    let outcome = complete(&upload(), Box::new(Panicking(100)))?;
    assert_eq!(outcome.agent_counters.get("agent_panics"), Some(&1));
    let cheated = forward(&upload(), Box::new(Cheating::changing_payload()));
    assert!(failure(cheated).to_string().contains("it changed the payload"));
    Ok(())
}

/// What has no agent in the mobile host is refused.
pub(crate) fn mobile_refuses() -> Result<(), Box<dyn Error>> {
    let kernel = LabConfig { path: Path::Kernel, ..upload() };
    let (stop, progress) = (AtomicBool::new(false), &mut |_| ());
    let refused = failure(run(&kernel, None, &stop, progress));
    assert!(refused.to_string().contains("in-line path"), "{refused}");
    let refused = failure(run(&upload(), [plain(), plain()], &stop, progress));
    assert!(refused.to_string().contains("each end of the air"), "{refused}");
    Ok(())
}

fn upload() -> LabConfig {
    let (direction, cc) = (Direction::Up, CongestionControl::Cubic);
    LabConfig { place: Place::Mobile, direction, cc, ..config() }
}

fn snoop(config: &LabConfig) -> Box<dyn Agent + Send> {
    let limits = Limits { egress: config.egress_limits(), ..Limits::default() };
    AgentConfig::by_name("snoop").expect("there is such an agent").build(limits, 1)
}

fn forward(config: &LabConfig, agent: Box<dyn Agent + Send>) -> Result<Outcome, LabError> {
    run(config, agent, &AtomicBool::new(false), &mut |_| ())
}

/// Runs to the end, with nothing lost outside the links.
fn complete(config: &LabConfig, agent: Box<dyn Agent + Send>) -> Result<Outcome, LabError> {
    let outcome = forward(config, agent)?;
    assert!(outcome.completed && outcome.port_drops == 0, "{outcome:?}");
    Ok(outcome)
}
