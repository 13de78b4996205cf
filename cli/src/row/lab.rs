//! The laboratory's lines.

use super::{Line, Times, ber_and_loss, line, millis, rounded, sender, short};
use airmend_live::lab::config::{Amount, LabConfig, Path, Place};
use airmend_live::lab::exec::Executed;
use airmend_live::lab::outcome::{Handoffs, Outcome, Ping, ShortFlows};
use airmend_proto::agents::AgentConfig;
use airmend_proto::link::ErrorModel;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// The settings with which every line begins. `bytes` are those of each flow; null where the flows
/// send for a time.
pub(crate) fn setting(agent: &AgentConfig, config: &LabConfig) -> Value {
    let [ber, loss] = ber_and_loss(&config.errors);
    let bytes = if let Amount::Bytes(bytes) = config.amount { Some(bytes) } else { None };
    json!({
        "agent": agent.name(),
        "world": "lab",
        "cc": config.cc.name(),
        "direction": config.direction.name(),
        "rate_bps": config.air.rate_bps,
        "air_delay_ms": millis(config.air.delay),
        "wired_delay_ms": millis(config.wired.delay),
        "ber": ber,
        "loss": loss,
        "bytes": bytes,
        "seed": config.seed,
    })
}

/// The further settings. Those at the end are present only for half-duplex radios, for a base
/// station without an agent in the loop, for an air that varies, for an agent in the mobile host,
/// for a modem, for a wired hop beyond the air, for several pairs of hosts, for short flows, and
/// for several base stations.
pub(crate) fn more_settings(config: &LabConfig, settings: &[(String, String)]) -> Value {
    let (burst, fading) = match config.errors {
        ErrorModel::Burst { frames, every_bytes } => {
            (json!({"frames": frames, "every_bytes": every_bytes}), Value::Null)
        }
        ErrorModel::Fading { good, bad, bad_loss, good_ber } => {
            let [good, bad] = [good, bad].map(millis);
            let all =
                json!({"good_ms": good, "bad_ms": bad, "loss": bad_loss, "good_ber": good_ber});
            (Value::Null, all)
        }
        _ => (Value::Null, Value::Null),
    };
    let send_seconds =
        if let Amount::Time(time) = config.amount { Some(time.as_secs_f64()) } else { None };
    let all = json!({
        "flows": config.flows,
        "unmended_flows": config.unmended_flows,
        "sequential": config.sequential,
        "send_seconds": send_seconds,
        "warmup_seconds": config.warmup.as_secs_f64(),
        "sack": config.sack,
        "timestamps": config.timestamps,
        "ipv6": config.ipv6,
        "wired_rate_bps": config.wired.rate_bps,
        "queue_frames": config.queue_frames,
        "wired_queue_frames": config.wired_queue_frames,
        "window_segments": config.window_segments,
        "port": config.port.name(),
        "burst": burst,
        "fading": fading,
        "settings": settings.iter().cloned().collect::<BTreeMap<_, _>>(),
    });
    let is_beside = config.path != Path::Inline;
    let unusual = json!({
        "turnaround_ms": config.turnaround.map(millis),
        "path": is_beside.then(|| config.path.name()),
        "place": (config.place != Place::Base).then(|| config.place.name()),
        "air_queue": (is_beside && config.far_queue.is_none()).then(|| config.air_queue.name()),
        "far_queue": config.far_queue.map(|queue| queue.to_string()),
        "far_wired": config.far_wired.map(|far| far.to_string()),
        "pairs": (config.pairs > 1).then_some(config.pairs),
        "short": config.short.map(|short| short.to_string()),
        "trace": config.trace.as_ref().map(|trace| &trace.name),
        "shape": config.shape.map(|shape| shape.to_string()),
    });
    let moves = config.handoff.map_or_else(
        || json!({}),
        |plan| {
            json!({
                "base_stations": plan.stations,
                "handoff_every_ms": millis(plan.every),
                "handoff_outage_ms": millis(plan.outage),
                "handoff_ahead_ms": millis(plan.ahead),
                "handoff_state": plan.has_state,
            })
        },
    );
    line([all, present(unusual), moves]).into()
}

/// The line of a program on the hosts.
pub(crate) fn exec(
    agent: &AgentConfig,
    config: &LabConfig,
    settings: &[(String, String)],
    executed: &Executed,
) -> Line {
    let [fixed, mobile] = &executed.senders;
    let measured = json!({
        "exit_status": executed.status.code(),
        "seconds": rounded(executed.seconds, 6),
        "fixed_sender": sender(fixed, json!({})),
        "mobile_sender": sender(mobile, json!({})),
        "agent_counters": executed.agents.agent_counters,
        "links": executed.links,
        "port_drops": executed.port_drops,
        "lateness_us": executed.lateness_us,
    });
    let mobile_counters = &executed.agents.mobile_counters;
    let unusual = json!({
        "mobile_counters": Some(mobile_counters).filter(|counters| !counters.is_empty()),
        "gateway_heartbeat_timeouts": executed.agents.gateway_heartbeat_timeouts,
    });
    let more = more_settings(config, settings);
    line([setting(agent, config), measured, more, present(unusual)])
}

/// The line of one run.
pub(crate) fn run(
    agent: &AgentConfig,
    config: &LabConfig,
    settings: &[(String, String)],
    outcome: &Outcome,
) -> Line {
    let share = |bound: f64| short(outcome.goodput_bps / bound);
    let measured = json!({
        "completed": outcome.completed,
        "seconds": rounded(outcome.seconds, 6),
        "goodput_bps": outcome.goodput_bps.round(),
        "bound_bps": outcome.bound_bps.round(),
        "of_bound": share(outcome.bound_bps),
        "wire_bytes_per_byte": short(outcome.wire_bytes_per_byte),
        "sender": sender(&outcome.sender, json!({"reordering": outcome.reordering})),
        "agent_counters": outcome.agent_counters,
        "bytes_received": outcome.bytes_received,
        // With the warm-up, which `goodput_bps` leaves out.
        "overall_goodput_bps": outcome.overall_goodput_bps.round(),
        // The bound with the fades of this run; null where the air does not fade.
        "realised_bound_bps": outcome.realised_bound_bps.map(f64::round),
        "of_realised_bound": outcome.realised_bound_bps.map(share),
    });
    let flows = outcome.flow_goodput_bps.iter().map(|bps| bps.round());
    let more = json!({
        // Those of the unmended flows last.
        "flow_goodput_bps": flows.collect::<Vec<_>>(),
        // Jain's index.
        "fairness": short(outcome.fairness),
        "completion_ms": Times::of(&outcome.completion_seconds),
        "ping": outcome.ping.as_ref().map(ping),
        "links": outcome.links,
        // Lost between a host's kernel and the emulated links; not 0 means a machine too slow.
        "port_drops": outcome.port_drops,
        "lateness_us": outcome.lateness_us,
        "tcp_ext": outcome.tcp_ext,
    });
    let mobile_counters = Some(&outcome.mobile_counters).filter(|counters| !counters.is_empty());
    let handoffs = outcome.handoffs.as_ref();
    let station_counters = Some(&outcome.station_counters).filter(|counters| !counters.is_empty());
    let unusual = json!({
        // Only of several base stations: how often the mobile host moved, the times until it got
        // new data in order, the counters of each station, and the messages of an intruder.
        "handoffs": handoffs.map(|handoffs| handoffs.moves),
        "handoff_ms": handoffs.and_then(|handoffs| gaps([handoffs])),
        "station_counters": station_counters,
        "intruder_messages": handoffs.and_then(|handoffs| handoffs.intruded),
        // Only where there were short flows.
        "short_completion_ms": outcome.short.as_ref().map(short_flows),
        // Only where the air needs an agent at each end: `agent_counters` is the base station's.
        "mobile_counters": mobile_counters,
        // Only where a gateway ran: the number of its heartbeat timeouts.
        "gateway_heartbeat_timeouts": outcome.gateway_heartbeat_timeouts,
        // Only where a gateway observed: its observation.
        "observation": outcome.observation,
    });
    let more_settings = more_settings(config, settings);
    line([setting(agent, config), measured, more_settings, more, present(unusual)])
}

/// Round trips of the ping, in milliseconds.
fn ping(ping: &Ping) -> Value {
    let [p50, p99, max] = [ping.round_trip.p50, ping.round_trip.p99, ping.round_trip.max]
        .map(|time| rounded(time.as_secs_f64() * 1e3, 3));
    let Ping { sent, received, .. } = ping;
    json!({"sent": sent, "received": received, "p50_ms": p50, "p99_ms": p99, "max_ms": max})
}

/// The completion times of short flows, without percentiles where none completed.
pub(crate) fn short_flows(flows: &ShortFlows) -> Value {
    let times = Times::of(&flows.completion_seconds);
    line([json!({"count": 0}), json!(times), json!({"overdue": flows.overdue})]).into()
}

/// From the moves to new data in order; `None` where none came.
pub(crate) fn gaps<'a>(runs: impl IntoIterator<Item = &'a Handoffs>) -> Option<Times> {
    let gaps = runs.into_iter().flat_map(|handoffs| &handoffs.gaps);
    Times::of(&gaps.map(Duration::as_secs_f64).collect::<Vec<_>>())
}

/// Only the fields that are not null.
fn present(mut fields: Value) -> Value {
    if let Value::Object(fields) = &mut fields {
        fields.retain(|_, value| !value.is_null());
    }
    fields
}
