//! Values from text, and text from values.

use super::*;
use alloc::string::ToString;
use proptest::prelude::*;

#[test]
fn reads_what_people_write() {
    for (text, bps) in [
        ("20mbit", 20_000_000),
        ("1.6mbit", 1_600_000),
        ("500 kbit", 500_000),
        ("1Gbit", 1_000_000_000),
        ("2000000", 2_000_000),
        ("2e6bit", 2_000_000),
    ] {
        assert_eq!(parse_rate(text), Ok(bps), "{text}");
    }
    for (text, micros) in [
        ("2ms", 2_000),
        ("1.5s", 1_500_000),
        ("200us", 200),
        ("200µs", 200),
        ("3min", 180_000_000),
        ("0", 0),
        ("0.1ms", 100),
        ("1h", 3_600_000_000),
    ] {
        assert_eq!(parse_duration(text), Ok(Duration::from_micros(micros)), "{text}");
    }
    for (text, bytes) in [
        ("10MB", 10_000_000),
        ("64k", 64_000),
        ("64KB", 64_000),
        ("64Ki", 65_536),
        ("64KiB", 65_536),
        ("1.5M", 1_500_000),
        ("1500", 1_500),
        ("7 B", 7),
        ("1GiB", 1 << 30),
    ] {
        assert_eq!(parse_size(text), Ok(bytes), "{text}");
    }
    assert_eq!(parse_probability("5%"), Ok(0.05));
    assert_eq!(parse_probability("0.05"), Ok(0.05));
    assert_eq!(parse_probability("1"), Ok(1.0));
    assert_eq!(parse_ber("1e-5"), Ok(1e-5));
    assert_eq!(parse_ber("1/262144"), parse_ber("1/256Ki"));
    assert_eq!(parse_ber("1/100k"), Ok(1e-5));
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
fn refuses_in_one_sentence() {
    for (error, sentence) in [
        (parse_rate("0").unwrap_err(), r#"rate "0" must be more than 0, such as 20mbit"#),
        (
            parse_rate("20mbps").unwrap_err(),
            r#"rate "20mbps" must be a number with bit, kbit, mbit or gbit, such as 20mbit"#,
        ),
        (
            parse_probability("1.2").unwrap_err(),
            r#"probability "1.2" must lie between 0 and 1, such as 0.05 or 5%"#,
        ),
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
fn refuses_everything_absurd() {
    for text in ["", " ", "-1", "nan", "inf", "infinity", "1e999", "x", "1x", "1,5", "0x10"] {
        assert!(parse_rate(text).is_err(), "{text}");
        assert!(parse_rate(&format!("{text}mbit")).is_err(), "{text}mbit");
        assert!(parse_duration(&format!("{text}ms")).is_err(), "{text}ms");
        assert!(parse_size(&format!("{text}k")).is_err(), "{text}k");
        assert!(parse_probability(text).is_err(), "{text}");
        assert!(parse_ber(text).is_err(), "{text}");
        assert!(parse_ber(&format!("1/{text}")).is_err(), "1/{text}");
        assert!(parse_burst(&format!("4/{text}")).is_err(), "4/{text}");
        assert!(parse_burst(&format!("{text}/64k")).is_err(), "{text}/64k");
    }
    for text in ["40", "ms", "1e30s", "2ms3"] {
        assert!(parse_duration(text).is_err(), "{text}");
    }
    assert!(parse_rate("0.4bit").is_err());
    assert!(parse_ber("1/0").is_err());
    assert!(parse_burst("4/0").is_err());
    assert!(parse_burst("4").is_err());
    for text in ["", "good=1s", "good=1s,bad=1s,loss=2", "good=1s,good=1s,bad=1s,loss=1"] {
        assert!(parse_fading(text).is_err(), "{text}");
    }
}

#[test]
fn writes_what_people_read() {
    assert_eq!(format_rate(20_000_000), "20mbit");
    assert_eq!(format_rate(1_600_000), "1.6mbit");
    assert_eq!(format_rate(1), "1bit");
    assert_eq!(format_duration(Duration::from_micros(2_500)), "2.5ms");
    assert_eq!(format_duration(Duration::from_secs(180)), "3min");
    assert_eq!(format_duration(Duration::from_secs(90)), "90s");
    assert_eq!(format_duration(Duration::ZERO), "0s");
    assert_eq!(format_size(10_000_000), "10MB");
    assert_eq!(format_size(65_536), "64KiB");
    assert_eq!(format_size(1_500), "1.5kB");
    assert_eq!(format_probability(0.07), "7 %");
    assert_eq!(format_probability(0.0002), "0.02 %");
    assert_eq!(format_probability(0.0), "0 %");
    assert_eq!(format_ber(1.0 / 262_144.0), "3.81e-6");
    assert_eq!([format_ber(1e-5), format_ber(0.0)], ["1e-5", "0"]);
    assert_eq!(ErrorModel::Loss(0.05).to_string(), "loss 5 %");
    assert_eq!(ErrorModel::Ber(3.8e-6).to_string(), "ber 3.8e-6");
    let burst = parse_burst("4/64Ki").unwrap();
    assert_eq!(burst.to_string(), "burst of 4 frames every 64KiB");
}

proptest! {
    #[test]
    fn what_is_written_reads_back(value in 1u64..1_000_000_000_000) {
        prop_assert_eq!(parse_rate(&format_rate(value)), Ok(value));
        prop_assert_eq!(parse_size(&format_size(value)), Ok(value));
        let time = Duration::from_nanos(value);
        prop_assert_eq!(parse_duration(&format_duration(time)), Ok(time));
    }

    #[test]
    fn any_text_is_read_or_refused(text in ".{0,12}|[0-9.e+%/=,a-z-]{0,20}") {
        let _ = parse_rate(&text);
        let _ = parse_duration(&text);
        let _ = parse_size(&text);
        let _ = parse_probability(&text);
        let _ = parse_ber(&text);
        let _ = parse_burst(&text);
        let _ = parse_fading(&text);
    }
}
