//! Numbers and settings in words, for people.

use airmend_live::lab::config::{AirQueue, Amount, Hop, LabConfig, Path, Place};
use airmend_proto::link::ErrorModel;
use airmend_proto::units::{format_ber, format_probability};
use std::time::Duration;

/// A rate in Mb/s with two to four significant places: `17.35 Mb/s`.
pub(crate) fn rate(bps: f64) -> String {
    format!("{} Mb/s", significant(bps / 1e6))
}

/// A share in percent: `95.4 %`.
pub(crate) fn percent(share: f64) -> String {
    format!("{} %", trim(format!("{:.1}", share * 100.0)))
}

/// Four significant figures at most, at least two decimals below 100: `0.0412`, `3.20`, `145.2`.
pub(crate) fn significant(value: f64) -> String {
    let decimals = match value.abs() {
        v if v >= 1000.0 => 0,
        v if v >= 100.0 => 1,
        v if v >= 1.0 || v == 0.0 => 2,
        v if v >= 0.1 => 3,
        _ => 4,
    };
    format!("{value:.decimals$}")
}

/// Thousands apart: `1,204`.
pub(crate) fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number and its noun: `1 timeout`, `2 timeouts`.
pub(crate) fn counted(value: u64, singular: &str) -> String {
    format!("{} {singular}{}", count(value), if value == 1 { "" } else { "s" })
}

/// Decimal multiples of a byte: `10 MB`.
pub(crate) fn bytes(value: u64) -> String {
    let (divisor, unit) = match value {
        1_000_000_000.. => (1e9, "GB"),
        1_000_000.. => (1e6, "MB"),
        1_000.. => (1e3, "kB"),
        _ => (1.0, "bytes"),
    };
    format!("{} {unit}", trim(format!("{:.2}", value as f64 / divisor)))
}

/// A delay: `2 ms`, `1.5 s`.
pub(crate) fn duration(value: Duration) -> String {
    let seconds = value.as_secs_f64();
    let (number, unit) = match seconds {
        s if s >= 1.0 => (s, "s"),
        s if s >= 1e-3 => (s * 1e3, "ms"),
        s => (s * 1e6, "µs"),
    };
    format!("{} {unit}", trim(format!("{number:.3}")))
}

/// Microseconds as a delay.
pub(crate) fn micros(value: u64) -> String {
    duration(Duration::from_micros(value))
}

/// The error process of the air: `5 % loss each way`.
pub(crate) fn errors(model: &ErrorModel) -> String {
    match *model {
        ErrorModel::None => "no loss".into(),
        ErrorModel::Loss(0.0) | ErrorModel::Ber(0.0) => "no loss".into(),
        ErrorModel::Loss(p) => format!("{} loss each way", format_probability(p)),
        ErrorModel::Ber(p) => format!("bit error rate {} each way", format_ber(p)),
        model => model.to_string(),
    }
}

/// The transfer and its hosts: `reno without SACK, 10 MB down`.
pub(crate) fn transfer(config: &LabConfig) -> String {
    let mut text = config.cc.name().to_owned();
    match (config.sack, config.timestamps) {
        (true, true) => {}
        (false, true) => text.push_str(" without SACK"),
        (true, false) => text.push_str(" without timestamps"),
        (false, false) => text.push_str(" without SACK and timestamps"),
    }
    let amount = match config.amount {
        Amount::Bytes(amount) => bytes(amount),
        Amount::Time(time) => duration(time),
    };
    let each = match (config.flows, config.unmended_flows) {
        (1, 0) => String::new(),
        (flows, 0) => format!("{flows} flows of "),
        (flows, more) => format!("{} and {more} unmended of ", counted(flows.into(), "flow")),
    };
    text.push_str(&format!(", {each}{amount} {}", config.direction.name()));
    if config.pairs > 1 {
        text.push_str(&format!(", {} pairs of hosts", config.pairs));
    }
    if let Some(short) = config.short {
        let (bytes, pause) = (bytes(short.bytes), duration(short.pause));
        text.push_str(&format!(", beside short flows of {bytes}, {pause} apart"));
    }
    if config.sequential > 1 {
        text.push_str(&format!(", {} times in sequence", config.sequential));
    }
    if config.warmup > Duration::ZERO {
        text.push_str(&format!(", the first {} not counted", duration(config.warmup)));
    }
    if config.ipv6 {
        text.push_str(", IPv6");
    }
    match config.path {
        Path::Inline => {}
        Path::Kernel => text.push_str(", kernel forwarding"),
        Path::Gateway => text.push_str(", gateway beside the kernel"),
    }
    match config.place {
        Place::Base => {}
        Place::Mobile => text.push_str(", agent in the mobile host"),
        Place::Both => text.push_str(", agents at both ends of the air"),
    }
    if let Some(plan) = config.handoff {
        let (stations, every) = (plan.stations, duration(plan.every));
        text.push_str(&format!(", {stations} base stations, a move every {every}"));
        text.push_str(match (plan.has_state, plan.ahead.is_zero()) {
            (false, _) => " without handoff",
            (true, true) => " without priming",
            (true, false) => "",
        });
        if !plan.outage.is_zero() {
            text.push_str(&format!(", {} without a link", duration(plan.outage)));
        }
    }
    text
}

/// Both hops: `air 20 Mb/s, 2 ms, queue 100 · wired 100 Mb/s, 40 ms · window 100`.
pub(crate) fn hops(config: &LabConfig) -> String {
    let hop = |hop: &Hop| {
        let mbps = trim(format!("{:.3}", hop.rate_bps as f64 / 1e6));
        format!("{mbps} Mb/s, {}", duration(hop.delay))
    };
    let wired_queue = match config.wired_queue_frames {
        usual if usual == LabConfig::default().wired_queue_frames => String::new(),
        frames => format!(", queue {frames}"),
    };
    let radios = if config.turnaround.is_some() { " half duplex" } else { "" };
    let queue = match config.air_queue {
        AirQueue::FastBand => String::new(),
        other => format!(" {}", other.name()),
    };
    let modem = config.far_queue.map_or_else(String::new, |far| format!(" behind a modem's {far}"));
    let shape = config.shape.map_or_else(String::new, |shape| format!(", shaped to {shape}"));
    let far = config.far_wired.zip(config.far_hop()).map(|(far, far_hop)| {
        let lost =
            if far.loss > 0.0 { format!(", {} lost", percent(far.loss)) } else { String::new() };
        format!(" · wired beyond the air {}{lost}", hop(&far_hop))
    });
    let far = far.unwrap_or_default();
    let air = match &config.trace {
        Some(trace) => format!("of {}, on average {}", trace.name, hop(&config.air)),
        None => hop(&config.air),
    };
    format!(
        "air {air}{radios}{modem}{shape}, queue{queue} {} · wired {}{wired_queue}{far} · window {}",
        config.queue_frames,
        hop(&config.wired),
        config.window_segments.map_or_else(|| "tuned".to_owned(), |n| n.to_string())
    )
}

/// Without zeros at the end of the decimals.
fn trim(number: String) -> String {
    if number.contains('.') {
        number.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        number
    }
}

/// One error in so many bits where that is a round number, and the rate itself otherwise.
pub(crate) fn bit_errors(ber: f64) -> String {
    let kilobits = 1.0 / ber / 1024.0;
    let is_round = kilobits >= 0.99 && (kilobits - kilobits.round()).abs() < 1e-6;
    if is_round { format!("1/{kilobits:.0}Ki") } else { format_ber(ber) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmend_live::lab::config::{Direction, FarQueue};

    #[test]
    fn what_a_set_up_adds_is_said() {
        let plain = LabConfig::default();
        assert_eq!(transfer(&plain), "cubic, 10 MB down");
        let short = LabConfig { sequential: 20, unmended_flows: 1, ..plain.clone() };
        assert_eq!(
            transfer(&short),
            "cubic, 1 flow and 1 unmended of 10 MB down, 20 times in sequence"
        );
        let (minute, warmup) = (Duration::from_secs(60), Duration::from_secs(10));
        let timed = LabConfig { amount: Amount::Time(minute), warmup, ..plain.clone() };
        assert_eq!(transfer(&timed), "cubic, 60 s down, the first 10 s not counted");
        let short = "10kB,50ms".parse().ok();
        let beside = LabConfig { flows: 5, pairs: 2, short, ..plain.clone() };
        let pairs = "cubic, 5 flows of 10 MB down, 2 pairs of hosts";
        let short = ", beside short flows of 10 kB, 50 ms apart";
        assert_eq!(transfer(&beside), format!("{pairs}{short}"));
        let (place, direction) = (Place::Mobile, Direction::Up);
        let upload = LabConfig { place, direction, ..plain.clone() };
        assert_eq!(transfer(&upload), "cubic, 10 MB up, agent in the mobile host");
        let far = LabConfig { wired_queue_frames: 43, ..plain };
        assert!(hops(&far).ends_with("40 ms, queue 43 · window tuned"), "{}", hops(&far));
        let modem = LabConfig { far_queue: Some(FarQueue::Fifo(35)), ..far };
        assert!(hops(&modem).starts_with("air 20 Mb/s, 2 ms behind a modem's 35, queue"));
        let backbone = LabConfig { far_wired: "10mbit,5ms,1%".parse().ok(), ..modem };
        assert!(hops(&backbone).contains("· wired beyond the air 10 Mb/s, 5 ms, 1 % lost · "));
    }

    #[test]
    fn numbers_read_as_people_write_them() {
        assert_eq!(rate(17_354_000.0), "17.35 Mb/s");
        assert_eq!(rate(41_200.0), "0.0412 Mb/s");
        assert_eq!(percent(0.954), "95.4 %");
        assert_eq!(percent(1.0), "100 %");
        assert_eq!([count(7), count(1204), count(1_000_000)], ["7", "1,204", "1,000,000"]);
        assert_eq!(counted(1, "timeout"), "1 timeout");
        assert_eq!(counted(0, "timeout"), "0 timeouts");
        assert_eq!(bytes(10_000_000), "10 MB");
        assert_eq!(duration(Duration::from_micros(2_500)), "2.5 ms");
    }

    #[test]
    fn error_rates_are_told_as_they_were_set() {
        assert_eq!(bit_errors(1.0 / 262_144.0), "1/256Ki");
        assert_eq!(bit_errors(1e-6), "1e-6");
        assert_eq!(bit_errors(0.0), "0");
    }
}
