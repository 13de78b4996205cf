//! A mobile host that moves between base stations, whose messages are multicast between
//! namespaces (S0-45, S0-46).

use super::{Test, config, failure, keeps_time};
use airmend_live::lab::config::{Amount, Direction, HandoffPlan, LabConfig, Path};
use airmend_live::lab::outcome::{Handoffs, Outcome};
use airmend_live::lab::{LabError, run};
use airmend_proto::Agent;
use airmend_proto::agents::{AgentConfig, Limits};
use airmend_proto::link::ErrorModel;
use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

pub(crate) const TESTS: [(&str, Test); 6] = [
    ("handoff_carries_transfers_on", handoff_carries_transfers_on),
    ("handoff_counts_at_each_station", handoff_counts_at_each_station),
    ("handoff_without_priming", handoff_without_priming),
    ("no_handoff_loses_what_is_under_way", no_handoff_loses_what_is_under_way),
    ("handoff_messages_of_an_intruder", handoff_messages_of_an_intruder),
    ("handoff_refuses", handoff_refuses),
];

/// [S0-45] The next station is primed, gets the state and goes on: with any agent, with losses and
/// without, every byte arrives, and where nothing is lost on the air no sender waits for a timeout.
fn handoff_carries_transfers_on() -> Result<(), Box<dyn Error>> {
    for agent in ["snoop", "snoop95", "plain"] {
        for errors in [ErrorModel::None, ErrorModel::Loss(0.01)] {
            judged(&LabConfig { errors, ..moving(2) }, agent, |outcome| {
                let moves = moves(outcome);
                assert!(moves.moves >= 2, "{agent}: {moves:?}");
                assert_all_completed(outcome);
                assert!(outcome.agent_counters.get("handoff_packets_primed") > Some(&0), "{agent}");
                assert!(outcome.links.get("backbone").is_some_and(|backbone| backbone.frames > 0));
                // Behind other agents a sender that recovers from losses may itself be silent.
                if errors == ErrorModel::None || agent == "snoop" {
                    assert!(moves.gaps.len() as u64 + 1 >= moves.moves, "{agent}: {moves:?}");
                    let mut gaps = moves.gaps.clone();
                    gaps.sort();
                    let median = gaps[gaps.len() / 2];
                    assert!(median <= Duration::from_millis(25), "{agent}: {gaps:?}");
                }
                assert!(errors != ErrorModel::None || outcome.sender.timeouts == 0, "{agent}");
            })?;
        }
    }
    Ok(())
}

/// The counters of each station are apart, and those of the run are their sums.
fn handoff_counts_at_each_station() -> Result<(), Box<dyn Error>> {
    judged(&LabConfig { ipv6: true, ..moving(3) }, "snoop", |outcome| {
        let of = |station: usize, counter| {
            outcome.station_counters[station].get(counter).copied().unwrap_or(0)
        };
        assert_eq!(outcome.station_counters.len(), 3);
        let away: u64 = (0..3).map(|station| of(station, "handoffs_away")).sum();
        assert_eq!(Some(&away), outcome.agent_counters.get("handoffs_away"));
        assert!(of(0, "handoffs_away") > 0 && of(1, "handoffs_claimed") > 0);
    })
}

/// Without priming the packets come with the state, also after a time without any link.
fn handoff_without_priming() -> Result<(), Box<dyn Error>> {
    let config = change(moving(2), |plan| {
        plan.ahead = Duration::ZERO;
        plan.outage = Duration::from_millis(50);
    });
    judged(&config, "snoop", |outcome| {
        assert_eq!(outcome.agent_counters.get("handoff_packets_primed"), None);
        assert!(outcome.agent_counters.get("handoffs_completed") > Some(&0));
        assert!(outcome.agent_counters.get("handoff_packets_released") > Some(&0));
        let moves = moves(outcome);
        assert!(moves.gaps.iter().all(|gap| *gap >= Duration::from_millis(52)), "{moves:?}");
    })
}

/// Stations that know nothing of each other lose what is on its way to the last one.
fn no_handoff_loses_what_is_under_way() -> Result<(), Box<dyn Error>> {
    let config = change(moving(2), |plan| plan.has_state = false);
    let outcome = complete(&config, "plain")?;
    assert!(!outcome.links.contains_key("backbone"));
    assert!(outcome.station_counters.iter().flatten().all(|(name, _)| !name.contains("handoff")));
    assert!(outcome.sender.retransmits > 0, "{:?}", outcome.sender);
    Ok(())
}

/// Messages that a host without the key repeats or changes are counted, and nothing else happens.
fn handoff_messages_of_an_intruder() -> Result<(), Box<dyn Error>> {
    let config = change(moving(2), |plan| plan.has_intruder = true);
    judged(&config, "snoop", |outcome| {
        let moves = moves(outcome);
        let intruded = moves.intruded.unwrap_or(0);
        let counter = |name: &str| outcome.agent_counters.get(name).copied().unwrap_or(0);
        // Both stations refuse a changed message; a repeated one is new to none but its sender, who
        // does not read its own. The last ones may not have been read at the end.
        let [forged, replayed] =
            ["handoff_messages_forged", "handoff_messages_replayed"].map(counter);
        assert!(intruded > 100, "{intruded}");
        assert!(forged <= 2 * intruded && forged > 19 * intruded / 10, "{forged} of {intruded}");
        assert!(replayed <= intruded && replayed > 9 * intruded / 10, "{replayed} of {intruded}");
        assert_all_completed(outcome);
        assert_eq!(outcome.sender.timeouts, 0, "{:?}", outcome.sender);
    })
}

/// What cannot be run is refused in a sentence.
fn handoff_refuses() -> Result<(), Box<dyn Error>> {
    let long = Duration::from_secs(1);
    for (config, words) in [
        (moving(1), "2 to 16"),
        (moving(17), "2 to 16"),
        (change(moving(2), |plan| plan.outage = long), "less than the time between two moves"),
        (LabConfig { direction: Direction::Up, ..moving(2) }, "send the data down"),
        (LabConfig { path: Path::Kernel, ..moving(2) }, "in-line path"),
        (LabConfig { pairs: 2, flows: 2, ..moving(2) }, "one pair of hosts"),
        (LabConfig { turnaround: Some(long), ..moving(2) }, "full-duplex"),
    ] {
        let said = failure(forward(&config, agents(&config, "plain"))).to_string();
        assert!(said.contains(words), "{said}");
    }
    let config = moving(2);
    let said = failure(forward(&config, agents(&moving(3), "plain"))).to_string();
    assert!(said.contains("one agent"), "{said}");
    let said = failure(forward(&LabConfig { handoff: None, ..config.clone() }, Vec::new()));
    assert!(said.to_string().contains("moves"), "{said}");
    let said = failure(run(&config, super::plain(), &AtomicBool::new(false), &mut |_| ()));
    assert!(said.to_string().contains("at each of them"), "{said}");
    Ok(())
}

/// A move every 400 ms. The queue holds all that slow start sends: what a queue drops is not
/// cached, so that the sender has to resend it, and behind `snoop95` may wait for a timeout.
fn moving(stations: u32) -> LabConfig {
    let plan = HandoffPlan {
        stations,
        every: Duration::from_millis(400),
        outage: Duration::ZERO,
        ahead: Duration::from_millis(100),
        has_state: true,
        has_intruder: false,
    };
    let amount = Amount::Bytes(3_000_000);
    LabConfig { handoff: Some(plan), amount, queue_frames: 400, ..config() }
}

fn change(mut config: LabConfig, change: impl FnMut(&mut HandoffPlan)) -> LabConfig {
    config.handoff.iter_mut().for_each(change);
    config
}

fn moves(outcome: &Outcome) -> Handoffs {
    outcome.handoffs.clone().unwrap_or_default()
}

/// Every move but one that the end of the run may have cut off brought the state.
fn assert_all_completed(outcome: &Outcome) {
    let [completed, away, without] =
        ["handoffs_completed", "handoffs_away", "handoffs_without_state"]
            .map(|counter| outcome.agent_counters.get(counter).copied().unwrap_or(0));
    let moves = moves(outcome).moves;
    let counters = &outcome.agent_counters;
    assert!(completed <= away && away <= moves && moves <= completed + 1, "{moves}: {counters:?}");
    assert_eq!(without, 0, "{counters:?}");
}

/// Judges a run to its end. Between moves of 400 ms stations and hosts need a processor in time: a
/// run that does not hold is made anew, four times, and the last one counts if the loop kept time.
fn judged(config: &LabConfig, agent: &str, judge: impl Fn(&Outcome)) -> Result<(), Box<dyn Error>> {
    for more in (0..5).rev() {
        let outcome = complete(config, agent)?;
        match catch_unwind(AssertUnwindSafe(|| judge(&outcome))) {
            Ok(()) => break,
            Err(panic) if more == 0 && keeps_time(&outcome) => resume_unwind(panic),
            Err(_) => println!("{agent}: this run does not hold"),
        }
    }
    Ok(())
}

fn agents(config: &LabConfig, name: &str) -> Vec<Box<dyn Agent + Send>> {
    let limits = Limits { egress: config.egress_limits(), ..Limits::default() };
    let stations = config.handoff.map_or(0, |plan| u64::from(plan.stations));
    let agent = AgentConfig::by_name(name).expect("there is such an agent");
    (0..stations).map(|seed| agent.build(limits, seed)).collect()
}

fn forward(config: &LabConfig, agents: Vec<Box<dyn Agent + Send>>) -> Result<Outcome, LabError> {
    run(config, agents, &AtomicBool::new(false), &mut |_| ())
}

/// Runs to the end, with nothing lost outside the links.
fn complete(config: &LabConfig, agent: &str) -> Result<Outcome, LabError> {
    let outcome = forward(config, agents(config, agent))?;
    assert!(outcome.completed && outcome.port_drops == 0, "{outcome:?}");
    Ok(outcome)
}
