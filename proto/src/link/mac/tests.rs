//! The shared channel: its times, its turns, and what errors do to it.
use super::*;
use crate::agent::LinkSignal;
use crate::link::{ErrorModel, Medium, Output, Pair};
use crate::packet::{LinkType, Packet};
use crate::time::Instant;
use alloc::vec;
use alloc::vec::Vec;
use bytes::Bytes;
use core::time::Duration;

const PARAMS: MacParams = MacParams {
    rate_bps: 1_000_000,
    delay: Duration::from_micros(10),
    preamble: Duration::from_micros(192),
    header_bytes: 34,
    rts_bytes: 20,
    turnaround: Duration::from_micros(500),
    backoff_rts: 10,
    acceleration: false,
    queue_frames: 10,
};
const ACCELERATED: MacParams = MacParams { acceleration: true, ..PARAMS };
const DATA: u32 = 1440;
const ACK: u32 = 40;

fn channel(params: MacParams, errors: ErrorModel, seed: u64) -> FamaNcs {
    let pair = Pair::new([0, 1], [params.delay; 2], [errors; 2], seed, 0);
    FamaNcs::new(params, vec![pair])
}

fn packet(bytes: u32) -> Packet {
    Packet::truncated(LinkType::Ip, Bytes::new(), bytes)
}

/// Runs until `end`, offering each end a packet of its size whenever it is ready; 0: none.
fn run(channel: &mut FamaNcs, sizes: [u32; 2], end: Instant) -> Vec<(Instant, Output)> {
    run_with(channel, end, |_, end| sizes[end])
}

/// The same, with the size chosen by what happened so far.
fn run_with(
    channel: &mut FamaNcs,
    end: Instant,
    size: impl Fn(&[(Instant, Output)], usize) -> u32,
) -> Vec<(Instant, Output)> {
    let mut log = Vec::new();
    let offer = |channel: &mut FamaNcs, now: Instant, end: usize, log: &[_]| {
        let size = size(log, end);
        if size > 0 && channel.can_send(now, end) {
            assert!(channel.send(now, end, 1 - end, packet(size)));
        }
    };
    offer(channel, Instant::ZERO, 0, &log);
    offer(channel, Instant::ZERO, 1, &log);
    while let Some(now) = channel.poll_timeout().filter(|at| *at <= end) {
        channel.handle_timeout(now);
        while let Some(output) = channel.poll_output() {
            let ready = if let Output::Ready(end) = output { Some(end) } else { None };
            log.push((now, output));
            if let Some(end) = ready {
                offer(channel, now, end, &log);
            }
        }
    }
    log
}

fn deliveries(log: &[(Instant, Output)], to: usize) -> usize {
    log.iter()
        .filter(|(_, output)| matches!(output, Output::Delivery { to: end, .. } if *end == to))
        .count()
}

fn sent(log: &[(Instant, Output)], by: usize) -> usize {
    log.iter().filter(|(_, output)| *output == Output::Signal(by, LinkSignal::Sent)).count()
}

#[test]
fn a_packet_on_an_idle_channel_takes_its_handshake_and_its_airtime() {
    let mut channel = channel(PARAMS, ErrorModel::None, 1);
    assert!(channel.can_send(Instant::ZERO, 0));
    channel.send(Instant::ZERO, 0, 1, packet(DATA));
    assert!(!channel.can_send(Instant::ZERO, 0), "it has one waiting");
    // RTS 352 µs, CTS 352 + 20 + 500 µs, two turn-arounds, two propagations; 11 984 µs of packet.
    let sent = Instant::from_micros(352 + 872 + 2 * 510 + 11_984);
    let log = run(&mut channel, [0; 2], Instant::from_millis(20));
    assert_eq!(log[0], (sent, Output::Signal(0, LinkSignal::Sent)));
    assert_eq!(
        log[1],
        (sent + PARAMS.delay, Output::Delivery { from: 0, to: 1, packet: packet(DATA) })
    );
    assert_eq!(&log[2..], [0, 1].map(|end| (sent + PARAMS.delay, Output::Ready(end))));
}

/// FAMA-NCS: a packet that comes while the floor is free goes from PASSIVE to RTS, one that waited
/// from BACKOFF.
#[test]
fn only_packets_that_waited_back_off() {
    let handshake = PARAMS.handshake_time() + PARAMS.packet_time(ACK);
    for (later, backs_off) in [(0, true), (1, false)] {
        let mut channel = channel(PARAMS, ErrorModel::None, 1);
        channel.send(Instant::ZERO, 0, 1, packet(DATA));
        let log = run(&mut channel, [0; 2], Instant::from_millis(20));
        let released = log.last().unwrap().0;
        let offered = released + Duration::from_nanos(later);
        channel.send(offered, 1, 0, packet(ACK));
        let log = run(&mut channel, [0; 2], Instant::from_millis(100));
        assert_eq!(log[0].0 > offered + handshake, backs_off, "{later} ns after the release");
    }
}

#[test]
fn one_end_alone_gets_the_service_that_is_promised() {
    for params in [PARAMS, ACCELERATED] {
        let mut channel = channel(params, ErrorModel::None, 2);
        let log = run(&mut channel, [DATA, 0], Instant::from_millis(60_000));
        let wait = match params.acceleration {
            // An answer that does not come costs the turn-around, and two propagations instead
            // of one.
            true => params.turnaround + params.delay,
            false => Duration::ZERO,
        };
        let service = params.handshake_time()
            + params.packet_time(DATA)
            + params.delay
            + wait
            + params.backoff_time() / 2;
        let ratio = deliveries(&log, 1) as f64 * service.as_secs_f64() / 60.0;
        assert!((0.99..1.01).contains(&ratio), "{ratio}");
    }
}

#[test]
fn two_busy_ends_share_the_channel_evenly() {
    let mut channel = channel(PARAMS, ErrorModel::None, 3);
    let log = run(&mut channel, [DATA; 2], Instant::from_millis(60_000));
    let [a, b] = [0, 1].map(|end| deliveries(&log, end) as f64);
    assert!((0.9..1.1).contains(&(a / b)), "{a} and {b}");
    let times: Vec<Instant> = log
        .iter()
        .filter_map(|(at, output)| {
            matches!(output, Output::Signal(_, LinkSignal::Sent)).then_some(*at)
        })
        .collect();
    let least = PARAMS.handshake_time() + PARAMS.packet_time(DATA);
    assert!(times.windows(2).all(|pair| pair[1] - pair[0] >= least), "one at a time");
    let MacCounters { handshakes, failed, .. } = channel.mac_counters();
    // Within 10 µs of each other, of backoffs up to 3.5 ms.
    assert!(failed > 0 && failed * 50 < handshakes, "{failed} of {handshakes}");
}

/// S2-06.
#[test]
fn an_accelerated_answer_needs_no_handshake() {
    let mut channel = channel(ACCELERATED, ErrorModel::None, 4);
    // An ACK for each packet, when it has arrived.
    let size = |log: &[_], end| match end {
        0 => DATA,
        _ if deliveries(log, 1) > sent(log, 1) => ACK,
        _ => 0,
    };
    let log = run_with(&mut channel, Instant::from_millis(20_000), size);
    let arrivals: Vec<Instant> = log
        .iter()
        .filter_map(|(at, output)| matches!(output, Output::Delivery { to: 1, .. }).then_some(*at))
        .collect();
    for arrived in &arrivals[1..arrivals.len() - 1] {
        let answered = *arrived + PARAMS.turnaround + PARAMS.packet_time(ACK) + PARAMS.delay;
        let (_, answer) = log.iter().find(|(at, _)| *at == answered).unwrap();
        assert_eq!(*answer, Output::Delivery { from: 1, to: 0, packet: packet(ACK) });
    }
    let counters = channel.mac_counters();
    assert!(counters.answers + 1 >= arrivals.len() as u64, "{counters:?}");
    let ratio =
        arrivals.len() as f64 * ACCELERATED.mean_exchange(DATA, ACK, 1.0).as_secs_f64() / 20.0;
    assert!((0.99..1.01).contains(&ratio), "{ratio}");
}

/// A frame of a link protocol is asked for again just before it leaves, once, and both where it
/// contends and where it answers.
#[test]
fn a_link_s_frame_that_waited_can_be_exchanged() {
    let frame = |bytes| Packet::truncated(LinkType::Frame, Bytes::new(), bytes);
    let mut channel = channel(ACCELERATED, ErrorModel::None, 4);
    channel.send(Instant::ZERO, 0, 1, frame(DATA));
    channel.send(Instant::ZERO, 1, 0, frame(DATA));
    let mut leaving = Vec::new();
    let mut delivered = Vec::new();
    while let Some(now) = channel.poll_timeout().filter(|at| *at < Instant::from_millis(20)) {
        channel.handle_timeout(now);
        while let Some(output) = channel.poll_output() {
            match output {
                Output::Signal(end, LinkSignal::Leaving) => {
                    leaving.push((now, end));
                    assert!(channel.can_send(now, end) && !channel.can_send(now, 1 - end));
                    assert!(channel.send(now, end, 1 - end, frame(ACK + end as u32)));
                    assert!(!channel.can_send(now, end), "once");
                }
                Output::Delivery { to, packet, .. } => {
                    delivered.push((now, to, packet.wire_len()));
                }
                _ => {}
            }
        }
    }
    // Both begin at the same time, which fails; then one of them wins, and the other one answers.
    let [_, (sent, first), (answered, other)] = leaving[..] else { panic!("{leaving:?}") };
    let bytes = |end| ACK + end as u32;
    assert_eq!((delivered.len(), other), (2, 1 - first));
    let arrives = sent
        + ACCELERATED.handshake_time()
        + ACCELERATED.packet_time(bytes(first))
        + ACCELERATED.delay;
    assert_eq!(delivered[0], (arrives, other, bytes(first)));
    assert_eq!(answered, arrives + ACCELERATED.turnaround);
    assert_eq!((delivered[1].1, delivered[1].2), (first, bytes(other)));
}

#[test]
fn an_ip_packet_is_never_exchanged() {
    let mut channel = channel(ACCELERATED, ErrorModel::None, 4);
    channel.send(Instant::ZERO, 0, 1, packet(DATA));
    let log = run(&mut channel, [DATA, ACK], Instant::from_millis(1_000));
    assert!(deliveries(&log, 1) > 10 && deliveries(&log, 0) > 10);
    assert!(
        log.iter().all(|(_, output)| !matches!(output, Output::Signal(_, LinkSignal::Leaving)))
    );
}

#[test]
fn the_sender_is_told_that_no_answer_comes() {
    for errors in [ErrorModel::None, ErrorModel::Loss(1.0)] {
        let mut channel = channel(ACCELERATED, errors, 5);
        channel.send(Instant::ZERO, 0, 1, packet(DATA));
        let log = run(&mut channel, [0; 2], Instant::from_millis(20));
        let at = |wanted: Output| log.iter().find(|(_, output)| *output == wanted).unwrap().0;
        let silence =
            at(Output::Signal(0, LinkSignal::Idle)) - at(Output::Signal(0, LinkSignal::Sent));
        assert_eq!(silence, PARAMS.turnaround + 2 * PARAMS.delay, "{errors:?}");
    }
    let mut channel = channel(PARAMS, ErrorModel::None, 5);
    let log = run(&mut channel, [DATA, 0], Instant::from_millis(200));
    assert!(
        log.iter().all(|(_, output)| *output != Output::Signal(0, LinkSignal::Idle)),
        "it may still contend"
    );
}

#[test]
fn only_small_packets_are_answers() {
    for bytes in [MacParams::ANSWER_BYTES, MacParams::ANSWER_BYTES + 1] {
        let mut channel = channel(ACCELERATED, ErrorModel::None, 5);
        run(&mut channel, [DATA, bytes], Instant::from_millis(2_000));
        let answers = channel.mac_counters().answers;
        assert_eq!(answers > 0, bytes == MacParams::ANSWER_BYTES, "{bytes}: {answers}");
    }
    let mut channel = channel(PARAMS, ErrorModel::None, 5);
    run(&mut channel, [DATA, ACK], Instant::from_millis(2_000));
    assert_eq!(channel.mac_counters().answers, 0, "without acceleration");
}

#[test]
fn losses_and_bursts_are_about_packets_and_spare_the_handshake() {
    for errors in [ErrorModel::Loss(0.5), ErrorModel::Burst { frames: 4, every_bytes: 64 << 10 }] {
        let mut channel = channel(PARAMS, errors, 6);
        run(&mut channel, [DATA, 0], Instant::from_millis(60_000));
        let lost = channel.counters(0, 1).lost;
        assert_eq!((channel.mac_counters().failed, lost > 100), (0, true), "{lost}");
    }
}

#[test]
fn bit_errors_hit_packets_and_handshakes_by_their_bits() {
    let ber = 1e-4;
    let mut channel = channel(PARAMS, ErrorModel::Ber(ber), 7);
    let log = run(&mut channel, [DATA, 0], Instant::from_millis(200_000));
    let MacCounters { handshakes, failed, .. } = channel.mac_counters();
    let expected = ErrorModel::Ber(ber).frame_error(2 * PARAMS.control_bits());
    let share = failed as f64 / handshakes as f64;
    assert!((0.8..1.2).contains(&(share / expected)), "{share} instead of {expected}");
    let counters = channel.counters(0, 1);
    let expected = ErrorModel::Ber(ber).frame_error(PARAMS.packet_bits(DATA));
    let share = counters.damaged as f64 / counters.frames as f64;
    assert!((0.97..1.03).contains(&(share / expected)), "{share} instead of {expected}");
    let told =
        log.iter().filter(|(_, output)| matches!(output, Output::Damaged { to: 1, .. })).count();
    assert_eq!(told as u64, counters.damaged);
}

/// S2-41: without a CTS no further packet enters the channel during a fade.
#[test]
fn a_fade_takes_one_packet_at_most() {
    let [good, bad] = [745, 78].map(Duration::from_millis);
    let errors = ErrorModel::Fading { good, bad, bad_loss: 1.0, good_ber: 0.0 };
    let mut channel = channel(PARAMS, errors, 8);
    let end = Instant::from_millis(600_000);
    run(&mut channel, [DATA, 0], end);
    let lost = channel.counters(0, 1).lost as f64;
    let fades = 600.0 / (good + bad).as_secs_f64();
    let failed = channel.mac_counters().failed as f64;
    // A packet is lost only if the fade began between its CTS and its first bit, half a
    // millisecond of the sixteen of an exchange.
    assert!(lost < 0.1 * fades, "{lost} lost in about {fades} fades");
    // The handshakes of 4 ms on average go on in vain.
    assert!(failed > 10.0 * fades, "{failed} in about {fades} fades");
}

#[test]
fn a_full_queue_refuses() {
    let mut channel = channel(PARAMS, ErrorModel::None, 9);
    let accepted = (0..20).filter(|_| channel.send(Instant::ZERO, 1, 0, packet(ACK))).count();
    assert_eq!(accepted, 1 + PARAMS.queue_frames);
    assert_eq!(channel.counters(1, 0).dropped, 20 - accepted as u64);
    let log = run(&mut channel, [0; 2], Instant::from_millis(1_000));
    assert_eq!(deliveries(&log, 0), accepted);
}

/// A base station, number 0, with a packet for each mobile in turn, and three mobiles that send.
#[test]
fn several_stations_share_the_channel_evenly_and_err_independently() {
    let losses = [0.0, 0.1, 0.3];
    let pairs = losses.into_iter().zip(1..).map(|(loss, mobile)| {
        let errors = [ErrorModel::Loss(loss); 2];
        Pair::new([0, mobile], [PARAMS.delay; 2], errors, 11, mobile as u32)
    });
    let mut channel = FamaNcs::new(PARAMS, pairs.collect());
    let mut turn = 0;
    let mut offer = |channel: &mut FamaNcs, now, from| {
        if from == 0 {
            turn = turn % 3 + 1;
        }
        let to = if from == 0 { turn } else { 0 };
        assert!(!channel.can_send(now, from) || channel.send(now, from, to, packet(DATA)));
    };
    (0..4).for_each(|station| offer(&mut channel, Instant::ZERO, station));
    while let Some(now) = channel.poll_timeout().filter(|at| *at < Instant::from_millis(200_000)) {
        match channel.poll(now) {
            Some(Output::Ready(station)) => offer(&mut channel, now, station),
            Some(Output::Delivery { from, to, .. }) => assert!(from == 0 || to == 0),
            _ => {}
        }
    }
    let base = [1, 2, 3].map(|mobile| channel.counters(0, mobile).frames).iter().sum::<u64>();
    for (mobile, loss) in (1..).zip(losses) {
        let up = channel.counters(mobile, 0);
        let shares = up.frames as f64 / base as f64;
        assert!((0.9..1.1).contains(&shares), "{mobile}: {} and {base}", up.frames);
        let lost = up.lost as f64 / up.frames as f64;
        assert!((lost - loss).abs() < 0.03, "{mobile}: {lost}");
    }
    // With four contenders more RTS collide than with two.
    let MacCounters { handshakes, failed, .. } = channel.mac_counters();
    assert!(failed > 0 && failed * 20 < handshakes, "{failed} of {handshakes}");
}
