//! Goodput over a pipe of fixed delay and random loss, against the formulas of the field.

use crate::pipe::World;
use airmend_proto::Instant;
use airmend_proto::random::{Purpose, Stream};
use airmend_proto::tcp::{
    Acknowledging, CongestionControl, Estimator, Growth, Profile, Recovery, Retransmission,
};
use std::time::Duration;

const MSS: f64 = 1460.0;
const ROUND_TRIP: f64 = 0.1;
const SECONDS: u64 = 400;

/// A sender that only loss limits, with an ACK for each segment: b = 1 in the formulas.
fn profile(recovery: Recovery, sack: bool) -> Profile {
    Profile {
        recovery,
        sack,
        receive_window: 1 << 24,
        window_scaling: true,
        send_buffer: 1 << 40,
        growth: Growth::PerAck,
        hold_ssthresh: true,
        rto: Retransmission {
            initial: Duration::from_secs(1),
            min: Duration::from_secs(1),
            tick: Duration::ZERO,
            estimator: Estimator::Rfc6298,
            ..Profile::bsd95().rto
        },
        ack: Acknowledging { every: 1, ..Profile::bsd95().ack },
        ..Profile::bsd95()
    }
}

/// Which data segments are lost.
#[derive(Clone, Copy)]
enum Losses {
    /// Each with this probability.
    Random,
    /// One in so many, which is what the response function of CUBIC assumes.
    Periodic,
}

/// Bytes acknowledged in a second when this share of the data segments is lost.
fn goodput(profile: Profile, losses: Losses, loss: f64) -> f64 {
    let mut world = World::new([profile; 2], [1, 1], [1 << 40, 0]);
    let mut random = Stream::new(1, 0, 0, Purpose::Loss);
    let mut segments = 0_u64;
    let limit = Instant::from_millis(SECONDS * 1_000);
    world.run(limit, &mut |_, packet| {
        let is_data = packet.wire_len() > 1_000;
        segments += u64::from(is_data);
        let lost = is_data
            && match losses {
                Losses::Random => random.happens(loss),
                Losses::Periodic => segments.is_multiple_of((1.0 / loss) as u64),
            };
        if lost { vec![] } else { vec![Duration::from_secs_f64(ROUND_TRIP / 2.0)] }
    });
    world.hosts[0].endpoint.acked() as f64 / SECONDS as f64
}

/// Mathis et al. 1997, b = 1.
fn mathis(loss: f64) -> f64 {
    MSS / ROUND_TRIP * (1.5 / loss).sqrt()
}

/// Padhye et al. 1998, eq. 30 with b = 1 and a timeout of 1 s; times 1 − p to count what arrives.
fn pftk(loss: f64) -> f64 {
    let timeouts = (3.0 * (3.0 * loss / 8.0).sqrt()).min(1.0) * loss * (1.0 + 32.0 * loss * loss);
    MSS * (1.0 - loss) / (ROUND_TRIP * (2.0 * loss / 3.0).sqrt() + timeouts)
}

/// RFC 9438 §5.1, in the region where it is not Reno's, for a window of whole segments. A cycle of
/// the cubic function has 0.925 W segments a round trip; it takes K seconds, less the 1.36 s in
/// which the function is within one segment of its plateau: by then the window is there.
fn cubic(loss: f64) -> f64 {
    let (mut low, mut high) = (10.0_f64, 100_000.0_f64);
    while high / low > 1.001 {
        let window = (low * high).sqrt();
        let cycle = (0.3 * window / 0.4).cbrt() - (1.0 / 0.4_f64).cbrt();
        let segments = 0.925 * window * cycle / ROUND_TRIP;
        if segments * loss < 1.0 { low = window } else { high = window }
    }
    0.925 * low * MSS / ROUND_TRIP
}

/// Asserts that measured goodput is within a fifth of what a formula says, loss by loss.
fn compare(name: &str, profile: Profile, losses: Losses, formula: fn(f64) -> f64, at: &[f64]) {
    for &loss in at {
        let ratio = goodput(profile, losses, loss) / formula(loss);
        println!("{name} at {loss}: {ratio:.3} of the formula");
        assert!((ratio - 1.0).abs() < 0.2, "{name} at {loss}: {ratio:.3} of the formula");
    }
}

const LOSSES: [f64; 5] = [0.001, 0.002, 0.005, 0.01, 0.02];

#[test]
fn reno_follows_pftk() {
    compare("reno", profile(Recovery::Reno, false), Losses::Random, pftk, &LOSSES);
}

/// Mathis knows no timeouts, which NewReno and SACK hardly have at these losses.
#[test]
fn newreno_and_sack_follow_mathis() {
    compare("newreno", profile(Recovery::NewReno, false), Losses::Random, mathis, &LOSSES);
    compare("sack", profile(Recovery::NewReno, true), Losses::Random, mathis, &LOSSES);
}

/// From the region of the cubic function to where CUBIC is as fast as Reno. Between them, near
/// 1 in 1000 here, it uses the better of both at each moment and is faster than either formula.
#[test]
fn cubic_follows_its_response_function() {
    let profile = Profile {
        congestion: CongestionControl::Cubic { hystart: false },
        growth: Growth::PerByte,
        ..profile(Recovery::NewReno, true)
    };
    compare("cubic", profile, Losses::Periodic, cubic, &[0.000_02, 0.000_05, 0.000_1, 0.000_2]);
    compare("cubic", profile, Losses::Random, mathis, &LOSSES[1..]);
}

/// A delayed ACK for every second segment halves the growth: b = 2.
#[test]
fn delayed_acks_slow_reno_down_by_the_root_of_two() {
    let each = profile(Recovery::NewReno, false);
    let delayed = Profile { ack: Acknowledging { every: 2, ..each.ack }, ..each };
    let ratio = goodput(each, Losses::Random, 0.002) / goodput(delayed, Losses::Random, 0.002);
    assert!((ratio / 2_f64.sqrt() - 1.0).abs() < 0.1, "{ratio}");
}
