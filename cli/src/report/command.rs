//! The command that reproduces the results, as far as their settings are known.

use super::section::Section;
use airmend_proto::units::{format_rate, format_size};
use serde_json::Value;

/// The command of an experiment; `seed` is that of its first run.
pub(super) fn command(section: &Section, seed: Option<u64>) -> String {
    if section.is_named {
        return format!("airmend sim run experiments/{}.toml", section.name);
    }
    let mut words = vec!["airmend lab compare".to_owned()];
    for (flag, field) in [("agents", "agent"), ("cc", "cc"), ("loss", "loss"), ("ber", "ber")] {
        let mut values: Vec<String> = Vec::new();
        for point in &section.points {
            let value = section.common.get(field).cloned().unwrap_or_else(|| point.value(field));
            let value = match value {
                Value::Null => continue,
                Value::String(text) => text,
                value => value.to_string(),
            };
            if !values.contains(&value) {
                values.push(value);
            }
        }
        if !values.is_empty() {
            words.push(format!("--{flag} {}", values.join(",")));
        }
    }
    if let Some(runs) = section.points.iter().map(|point| point.runs).max() {
        words.push(format!("--repeat {runs}"));
    }
    words.extend(section.common.iter().filter_map(|(name, value)| flag(name, value)));
    words.extend(seed.map(|seed| format!("--seed {seed}")));
    words.push("--json".to_owned());
    words.join(" ")
}

/// The flag of a setting that all runs share.
fn flag(name: &str, value: &Value) -> Option<String> {
    let number = value.as_f64();
    let whole = value.as_u64();
    Some(match name {
        "direction" => format!("--direction {}", value.as_str()?),
        "rate_bps" => format!("--rate {}", format_rate(whole?)),
        "air_delay_ms" => format!("--air-delay {}ms", number?),
        "wired_delay_ms" => format!("--wired-delay {}ms", number?),
        "wired_rate_bps" => format!("--wired-rate {}", format_rate(whole?)),
        "bytes" => format!("--bytes {}", format_size(whole?)),
        "send_seconds" => format!("--seconds {}", number?),
        "flows" => format!("--flows {}", whole?),
        "pairs" => format!("--pairs {}", whole?),
        "short" => format!("--short {}", value.as_str()?),
        "queue_frames" => format!("--queue {}", whole?),
        "window_segments" => {
            format!("--window {}", whole.map_or_else(|| "none".to_owned(), |n| n.to_string()))
        }
        "path" => format!("--path {}", value.as_str()?),
        "place" => format!("--place {}", value.as_str()?),
        "air_queue" => format!("--air-queue {}", value.as_str()?),
        "far_queue" => format!("--far-queue {}", value.as_str()?),
        "far_wired" => format!("--far-wired {}", value.as_str()?),
        "shape" => format!("--shape {}", value.as_str()?),
        "port" => format!("--port {}", value.as_str()?),
        "sack" if value == &Value::Bool(false) => "--no-sack".to_owned(),
        "timestamps" if value == &Value::Bool(false) => "--no-timestamps".to_owned(),
        "ipv6" if value == &Value::Bool(true) => "--ipv6".to_owned(),
        "burst" if value.is_object() => {
            format!("--burst {}/{}", value["frames"], value["every_bytes"])
        }
        "fading" if value.is_object() => format!(
            "--fading good={}ms,bad={}ms,loss={},ber={}",
            value["good_ms"], value["bad_ms"], value["loss"], value["good_ber"]
        ),
        "settings" => {
            let settings = value.as_object()?.iter();
            let flag = |(key, value): (&String, &Value)| {
                format!("--set {key}={}", value.as_str().unwrap_or_default())
            };
            let flags: Vec<String> = settings.map(flag).collect();
            if flags.is_empty() {
                return None;
            }
            flags.join(" ")
        }
        _ => return None,
    })
}
