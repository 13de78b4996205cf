//! The error processes against the probabilities that they promise; their models from text.

use super::*;
use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;
use proptest::prelude::*;

const DATA_BITS: u64 = 1500 * 8;
const ACK_BITS: u64 = 40 * 8;
/// 1500 bytes at 20 Mb/s.
const AIRTIME: Duration = Duration::from_micros(600);
const FRAMES: usize = 200_000;

const FADING: ErrorModel = ErrorModel::Fading {
    good: Duration::from_millis(300),
    bad: Duration::from_millis(30),
    bad_loss: 0.5,
    good_ber: 1e-6,
};
/// Fades that lose every frame and no other: the fate is the channel's state.
const SILENCE: ErrorModel = ErrorModel::Fading {
    good: Duration::from_millis(300),
    bad: Duration::from_millis(30),
    bad_loss: 1.0,
    good_ber: 0.0,
};

/// The fates of `count` back-to-back frames.
fn fates(process: &mut dyn ErrorProcess, bits: u64, count: usize) -> Vec<Fate> {
    let mut start = Instant::ZERO;
    let mut next = || {
        let fate = process.draw(start, AIRTIME, bits);
        start += AIRTIME;
        fate
    };
    (0..count).map(|_| next()).collect()
}

fn hits(fates: &[Fate]) -> usize {
    fates.iter().filter(|&&fate| fate != Intact).count()
}

/// Whether `hits` of `count` agree with `probability` within three standard deviations, for trials
/// whose mean has the variance `extra` beyond that of independent ones.
#[track_caller]
fn assert_share(hits: usize, count: usize, probability: f64, extra: f64, what: &str) {
    let share = hits as f64 / count as f64;
    let variance = probability * (1.0 - probability) / count as f64 + extra;
    let sigmas = (share - probability).abs() / libm::sqrt(variance);
    assert!(sigmas <= 3.0, "{what}: {share} is {sigmas} sigmas from {probability}");
}

#[test]
fn measured_errors_meet_the_promise() {
    for seed in 1..=5 {
        for (model, is_lost) in [
            (ErrorModel::Loss(0.01), true),
            (ErrorModel::Loss(0.05), true),
            (ErrorModel::Loss(0.5), true),
            (ErrorModel::Ber(3.8e-6), false),
            (ErrorModel::Ber(1e-5), false),
            (ErrorModel::Ber(1e-3), false),
        ] {
            for bits in [ACK_BITS, DATA_BITS] {
                let fates = fates(&mut *model.process(seed, 0, 0), bits, FRAMES);
                assert!(fates.iter().all(|&f| f == Intact || (f == Lost) == is_lost));
                let what = alloc::format!("{model}, {bits} bits, seed {seed}");
                assert_share(hits(&fates), FRAMES, model.frame_error(bits), 0.0, &what);
            }
        }
    }
}

#[test]
fn measured_fading_meets_the_promise() {
    for seed in 1..=5 {
        let fates = fates(&mut *FADING.process(seed, 0, 0), DATA_BITS, FRAMES);
        // A share of time in a two-state chain over T has the variance 2 g b / ((1/G + 1/B) T).
        let (good, bad) = (300e-3, 30e-3);
        let share = bad / (good + bad);
        let time = AIRTIME.as_secs_f64() * FRAMES as f64;
        let extra = 2.0 * share * (1.0 - share) / ((1.0 / good + 1.0 / bad) * time);
        let loss = fates.iter().filter(|&&fate| fate == Lost).count();
        assert_share(loss, FRAMES, 0.5 * share, 0.25 * extra, "losses");
        let expected = FADING.frame_error(DATA_BITS);
        assert_share(hits(&fates), FRAMES, expected, 0.25 * extra, "all errors");
        assert!(fates.iter().any(|fate| matches!(fate, Damaged(_))));
    }
}

#[test]
fn certain_and_impossible_errors_are_exact() {
    for (model, expected) in [
        (ErrorModel::None, 0.0),
        (ErrorModel::Loss(0.0), 0.0),
        (ErrorModel::Loss(1.0), 1.0),
        (ErrorModel::Ber(0.0), 0.0),
        (ErrorModel::Ber(1.0), 1.0),
        (ErrorModel::Ber(f64::MIN_POSITIVE), 0.0),
        (ErrorModel::Burst { frames: 0, every_bytes: 0 }, 0.0),
        (ErrorModel::Burst { frames: u32::MAX, every_bytes: 0 }, 1.0),
    ] {
        assert!((model.frame_error(ACK_BITS) - expected).abs() < 1e-300, "{model:?}");
        let hits = hits(&fates(&mut *model.process(9, 0, 0), ACK_BITS, 10_000));
        assert_eq!(hits as f64, expected * 10_000.0, "{model:?}");
    }
}

#[test]
fn bit_errors_hit_frames_by_their_length() {
    let model = ErrorModel::Ber(1.0 / 262_144.0);
    // The error of the 1995 paper's 1400-byte packets with headers is near 4.5 %.
    assert!((model.frame_error(DATA_BITS) - 0.0447).abs() < 1e-4);
    assert!((model.frame_error(ACK_BITS) - 0.00122).abs() < 1e-5);
    assert_eq!(model.frame_error(0), 0.0);
    // Bits are bits: data and ACKs in turn are hit as often as the two by themselves.
    let mut process = model.process(4, 0, 0);
    let (mut data, mut acks) = (0, 0);
    for _ in 0..FRAMES {
        data += hits(&[process.draw(Instant::ZERO, AIRTIME, DATA_BITS)]);
        acks += hits(&[process.draw(Instant::ZERO, AIRTIME, ACK_BITS)]);
    }
    assert_share(data, FRAMES, model.frame_error(DATA_BITS), 0.0, "data");
    assert_share(acks, FRAMES, model.frame_error(ACK_BITS), 0.0, "acks");
}

#[test]
fn the_first_wrong_bit_is_as_likely_in_any_place() {
    // Of the damaged frames, as many have a right header as its share of the bits says.
    let (model, header) = (ErrorModel::Ber(1e-4), 160);
    let fates = fates(&mut *model.process(6, 0, 0), DATA_BITS, FRAMES);
    let intact = fates.iter().filter_map(|fate| match fate {
        Damaged(intact) => Some(*intact),
        _ => None,
    });
    let hits = intact.filter(|intact| *intact < header).count();
    assert_share(hits, FRAMES, model.frame_error(header), 0.0, "headers");
}

#[test]
fn bursts_are_exact() {
    let model = ErrorModel::Burst { frames: 4, every_bytes: 64_000 };
    let mut first_bursts = Vec::new();
    for seed in 0..50 {
        let fates = fates(&mut *model.process(seed, 0, 0), 8_000, 6_400);
        assert!(fates.iter().all(|fate| !matches!(fate, Damaged(_))));
        let lost: Vec<usize> = (0..fates.len()).filter(|&i| fates[i] == Lost).collect();
        let first = lost[0];
        // 1000-byte frames: every 64 of them, four in a row (the last burst may be cut short).
        for (i, &number) in lost.iter().enumerate() {
            assert_eq!(number, first + i / 4 * 64 + i % 4, "seed {seed}");
        }
        let share = model.frame_error(8_000) * fates.len() as f64;
        assert!((lost.len() as f64 - share).abs() <= 4.0, "seed {seed}");
        first_bursts.push(first);
    }
    assert!(first_bursts.iter().all(|&first| first < 64));
    first_bursts.sort_unstable();
    first_bursts.dedup();
    assert!(first_bursts.len() > 20, "the first burst's place is random: {first_bursts:?}");
}

#[test]
fn bursts_that_meet_lose_everything() {
    let model = ErrorModel::Burst { frames: 4, every_bytes: 4_000 };
    assert_eq!(model.frame_error(8_008), 1.0);
    let fates = fates(&mut *model.process(3, 0, 0), 8_008, 1_000);
    assert!(fates[4..].iter().all(|&fate| fate == Lost));
}

#[test]
fn fades_do_not_depend_on_traffic_nor_on_direction() {
    for seed in 0..20 {
        let mut dense = SILENCE.process(seed, 0, 0);
        let mut sparse = SILENCE.process(seed, 0, 0);
        let mut back = SILENCE.process(seed, 0, 1);
        let mut states = Vec::new();
        for step in 0..60_000u64 {
            let start = Instant::from_micros(step * 100);
            states.push(dense.draw(start, AIRTIME, DATA_BITS));
            if step % 137 == 0 {
                let state = states[step as usize];
                assert_eq!(sparse.draw(start, Duration::ZERO, ACK_BITS), state, "seed {seed}");
                assert_eq!(back.draw(start, AIRTIME, ACK_BITS), state, "seed {seed}");
            }
        }
        let mut other_link = SILENCE.process(seed, 1, 0);
        let other = fates(&mut *other_link, DATA_BITS, 10_000);
        assert_ne!(other, fates(&mut *SILENCE.process(seed, 0, 0), DATA_BITS, 10_000));
    }
}

#[test]
fn fades_begin_in_the_stationary_distribution_and_last_as_they_should() {
    let seeds = 20_000;
    let at = |time| {
        let bad = |&seed: &u64| SILENCE.process(seed, 0, 0).draw(time, AIRTIME, 1) == Lost;
        (0..seeds as u64).filter(bad).count()
    };
    assert_share(at(Instant::ZERO), seeds, 1.0 / 11.0, 0.0, "at the start");
    assert_share(at(Instant::from_millis(500)), seeds, 1.0 / 11.0, 0.0, "later");

    let mut process = SILENCE.process(5, 0, 0);
    let step = Duration::from_micros(100);
    let (mut bad, mut fades, mut was_bad) = (0u32, 0u32, true);
    for number in 0..10_000_000u64 {
        let is_bad = process.draw(Instant::from_micros(number * 100), step, 1) == Lost;
        bad += u32::from(is_bad);
        fades += u32::from(is_bad && !was_bad);
        was_bad = is_bad;
    }
    // Exponential sojourns deviate by their mean: three sigmas of some 3,000 of them.
    let mean = f64::from(bad) * step.as_secs_f64() / f64::from(fades);
    assert!((mean - 30e-3).abs() < 3.0 * 30e-3 / libm::sqrt(f64::from(fades)), "{mean}");
}

#[test]
fn one_seed_replays_and_directions_differ() {
    for model in [ErrorModel::Loss(0.3), ErrorModel::Ber(1e-4), FADING] {
        let run =
            |seed, direction| fates(&mut *model.process(seed, 0, direction), DATA_BITS, 10_000);
        assert_eq!(run(1, 0), run(1, 0), "{model}");
        assert_ne!(run(1, 0), run(1, 1), "{model}");
        assert_ne!(run(1, 0), run(2, 0), "{model}");
    }
}

#[test]
fn endless_silences_and_absurd_sojourns_end_at_once() {
    let [good, bad] = [Duration::MAX, Duration::MAX];
    for (good, bad) in [(good, bad), (Duration::ZERO, bad), (good, Duration::ZERO)] {
        let model = ErrorModel::Fading { good, bad, bad_loss: 0.5, good_ber: 1e-6 };
        let mut process = model.process(1, 0, 0);
        process.draw(Instant::ZERO, AIRTIME, DATA_BITS);
        process.draw(Instant::from_nanos(u64::MAX), AIRTIME, DATA_BITS);
        assert!((0.0..=1.0).contains(&model.frame_error(DATA_BITS)));
    }
}

#[test]
fn directions_links_and_seeds_err_independently() {
    let model = ErrorModel::Loss(0.5);
    let run = |seed, link, direction| {
        fates(&mut *model.process(seed, link, direction), DATA_BITS, FRAMES)
    };
    for seed in 0..20 {
        let reference = run(seed, 0, 0);
        for (what, other) in [
            ("direction", run(seed, 0, 1)),
            ("link", run(seed, 1, 0)),
            ("seed", run(seed + 1, 0, 0)),
        ] {
            let same = reference.iter().zip(&other).filter(|(a, b)| a == b).count();
            // 60 comparisons: one of them may well pass three sigmas, so allow four.
            let share = same as f64 / FRAMES as f64;
            assert!((share - 0.5).abs() < 4.0 * 0.5 / libm::sqrt(FRAMES as f64), "{what}, {seed}");
        }
    }
}

#[test]
fn reads_error_models() {
    let burst = ErrorModel::Burst { frames: 4, every_bytes: 65_536 };
    assert_eq!(parse_burst("4/64Ki"), Ok(burst));
    assert_eq!(parse_burst("4/65536"), Ok(burst));
    let fading = ErrorModel::Fading {
        good: Duration::from_millis(300),
        bad: Duration::from_millis(30),
        bad_loss: 0.5,
        good_ber: 0.0,
    };
    assert_eq!(parse_fading("good=300ms,bad=30ms,loss=0.5"), Ok(fading));
    let with_ber = parse_fading("loss=50%, ber=1e-6, bad=30ms, good=0.3s").unwrap();
    assert_eq!(with_ber.to_string(), "fading 300ms good, 30ms bad with loss 50 %, ber 1e-6");
}

#[test]
fn writes_error_models() {
    assert_eq!(ErrorModel::Loss(0.05).to_string(), "loss 5 %");
    assert_eq!(ErrorModel::Ber(3.8e-6).to_string(), "ber 3.8e-6");
    let burst = parse_burst("4/64Ki").unwrap();
    assert_eq!(burst.to_string(), "burst of 4 frames every 64KiB");
}

#[test]
fn refuses_error_models_in_one_sentence() {
    for (error, sentence) in [
        (
            parse_burst("0/64Ki").unwrap_err(),
            "burst \"0/64Ki\" must begin with a whole number of frames from 1 to 4294967295, \
             such as 4/64Ki",
        ),
        (
            parse_fading("good=1s,bad=0ms,loss=1").unwrap_err(),
            r#"duration "0ms" must be at least 1us for a fading channel, such as 30ms"#,
        ),
        (
            parse_fading("good=1s,bad=1ms").unwrap_err(),
            "fading \"good=1s,bad=1ms\" must say good=, bad= and loss=, \
             such as good=300ms,bad=30ms,loss=0.5",
        ),
    ] {
        assert_eq!(error.to_string(), sentence);
    }
}

#[test]
fn refuses_absurd_error_models() {
    for text in ["", " ", "-1", "nan", "inf", "infinity", "1e999", "x", "1x", "1,5", "0x10"] {
        assert!(parse_burst(&format!("4/{text}")).is_err(), "4/{text}");
        assert!(parse_burst(&format!("{text}/64k")).is_err(), "{text}/64k");
    }
    assert!(parse_burst("4/0").is_err());
    assert!(parse_burst("4").is_err());
    for text in ["", "good=1s", "good=1s,bad=1s,loss=2", "good=1s,good=1s,bad=1s,loss=1"] {
        assert!(parse_fading(text).is_err(), "{text}");
    }
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in ".{0,12}|[0-9.e+%/=,a-z-]{0,20}") {
        let _ = parse_burst(&text);
        let _ = parse_fading(&text);
    }
}
