//! Flows one after another over the same links, each time with new connections.

use super::transfer::{Carried, MAX_SAMPLES, Plan, Progress, Transfer, TransferReport};
use crate::lab::config::{FIRST_PORT, LabConfig};
use crate::lab::error::LabError;
use crate::lab::session::Session;

/// Runs the transfers of `config`; the first that does not complete is the last.
pub(crate) fn run(
    config: &LabConfig,
    session: &Session<'_>,
    is_over: &dyn Fn() -> bool,
    progress: &mut dyn FnMut(Progress),
) -> Result<TransferReport, LabError> {
    let began = session.clock.now();
    let mut transfer = |round: u32, carried: u64| {
        let mut progress = |now: Progress| {
            let fraction = (f64::from(round) + now.fraction) / f64::from(config.sequential);
            progress(Progress { bytes: carried + now.bytes, fraction });
        };
        let plans = plans(config, session, round);
        Transfer::open(config, session.clock, began, plans)?.run(is_over, &mut progress)
    };
    let mut whole = transfer(0, 0)?;
    for round in 1..config.sequential {
        if !whole.completed {
            break;
        }
        let carried = whole.flows.iter().map(|flow| flow.bytes).sum();
        append(&mut whole, transfer(round, carried)?);
    }
    Ok(whole)
}

/// The flows of a round: the mended ones, dealt to their pairs of hosts in turn, then the others.
fn plans<'a>(
    config: &LabConfig,
    session: &Session<'a>,
    round: u32,
) -> impl Iterator<Item = Plan<'a>> {
    let mended = (0..config.flows).zip(session.mended.iter().copied().cycle());
    let unmended = (config.flows..config.all_flows()).zip(session.unmended.into_iter().cycle());
    let first_stream = round.wrapping_mul(config.all_flows());
    mended.chain(unmended).map(move |(number, endpoints)| Plan {
        number,
        port: FIRST_PORT + number as u16,
        stream: first_stream.wrapping_add(number),
        endpoints,
    })
}

/// Times add up: what lies between two transfers is not counted.
fn append(whole: &mut TransferReport, next: TransferReport) {
    whole.completed = next.completed;
    whole.seconds += next.seconds;
    whole.warm_seconds += next.warm_seconds;
    add(&mut whole.flows, &next.flows);
    add(&mut whole.warm_flows, &next.warm_flows);
    whole.measured.1 = next.measured.1;
    whole.completions.extend(next.completions);
    whole.samples.extend(next.samples);
    whole.samples.truncate(MAX_SAMPLES);
}

fn add(flows: &mut [Carried], next: &[Carried]) {
    for (flow, next) in flows.iter_mut().zip(next) {
        flow.bytes += next.bytes;
        flow.seconds += next.seconds;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airmend_proto::Instant;

    #[test]
    fn times_and_bytes_add_up_and_completions_stay_apart() {
        let report = |bytes, seconds, end| TransferReport {
            completed: true,
            seconds,
            flows: vec![Carried { bytes, seconds }],
            warm_seconds: seconds,
            warm_flows: vec![Carried { bytes, seconds }],
            measured: (Instant::from_millis(end - 10), Instant::from_millis(end)),
            completions: vec![seconds],
            samples: Vec::new(),
        };
        let mut whole = report(10, 0.5, 100);
        append(&mut whole, report(20, 0.25, 300));
        append(&mut whole, TransferReport { completed: false, ..report(5, 1.0, 500) });
        assert!(!whole.completed);
        assert_eq!((whole.seconds, whole.warm_seconds), (1.75, 1.75));
        assert_eq!((whole.flows[0].bytes, whole.warm_flows[0].seconds), (35, 1.75));
        assert_eq!(whole.completions, [0.5, 0.25, 1.0]);
        assert_eq!(whole.measured, (Instant::from_millis(90), Instant::from_millis(500)));
    }
}
