//! Packet scripts: what the observer counts, and what it makes of it.

use super::*;
use crate::tcp_model::TcpPath;
use airmend_proto::LinkType;
use airmend_proto::random::{Purpose, Stream};
use airmend_proto::wire::build::SegmentBuilder;
use airmend_proto::wire::seq::SeqNumber;
use airmend_proto::wire::tcp::{Options, SackBlocks, Timestamps};

const MSS: u32 = 1_000;
const WIRED: ([u8; 4], u16) = ([10, 0, 0, 1], 80);
const AIR: ([u8; 4], u16) = ([10, 0, 1, 2], 5_000);

/// An observer, and a flow that it sees. Segments are numbered; times are in milliseconds.
struct Script {
    observer: Observer,
    now: u64,
    port: u16,
}

impl Script {
    fn new() -> Self {
        let known = Some((10_000_000, CapacityFrom::Shaper));
        Self { observer: Observer::new(known, 10), now: 0, port: AIR.1 }
    }

    fn at(&mut self, millis: u64) -> &mut Self {
        self.now = millis;
        self
    }

    fn packet(&mut self, from: Port, builder: SegmentBuilder<'_>) -> &mut Self {
        let packet = builder.build(LinkType::Ip);
        self.observer.packet(Instant::from_millis(self.now), from, &packet);
        self
    }

    fn options(sack: &[(u32, u32)]) -> Options {
        let mut blocks = SackBlocks::default();
        for &(left, right) in sack {
            blocks.push(SeqNumber(left * MSS), SeqNumber(right * MSS));
        }
        Options { sack: blocks, ..Options::default() }
    }

    fn timed(value: u32, echo: u32) -> Options {
        Options { timestamps: Some(Timestamps { value, echo }), ..Options::default() }
    }

    /// Data of these segments, one by one.
    fn data(&mut self, segments: std::ops::Range<u32>) -> &mut Self {
        let air = (AIR.0, self.port);
        for number in segments {
            let seq = SeqNumber(number * MSS);
            let builder = SegmentBuilder::new(WIRED, air).flags(Flags::ACK).seq(seq);
            self.packet(Port::Wired, builder.payload_len(MSS));
        }
        self
    }

    /// Everything below segment `next` has arrived, and these beyond.
    fn ack(&mut self, next: u32, sack: &[(u32, u32)]) -> &mut Self {
        let air = (AIR.0, self.port);
        let builder = SegmentBuilder::new(air, WIRED).flags(Flags::ACK);
        let builder = builder.ack(SeqNumber(next * MSS)).options(Self::options(sack));
        self.packet(Port::Air, builder)
    }

    fn observation(&mut self) -> Observation {
        self.observer.observation(Instant::from_millis(self.now))
    }
}

#[test]
fn data_whose_acknowledgments_take_another_way_has_no_loss_rate() {
    let mut script = Script::new();
    script.data(0..10).at(500).data(10..20);
    assert_eq!(script.observation().flows_unanswered, 0, "an answer may still come");
    script.at(1_000).data(20..30).data(5..6);
    let seen = script.observation();
    assert_eq!((seen.flows_unanswered, seen.air_frames, seen.air_loss), (1, 31, None));
    assert_eq!(seen.flows[0].air_loss, None);
    let seen = script.at(1_001).ack(30, &[]).observation();
    assert_eq!((seen.flows_unanswered, seen.air_loss.is_some()), (0, true));
}

#[test]
fn a_hole_is_one_loss_however_often_it_is_told() {
    let mut script = Script::new();
    script.data(0..5).at(5).ack(1, &[]).ack(1, &[(2, 3)]).ack(1, &[(2, 4)]).ack(1, &[(2, 5)]);
    script.at(90).data(1..2).at(95).ack(5, &[]);
    let seen = script.observation();
    assert_eq!((seen.air_frames, seen.air_losses, seen.lost_before), (6, 1, 0));
    assert_eq!((seen.hidden_acks, seen.timeouts, seen.flows_seen), (3, 0, 1));
    assert_eq!(seen.flows[0].bytes, 5 * u64::from(MSS));
    assert_eq!(seen.flows[0].air_rtt_ms, Some(5.0));
}

#[test]
fn what_was_lost_before_is_no_loss_of_the_air() {
    let mut script = Script::new();
    script.data(0..2).data(3..6).at(5).ack(2, &[]).ack(2, &[(3, 4)]).ack(2, &[(3, 6)]);
    script.at(400).data(2..3).at(405).ack(6, &[]);
    let seen = script.observation();
    assert_eq!((seen.air_losses, seen.lost_before, seen.hidden_acks), (0, 1, 0));
    assert_eq!((seen.gain, seen.flows[0].limit), (Some(1.0), Limit::NoLoss));
    let mut script = Script::new();
    script.data(0..2).data(3..4).at(2).data(2..3).at(5).ack(4, &[]);
    assert_eq!(script.observation().lost_before, 0, "it only changed places");
}

#[test]
fn a_timeout_follows_a_silence_and_what_arrived_twice_was_not_lost() {
    let mut script = Script::new();
    script.data(0..1).at(300).data(0..1).at(305).ack(1, &[(0, 1)]);
    let seen = script.observation();
    assert_eq!((seen.timeouts, seen.air_losses), (1, 0));
    script.data(1..2).at(600).data(1..2).at(1_200).data(1..2).at(1_205).ack(2, &[]);
    let seen = script.observation();
    assert_eq!((seen.timeouts, seen.air_losses), (3, 2), "a lost retransmission is a loss");
}

#[test]
fn what_the_mobile_has_is_not_lost_when_all_is_sent_again() {
    let mut script = Script::new();
    script.data(0..4).at(5).ack(0, &[(1, 4)]).at(300).data(0..4);
    assert_eq!(script.observation().air_losses, 1);
}

/// As a sender does that has not heard of a repair: what it sends is known to be there, and that
/// it arrives twice takes nothing from the losses.
#[test]
fn what_is_sent_again_though_it_has_arrived_hides_no_loss() {
    let mut script = Script::new();
    script.data(0..6).at(5).ack(1, &[(2, 6)]).at(6).data(1..2);
    // Segments that were acknowledged selectively, before the repair has arrived and after that.
    script.at(7).data(2..4).at(11).ack(6, &[]).ack(6, &[(2, 3)]).ack(6, &[(3, 4)]);
    script.at(12).data(1..3).at(17).ack(6, &[(1, 2)]).ack(6, &[(2, 3)]);
    let seen = script.observation();
    assert_eq!((seen.air_frames, seen.air_losses), (11, 1));
    // Of whom it was not known.
    script.at(200).data(6..7).at(500).data(6..7).at(510).ack(7, &[]).ack(7, &[(6, 7)]);
    assert_eq!(script.observation().air_losses, 1);
}

#[test]
fn time_without_anything_to_send_does_not_count() {
    let mut script = Script::new();
    for turn in 0..10 {
        let begin = u64::from(turn) * 10_000;
        script.at(begin).data(turn * 10..turn * 10 + 10).at(begin + 100).ack(turn * 10 + 10, &[]);
    }
    script.at(120_000);
    let seen = script.observation();
    assert!((seen.busy_seconds - 1.0).abs() < 0.01, "{seen:?}");
    assert!((seen.goodput_bps - 800_000.0).abs() < 10_000.0, "{seen:?}");
}

#[test]
fn flows_share_the_air_while_both_are_active() {
    let mut script = Script::new();
    // The first alone for a second, then both for a second.
    for turn in 0..20 {
        script.at(100 * u64::from(turn));
        for port in [5_000, 5_001] {
            if port == 5_000 || turn >= 10 {
                script.port = port;
                let base = turn * 10;
                script.data(base..base + 10).ack(base + 1, &[]).data(base + 1..base + 2);
                script.ack(base + 9, &[]);
            }
        }
    }
    script.at(2_000).observation();
    let shares: Vec<_> = script
        .observer
        .flows
        .iter()
        .map(|(key, observed)| {
            let measured = observed.measured(Instant::from_millis(2_000), script.observer.served);
            (key.air.port, (measured.share * 100.0).round())
        })
        .collect();
    assert!(shares.contains(&(5_000, 75.0)) && shares.contains(&(5_001, 50.0)), "{shares:?}");
}

#[test]
fn a_connection_in_the_place_of_another_has_new_state() {
    let mut script = Script::new();
    script.data(0..3).at(5).ack(3, &[]);
    let syn = SegmentBuilder::new(WIRED, AIR).flags(Flags::SYN).seq(SeqNumber(77));
    script.at(1_000).packet(Port::Wired, syn);
    script.data(500..502).at(1_005).ack(502, &[]);
    let seen = script.observation();
    assert_eq!((seen.flows_seen, seen.flows.len(), seen.air_frames), (2, 1, 5));
    assert_eq!(seen.air_losses, 0);
}

#[test]
fn the_table_is_bounded_and_forgets_the_silent() {
    let mut script = Script::new();
    for port in 0..20 {
        script.port = port;
        script.data(0..2).ack(2, &[]);
    }
    assert_eq!((script.observer.len(), script.observation().flows_seen), (10, 10));
    script.at(61_000).port = 30;
    script.data(0..2);
    script.at(61_500).data(2..3);
    assert_eq!(script.observer.len(), 1);
    assert_eq!(script.observation().air_frames, 23, "what was counted stays");
}

#[test]
fn trains_tell_the_rate_where_nobody_does() {
    let mut script = Script::new();
    script.observer.know(None);
    assert_eq!(script.observation().capacity_from, CapacityFrom::Unknown);
    // A frame of 1,040 bytes every millisecond.
    for number in 0..100 {
        script.at(u64::from(number)).data(number..number + 1);
        if number >= 4 {
            script.ack(number - 3, &[]);
        }
    }
    let seen = script.observation();
    assert_eq!(seen.capacity_from, CapacityFrom::Measured);
    assert!((seen.capacity_bps.unwrap_or(0.0) / 8.32e6 - 1.0).abs() < 0.01, "{seen:?}");
}

#[test]
fn both_round_trips_are_measured() {
    let mut script = Script::new();
    let data = |number: u32, echo| {
        let builder = SegmentBuilder::new(WIRED, AIR).flags(Flags::ACK).payload_len(MSS);
        builder.seq(SeqNumber(number * MSS)).options(Script::timed(1, echo))
    };
    let ack = |next: u32, value| {
        let builder = SegmentBuilder::new(AIR, WIRED).flags(Flags::ACK);
        builder.ack(SeqNumber(next * MSS)).options(Script::timed(value, 1))
    };
    script.packet(Port::Wired, data(0, 6)).at(4).packet(Port::Air, ack(1, 7));
    script.at(84).packet(Port::Wired, data(1, 7)).at(88).packet(Port::Air, ack(2, 9));
    let flow = &script.observation().flows[0];
    assert_eq!((flow.air_rtt_ms, flow.wired_rtt_ms), (Some(4.0), Some(80.0)));
}

/// Whatever crosses: no panic, no loss without a frame, no estimate below what is.
#[test]
fn nothing_makes_it_tell_nonsense() {
    for seed in 0..300 {
        let mut random = Stream::new(seed, 0, 0, Purpose::Loss);
        let mut below = |bound: u32| (random.uniform() * f64::from(bound)) as u32;
        let mut script = Script::new();
        for _ in 0..200 {
            script.at(script.now + u64::from(below(400)));
            let (a, b) = (below(40), below(40));
            match below(2) {
                0 => script.data(a..a + 1 + b / 20),
                _ => script.ack(a, &[(b, b + 2)]),
            };
        }
        let seen = script.observation();
        assert!(seen.air_losses <= seen.air_frames, "seed {seed}: {seen:?}");
        assert!(seen.busy_seconds >= 0.0 && seen.estimate_bps.is_finite(), "seed {seed}: {seen:?}");
        assert!(seen.estimate_bps >= seen.goodput_bps, "seed {seed}: {seen:?}");
    }
}

/// Ten segments every 10 ms, of which the air loses one in a hundred; its repair arrives 10 ms
/// later, and the sender is 100 ms away. Without mending this would be TCP with 1 % of losses.
#[test]
fn the_gain_is_what_tcp_would_lose_by_the_losses_that_were_repaired() {
    let mut script = Script::new();
    let timed = |script: &mut Script, from: Port, builder: SegmentBuilder<'_>, echo: u64| {
        let options = Script::timed(script.now as u32, echo as u32);
        script.packet(from, builder.flags(Flags::ACK).options(options));
    };
    let data =
        |number: u32| SegmentBuilder::new(WIRED, AIR).seq(SeqNumber(number * MSS)).payload_len(MSS);
    let turns = 3_000;
    for turn in 0..turns {
        script.at(1_000 + u64::from(turn) * 10);
        // The ACK of 100 ms ago.
        let echo = script.now - 100;
        (turn * 10..turn * 10 + 10).for_each(|at| timed(&mut script, Port::Wired, data(at), echo));
        if turn % 10 == 9 {
            // The first of these is missing, and repaired.
            script.now += 5;
            script.ack(turn * 10, &[(turn * 10 + 1, turn * 10 + 10)]);
            script.packet(Port::Wired, data(turn * 10).flags(Flags::ACK));
            script.now += 4;
        } else {
            script.now += 9;
        }
        let ack = SegmentBuilder::new(AIR, WIRED).ack(SeqNumber((turn + 1) * 10 * MSS));
        let echo = script.now;
        timed(&mut script, Port::Air, ack, echo);
    }
    let gain = script.observer.gain(Instant::from_millis(script.now));
    assert!((gain.goodput_bps / 8e6 - 1.0).abs() < 0.02, "{gain:?}");
    let path = TcpPath { loss: 0.01, round_trip: 0.109, rate: Some(1_000.0) };
    let model = path.rate_of(f64::from(turns * 10)) * f64::from(MSS) * 8.0;
    assert!((gain.without_bps / model - 1.0).abs() < 0.1, "{gain:?}, {model}");
    assert!(gain.gain.is_some_and(|gain| gain > 5.0), "{gain:?}");
    // Where nothing is lost nothing is gained.
    let mut script = Script::new();
    script.data(0..10).at(10).ack(10, &[]);
    let gain = script.observer.gain(Instant::from_millis(10));
    assert_eq!(gain.gain, Some(1.0), "{gain:?}");
}
