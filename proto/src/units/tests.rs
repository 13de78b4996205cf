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
        ("8 bit", 8),
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
fn refuses_in_one_sentence() {
    for (error, sentence) in [
        (parse_rate("0bit").unwrap_err(), r#"rate "0bit" must be more than 0, such as 20mbit"#),
        (
            parse_rate("20").unwrap_err(),
            r#"rate "20" must be a number with bit, kbit, mbit or gbit, such as 20mbit"#,
        ),
        (
            parse_rate("20mbps").unwrap_err(),
            r#"rate "20mbps" must be a number with bit, kbit, mbit or gbit, such as 20mbit"#,
        ),
        (
            parse_probability("1.2").unwrap_err(),
            r#"probability "1.2" must lie between 0 and 1, such as 0.05 or 5%"#,
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
    }
    for text in ["40", "ms", "1e30s", "2ms3"] {
        assert!(parse_duration(text).is_err(), "{text}");
    }
    assert!(parse_rate("0.4bit").is_err());
    assert!(parse_ber("1/0").is_err());
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
    }
}
