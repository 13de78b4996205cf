//! The channel of 802.11: its times against the closed form and against Bianchi's model, its
//! retries, and the order of what it delivers.
use super::*;
use crate::link::ErrorModel;
use crate::packet::LinkType;
use bytes::Bytes;

const DELAY: Duration = Duration::from_micros(1);

fn params(phy: Phy, rate_mbps: f64) -> DcfParams {
    DcfParams::new(phy, (rate_mbps * 1e6) as u64, DELAY, 1000)
}

/// Station 0 and so many others, each with a pair of its own to station 0.
fn channel(params: DcfParams, others: usize, errors: ErrorModel, seed: u64) -> Dcf {
    let pair = |other| Pair::new([other, 0], [params.delay; 2], [errors; 2], seed, other as u32);
    Dcf::new(params, (1..=others).map(pair).collect())
}

fn packet(bytes: u32) -> Packet {
    Packet::truncated(LinkType::Ip, Bytes::new(), bytes)
}

/// A packet with a number to be recognised by.
fn numbered(number: u32) -> Packet {
    Packet::truncated(LinkType::Ip, Bytes::copy_from_slice(&number.to_be_bytes()), 1500)
}

/// Runs until `end`; stations from 1 on always have packets of `bytes` to send to station 0.
/// Returns how many packets arrived from each.
fn saturate(channel: &mut Dcf, bytes: u32, end: Instant) -> Vec<u64> {
    let mut arrived = vec![0; channel.stations.len()];
    let offer = |channel: &mut Dcf, now: Instant, from: usize| {
        while channel.can_send(now, from) {
            assert!(channel.send(now, from, 0, packet(bytes)));
        }
    };
    for station in 1..channel.stations.len() {
        offer(channel, Instant::ZERO, station);
    }
    while let Some(now) = channel.poll_timeout().filter(|at| *at <= end) {
        channel.handle_timeout(now);
        while let Some(output) = channel.poll_output() {
            match output {
                Output::Delivery { from, .. } => arrived[from] += 1,
                Output::Ready(station) => offer(channel, now, station),
                other => panic!("{other:?}"),
            }
        }
    }
    arrived
}

/// Runs until nothing more happens; returns what arrived and when.
fn finish(channel: &mut Dcf) -> Vec<(Instant, usize, Packet)> {
    let mut log = Vec::new();
    while let Some(now) = channel.poll_timeout() {
        channel.handle_timeout(now);
        while let Some(output) = channel.poll_output() {
            if let Output::Delivery { from, packet, .. } = output {
                log.push((now, from, packet));
            }
        }
    }
    log
}

fn numbers(log: &[(Instant, usize, Packet)]) -> Vec<u32> {
    let number = |packet: &Packet| u32::from_be_bytes(packet.bytes()[..4].try_into().unwrap());
    log.iter().map(|(_, _, packet)| number(packet)).collect()
}

#[test]
fn airtimes_are_those_of_the_standard() {
    // IEEE 802.11b: 192 µs and 1536 bytes at 11 Mb/s; its ACK at 2 Mb/s.
    let dsss = params(Phy::DSSS, 11.0);
    assert_eq!(dsss.data_time(dsss.frame_bits(1500)), Duration::from_nanos(192_000 + 1_117_091));
    assert_eq!(dsss.ack_time(), Duration::from_micros(192 + 56));
    // IEEE 802.11a: 20 µs, and (22 + 12288) bits in symbols of 216; its ACK at 24 Mb/s.
    let ofdm = params(Phy::OFDM, 54.0);
    assert_eq!(ofdm.data_time(ofdm.frame_bits(1500)), Duration::from_micros(20 + 57 * 4));
    assert_eq!(ofdm.ack_time(), Duration::from_micros(20 + 2 * 4));
    assert_eq!(ofdm.phy.difs(), Duration::from_micros(34));
    // At 9 Mb/s the highest basic rate that is not above is 6 Mb/s.
    assert_eq!(params(Phy::OFDM, 9.0).ack_time(), Duration::from_micros(20 + 6 * 4));
    // The radio of S3-11.
    let fhss = params(Phy::FHSS, 1.0);
    assert_eq!(fhss.data_time(fhss.frame_bits(2304)), Duration::from_micros(128 + 8 * 2340));
}

#[test]
fn a_packet_on_an_idle_channel_leaves_at_once() {
    let params = params(Phy::DSSS, 11.0);
    let mut channel = channel(params, 1, ErrorModel::None, 1);
    let now = Instant::from_millis(5);
    assert!(channel.send(now, 1, 0, numbered(7)));
    let log = finish(&mut channel);
    let airtime = params.data_time(params.frame_bits(1500));
    assert_eq!(log[0].0, now + airtime + DELAY);
    assert_eq!(channel.counters(1, 0).busy, airtime);
}

#[test]
fn one_station_has_the_throughput_of_the_closed_form() {
    for (phy, mbps, frames) in [
        (Phy::FHSS, 1.0, 1),
        (Phy::FHSS, 2.0, 1),
        (Phy::DSSS, 1.0, 1),
        (Phy::DSSS, 11.0, 1),
        (Phy::OFDM, 6.0, 1),
        (Phy::OFDM, 54.0, 1),
        (Phy::HT, 65.0, 28),
        (Phy::HT, 866.7, 64),
    ] {
        for rts_threshold in [None, Some(500)] {
            let params = DcfParams { rts_threshold, ..params(phy, mbps) };
            let end = Instant::ZERO + params.mean_exchange(1500, frames, 1) * 4000;
            let mut channel = channel(params, 1, ErrorModel::None, 3);
            let arrived = saturate(&mut channel, 1500, end)[1] as f64;
            let expected = 4000.0 * f64::from(frames);
            let ratio = arrived / expected;
            assert!((ratio - 1.0).abs() < 0.02, "{} {mbps} {rts_threshold:?}: {ratio}", phy.name);
        }
    }
}

#[test]
fn saturation_throughput_is_that_of_bianchi() {
    for (phy, mbps) in [(Phy::FHSS, 1.0), (Phy::DSSS, 11.0), (Phy::OFDM, 54.0)] {
        for rts_threshold in [None, Some(500)] {
            for stations in [1, 2, 3, 5, 10, 15, 20] {
                let params = DcfParams { rts_threshold, ..params(phy, mbps) };
                let rate = 1.0 / params.mean_exchange(1500, 1, stations).as_secs_f64();
                let seconds = 8000.0 / rate;
                let end = Instant::from_nanos((seconds * 1e9) as u64);
                let mut channel = channel(params, stations as usize, ErrorModel::None, 5);
                let arrived = saturate(&mut channel, 1500, end).iter().sum::<u64>() as f64;
                let ratio = arrived / seconds / rate;
                assert!(
                    (ratio - 1.0).abs() < 0.05,
                    "{stations} stations, {} {mbps} Mb/s, RTS {rts_threshold:?}: {ratio:.3}",
                    phy.name
                );
            }
        }
    }
}

/// A frame is lost for good if all of its transmissions are.
#[test]
fn what_is_left_after_the_retries_is_the_power_of_the_loss() {
    for (retries, loss) in [(0, 0.3), (1, 0.3), (3, 0.5)] {
        let params = DcfParams { retries, ..params(Phy::OFDM, 54.0) };
        let mut channel = channel(params, 1, ErrorModel::Loss(loss), 2);
        let arrived = saturate(&mut channel, 1500, Instant::from_millis(10_000))[1];
        let counters = channel.counters(1, 0);
        let residual = counters.given_up as f64 / (counters.given_up + arrived) as f64;
        let expected = loss.powi(retries as i32 + 1);
        assert!((residual / expected - 1.0).abs() < 0.1, "{retries}: {residual} {expected}");
        assert!((counters.lost as f64 / counters.frames as f64 / loss - 1.0).abs() < 0.05);
    }
}

/// An ACK that is lost makes the sender send again, and the receiver drop the copy.
#[test]
fn frames_whose_acknowledgments_are_lost_arrive_once() {
    for phy in [Phy::DSSS, Phy::HT] {
        let params = DcfParams { retries: 100, ..params(phy, 11.0) };
        // Half of the ACKs, and next to no data in the other direction, where errors are apart.
        let ber = ErrorModel::Ber(1.0 - 0.5f64.powf(1.0 / params.ack_bits() as f64));
        let pair = Pair::new([1, 0], [DELAY; 2], [ErrorModel::None, ber], 4, 0);
        let mut channel = Dcf::new(params, vec![pair]);
        for number in 0..500 {
            assert!(channel.send(Instant::ZERO, 1, 0, numbered(number)));
        }
        let log = finish(&mut channel);
        assert_eq!(numbers(&log), (0..500).collect::<Vec<_>>());
        assert!(channel.counters(1, 0).frames > 700, "{:?}", channel.counters(1, 0));
        assert_eq!(channel.counters(1, 0).given_up, 0);
    }
}

/// Frames of an aggregate fail one by one, and leave the receiver in order; what is given up does
/// not hold up the others.
#[test]
fn aggregates_with_errors_arrive_in_order() {
    for (retries, loss, seed) in [(100, 0.4, 1), (1, 0.4, 2), (0, 0.2, 3)] {
        let params = DcfParams { retries, queue_frames: 5000, ..params(Phy::HT, 65.0) };
        let mut channel = channel(params, 2, ErrorModel::Loss(loss), seed);
        for number in 0..4000 {
            assert!(channel.send(Instant::ZERO, 0, 1 + number as usize % 2, numbered(number)));
        }
        let log = finish(&mut channel);
        for receiver in 0..2 {
            let of_receiver = |number: &u32| number % 2 == receiver;
            assert!(numbers(&log).into_iter().filter(of_receiver).is_sorted());
        }
        let expected = 4000.0 * (1.0 - f64::powi(loss, retries as i32 + 1));
        assert!((log.len() as f64 / expected - 1.0).abs() < 0.05, "{} {expected}", log.len());
    }
}

#[test]
fn a_receiver_waits_for_a_missing_frame_for_its_lifetime() {
    let params = DcfParams {
        retries: 100,
        receive_lifetime: Duration::from_millis(20),
        ..params(Phy::HT, 65.0)
    };
    let mut order = Order::default();
    let mut left = Vec::new();
    let at = Instant::from_millis;
    order.take(at(1), 1, Some(numbered(1)), |packet| left.push(packet));
    order.take(at(2), 2, Some(numbered(2)), |packet| left.push(packet));
    assert!(left.is_empty());
    assert_eq!(order.expires_at(params.receive_lifetime), Some(at(21)));
    order.expire(at(20), params.receive_lifetime, |packet| left.push(packet));
    assert!(left.is_empty());
    order.expire(at(21), params.receive_lifetime, |packet| left.push(packet));
    assert_eq!(left.len(), 2);
    // The missing one comes too late.
    order.take(at(22), 0, Some(numbered(0)), |packet| left.push(packet));
    order.take(at(22), 3, Some(numbered(3)), |packet| left.push(packet));
    assert_eq!(left.len(), 3);
}

#[test]
fn the_buffer_is_bounded_in_frames_and_in_bits() {
    for (queue_frames, queue_bits, accepted) in [(10, u64::MAX, 10), (100, 256_000, 21)] {
        let params = DcfParams { queue_frames, queue_bits, ..params(Phy::FHSS, 1.0) };
        let mut channel = channel(params, 1, ErrorModel::None, 1);
        let taken =
            (0..50).filter(|number| channel.send(Instant::ZERO, 1, 0, numbered(*number))).count();
        assert_eq!(taken, accepted);
        assert_eq!(channel.counters(1, 0).dropped, 50 - accepted as u64);
        assert_eq!(finish(&mut channel).len(), accepted);
        assert!(channel.send(Instant::from_millis(100_000), 1, 0, numbered(51)));
    }
}

/// Stations with as much to send have as much of the air, whatever their number.
#[test]
fn saturated_stations_share_alike() {
    let mut channel = channel(params(Phy::DSSS, 11.0), 8, ErrorModel::None, 9);
    let arrived = saturate(&mut channel, 1500, Instant::from_millis(60_000));
    let mean = arrived.iter().sum::<u64>() as f64 / 8.0;
    let fair = arrived[1..].iter().all(|count| (*count as f64 / mean - 1.0).abs() < 0.1);
    assert!(fair, "{arrived:?}");
    let collided: u64 = (1..=8).map(|station| channel.counters(station, 0).collided).sum();
    assert!(collided > 0);
}

#[test]
fn one_seed_replays() {
    let run = |seed| {
        let mut channel = channel(params(Phy::OFDM, 54.0), 5, ErrorModel::Ber(1e-5), seed);
        let arrived = saturate(&mut channel, 1500, Instant::from_millis(2000));
        (arrived, channel.counters(1, 0))
    };
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
}
