//! What is counted, and under which name.

use super::*;
use airmend_proto::agents::Limits;
use airmend_proto::event::Uncached;
use airmend_proto::wire::seq::SeqNumber;
use airmend_proto::wire::tcp::Bypass;
use std::time::{Duration, SystemTime};

const SEQ: SeqNumber = SeqNumber(1);

fn about() -> About {
    About {
        interface: "wlan0".into(),
        agent: "snoop".into(),
        version: "1.2.3".into(),
        observe: false,
        limits: Limits { flows: 100, ..Limits::default() },
        started: SystemTime::UNIX_EPOCH + Duration::from_secs(1_000),
    }
}

fn key(port: u16) -> FlowKey {
    FlowKey { wired: ([10, 0, 0, 1], 80).into(), air: ([10, 0, 1, 2], port).into() }
}

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

fn repair(flow: u64, cause: Cause) -> Event {
    Event::LocalRetransmit { flow: FlowId(flow), seq: SEQ, cause, attempt: 1 }
}

fn rtt(flow: u64, millis: u64) -> Event {
    let time = Duration::from_millis(millis);
    Event::AirRtt { flow: FlowId(flow), sample: time, srtt: time }
}

/// Telemetry of these flows, after these events.
fn telemetry(flows: &[u64], events: &[Event]) -> Telemetry {
    let mut telemetry = Telemetry::new(about());
    for &flow in flows {
        telemetry.flow_opened(at(1), FlowId(flow), key(flow as u16));
        telemetry.event(at(1), &Event::FlowOpened(FlowId(flow)));
    }
    for event in events {
        telemetry.event(at(2), event);
    }
    telemetry
}

fn status(telemetry: &Telemetry) -> Status {
    let flow = |_: &FlowKey| Some(KernelFlow { packets: 97, bytes: 140_000 });
    let kernel = KernelView {
        heartbeat_timeouts: 2,
        passed_unseen: 30,
        copies_lost: 4,
        refused: 5,
        flow: &flow,
    };
    telemetry.status(at(2_000), Load { flows: 1, cache_bytes: 9_000, cache_packets: 6 }, &kernel)
}

#[test]
fn without_any_acknowledgment_the_loss_is_unknown() {
    let mut telemetry = telemetry(&[7], &[repair(7, Cause::TailProbe)]);
    telemetry.packets(Path::DataCopied, 100, 150_000);
    let before = status(&telemetry);
    assert_eq!((before.air_packets, before.air_loss(), before.top[0].loss), (100, None, None));
    telemetry.event(at(3), &rtt(7, 4));
    let after = status(&telemetry);
    assert_eq!((after.air_loss(), after.top[0].loss), (Some(0.0), Some(0.0)));
}

#[test]
fn what_happens_is_counted_in_total_and_for_its_flow() {
    let flow = FlowId(7);
    let mut telemetry = telemetry(
        &[7],
        &[
            repair(7, Cause::Rack),
            repair(7, Cause::Rack),
            repair(7, Cause::TailProbe),
            Event::DupAckSuppressed(flow, SEQ),
            Event::SackStripped(flow, SEQ),
            Event::LossSignalForwarded(flow, SEQ),
            Event::Bypassed(Bypass::Fragment),
            Event::Uncached(flow, SEQ, Uncached::MemoryLimit),
            Event::FlowTableFull,
            rtt(7, 4),
        ],
    );
    telemetry.packets(Path::DataCopied, 97, 97_000);
    telemetry.packets(Path::Repairs, 3, 3_000);
    let status = status(&telemetry);
    assert_eq!((status.repairs["rack"], status.repairs["tail_probe"]), (2, 1));
    assert_eq!((status.air_losses, status.air_packets, status.air_loss()), (2, 100, Some(0.02)));
    assert_eq!((status.packets["data_copied"], status.packets["unseen"]), (97, 30));
    assert_eq!((status.bypasses["fragment"], status.uncached["memory"]), (1, 1));
    assert_eq!((status.heartbeat_timeouts, status.copies_lost), (2, 4));
    assert_eq!((status.counters.suppressed_dupacks, status.counters.flow_table_full), (1, 1));
    assert_eq!((status.air_rtt_seconds.count, status.air_rtt_seconds.sum), (1, 0.004));
    assert_eq!((status.uptime_seconds, status.started_unix_seconds), (2.0, 1_000.0));
    let expected = FlowStatus {
        flow: 7,
        wired: "10.0.0.1:80".into(),
        air: "10.0.1.2:7".into(),
        age_seconds: 1.999,
        packets: Some(97),
        bytes: Some(140_000),
        repairs: 3,
        losses: 2,
        loss: Some(0.02),
        suppressed_dupacks: 1,
        stripped_acks: 1,
        forwarded_loss_signals: 1,
        sender_retransmits: 0,
        air_rtt_ms: Some(4.0),
    };
    assert_eq!(status.top, [expected]);
}

#[test]
fn the_top_is_what_was_mended_most_and_ends_with_the_flow() {
    let mut telemetry = telemetry(&(0..80).collect::<Vec<_>>(), &[]);
    for flow in 0..80 {
        for _ in 0..flow {
            telemetry.event(at(3), &repair(flow, Cause::Rack));
        }
    }
    let flows =
        |telemetry: &Telemetry| status(telemetry).top.iter().map(|f| f.flow).collect::<Vec<_>>();
    assert_eq!(flows(&telemetry), (30..80).rev().collect::<Vec<_>>());
    telemetry.event(at(4), &Event::FlowEnded(FlowId(79), FlowEnd::Evicted));
    assert_eq!(flows(&telemetry), (29..79).rev().collect::<Vec<_>>());
    assert_eq!(status(&telemetry).flows_ended["evicted"], 1);
    telemetry.event(at(5), &Event::AgentReplaced(at(5)));
    assert_eq!(flows(&telemetry), [0; 0]);
    assert_eq!(status(&telemetry).counters.agent_panics, 1);
}

#[test]
fn a_timeout_is_saved_when_a_timer_mended_before_the_sender_did() {
    let flow = FlowId(1);
    let probe = repair(1, Cause::TailProbe);
    let again = repair(1, Cause::LocalTimeout);
    let resent = Event::SenderRetransmit(flow, SEQ);
    let closed = Event::FlowEnded(flow, FlowEnd::Closed);
    let idle = Event::FlowEnded(flow, FlowEnd::Idle);
    for (events, saved) in [
        (&[probe, rtt(1, 4)][..], 1),
        (&[probe, again, rtt(1, 4), rtt(1, 4)], 1),
        (&[probe, rtt(1, 4), probe, rtt(1, 4)], 2),
        (&[probe, resent, rtt(1, 4)], 0),
        (&[probe, Event::LossSignalForwarded(flow, SEQ), rtt(1, 4)], 0),
        (&[probe, closed], 1),
        (&[probe, idle], 0),
        (&[repair(1, Cause::Rack), rtt(1, 4)], 0),
        (&[probe, rtt(2, 4)], 0),
    ] {
        assert_eq!(status(&telemetry(&[1, 2], events)).timeouts_saved.tail, saved, "{events:?}");
    }
    let repeats = [1, 2, 3, 1].map(|attempt| Event::HandshakeRepeated { attempt });
    let status = status(&telemetry(&[], &repeats));
    assert_eq!((status.timeouts_saved.handshake, status.counters.repeated_handshakes), (2, 4));
}

#[test]
fn flows_beyond_the_limit_are_counted_but_not_listed() {
    let mut telemetry = telemetry(&(0..200).collect::<Vec<_>>(), &[]);
    telemetry.event(at(3), &repair(150, Cause::Rack));
    let status = status(&telemetry);
    assert_eq!((status.top.len(), status.counters.flows_opened), (TOP, 200));
    assert_eq!((status.repairs["rack"], status.top[0].repairs), (1, 0));
}

#[test]
fn a_status_survives_json_and_unknown_fields() {
    let mut before = status(&telemetry(&[1], &[repair(1, Cause::DupAck), rtt(1, 3)]));
    before.cpu_seconds = 0.25;
    let mut json = serde_json::to_value(&before).unwrap();
    json["of_a_later_version"] = 1.into();
    assert_eq!(serde_json::from_value::<Status>(json).unwrap(), before);
}
