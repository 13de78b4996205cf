//! The observation of a gateway, for people.

use crate::table;
use crate::text::{count, counted, percent, rate, significant};
use airmend_live::gateway::observe::{CapacityFrom, Limit, Observation, ObservedFlow};

/// Flows that are listed; JSON names more.
const FLOWS: usize = 20;

/// The observation in lines, each with its name.
pub(crate) fn lines(observed: &Observation) -> Vec<(&'static str, String)> {
    let now = format!(
        "{} of goodput, in {} s in which there was something to send",
        rate(observed.goodput_bps),
        significant(observed.busy_seconds)
    );
    let loss = match (observed.air_loss, observed.air_frames) {
        (_, 0) => "nothing sent".to_owned(),
        (None, _) => "loss unknown: nothing is acknowledged here".to_owned(),
        (Some(loss), frames) => {
            let (lost, all) = (count(observed.air_losses), count(frames));
            format!("{} loss: {lost} of {all} frames, which would be repaired", percent(loss))
        }
    };
    let senders = format!(
        "{} of these losses would be suppressed or edited, {} saved",
        counted(observed.hidden_acks, "ACK"),
        counted(observed.timeouts, "timeout"),
    );
    vec![
        ("now", now),
        ("mended", mended(observed)),
        ("air", format!("{}; {loss}", capacity(observed))),
        ("senders", senders),
    ]
}

/// The flows that would gain, as a table; `None` if none would.
pub(crate) fn flows(observed: &Observation) -> Option<String> {
    let gains = |flow: &&ObservedFlow| flow.estimate_bps > flow.goodput_bps;
    let rows: Vec<_> = observed.flows.iter().filter(gains).take(FLOWS).map(row).collect();
    let header = ["fixed host", "mobile", "now", "mended", "limited by", "loss", "air RTT"];
    (!rows.is_empty()).then(|| table::render(&header.map(str::to_owned), &rows, 2))
}

/// `about 18.00 Mb/s (12.00 Mb/s to 18.00 Mb/s), 20.00 times as much`.
pub(crate) fn mended(observed: &Observation) -> String {
    let Some(gain) = observed.gain else { return "nothing to say yet".to_owned() };
    let (low, high) = (observed.estimate_low_bps, observed.estimate_high_bps);
    let range = match high > 1.02 * low {
        true => format!(" ({} to {})", rate(low), rate(high)),
        false => String::new(),
    };
    let least = match observed.capacity_from {
        CapacityFrom::Unknown => {
            return "unknown, since the rate of the air is unknown: give --air-rate".to_owned();
        }
        CapacityFrom::Measured if observed.air_losses > 0 => "perhaps ",
        _ => "about ",
    };
    format!("{least}{}{range}, {} times as much", rate(observed.estimate_bps), significant(gain))
}

fn capacity(observed: &Observation) -> String {
    let Some(capacity) = observed.capacity_bps else { return "rate unknown".to_owned() };
    let who = match observed.capacity_from {
        CapacityFrom::Configured => "as configured",
        CapacityFrom::Shaper => "as its queue is shaped",
        CapacityFrom::Measured | CapacityFrom::Unknown => "by its fastest train of frames",
    };
    format!("{} {who}", rate(capacity))
}

fn row(flow: &ObservedFlow) -> Vec<String> {
    let known = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    vec![
        flow.wired.clone(),
        flow.air.clone(),
        rate(flow.goodput_bps),
        rate(flow.estimate_bps),
        limit(flow.limit).to_owned(),
        known(flow.air_loss.map(percent)),
        known(flow.air_rtt_ms.map(|rtt| significant(rtt) + " ms")),
    ]
}

/// What would limit a flow.
pub(crate) fn limit(limit: Limit) -> &'static str {
    match limit {
        Limit::Unknown => "unknown",
        Limit::Air => "the air",
        Limit::ResidualLoss => "other losses",
        Limit::Window => "window",
        Limit::Application => "application",
        Limit::Elsewhere => "something else",
        Limit::NoLoss => "no loss",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observation() -> Observation {
        Observation {
            busy_seconds: 10.0,
            goodput_bps: 0.9e6,
            estimate_bps: 18e6,
            estimate_low_bps: 12e6,
            estimate_high_bps: 18e6,
            gain: Some(20.0),
            capacity_bps: Some(20e6),
            capacity_from: CapacityFrom::Shaper,
            air_frames: 775,
            air_losses: 34,
            air_loss: Some(0.044),
            hidden_acks: 183,
            timeouts: 1,
            flows: vec![ObservedFlow {
                wired: "10.0.0.1:80".into(),
                goodput_bps: 0.9e6,
                estimate_bps: 18e6,
                limit: Limit::Air,
                ..ObservedFlow::default()
            }],
            ..Observation::default()
        }
    }

    fn line(observed: &Observation, name: &str) -> String {
        let found = lines(observed).into_iter().find(|(found, _)| *found == name);
        found.map(|(_, words)| words).unwrap_or_default()
    }

    #[test]
    fn the_gain_is_said_with_what_it_rests_on() {
        let mut observed = observation();
        let words = "about 18.00 Mb/s (12.00 Mb/s to 18.00 Mb/s), 20.00 times as much";
        assert_eq!(line(&observed, "mended"), words);
        let words = "20.00 Mb/s as its queue is shaped; 4.4 % loss: 34 of 775 frames, which would \
                     be repaired";
        assert_eq!(line(&observed, "air"), words);
        assert!(flows(&observed).unwrap().contains("the air"));
        observed.capacity_from = CapacityFrom::Measured;
        assert!(line(&observed, "mended").starts_with("perhaps 18.00 Mb/s"));
        observed.capacity_from = CapacityFrom::Unknown;
        assert!(line(&observed, "mended").contains("--air-rate"));
        assert_eq!(line(&Observation::default(), "mended"), "nothing to say yet");
        observed.air_loss = None;
        assert!(line(&observed, "air").ends_with("loss unknown: nothing is acknowledged here"));
        assert_eq!(flows(&Observation::default()), None);
    }
}
