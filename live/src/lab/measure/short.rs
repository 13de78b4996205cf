//! Short flows one after another beside the others, between the hosts of each pair.

use super::transfer::{Plan, Transfer};
use crate::clock::Clock;
use crate::lab::config::{Amount, LabConfig, SHORT_PORT};
use crate::lab::error::LabError;
use crate::lab::outcome::ShortFlows;
use crate::lab::session::{Endpoints, OnDrop, Session};
use airmend_proto::Instant;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// The interval at which a pause is checked for the end of the run.
const PATIENCE: Duration = Duration::from_millis(20);
/// The streams of short flows have numbers from here on.
const FIRST_STREAM: u32 = 1 << 31;

/// Does `work`, and carries short flows between the hosts of every mended pair meanwhile if
/// `config` asks for them. What fails there is told when `work` is done.
pub(crate) fn with_short_flows<T>(
    config: &LabConfig,
    session: &Session<'_>,
    work: impl FnOnce() -> Result<T, LabError>,
) -> Result<(T, Option<ShortFlows>), LabError> {
    let Some(short) = config.short else {
        return Ok((work()?, None));
    };
    let began = session.clock.now();
    let each =
        LabConfig { amount: Amount::Bytes(short.bytes), warmup: Duration::ZERO, ..config.clone() };
    let chain = Chain {
        config: &each,
        clock: session.clock,
        began,
        counted_from: began + config.warmup,
        pause: short.pause,
        is_done: &AtomicBool::new(false),
    };
    thread::scope(|scope| {
        let done = OnDrop(|| chain.is_done.store(true, Ordering::Relaxed));
        let chains = (0..).zip(session.mended);
        let chains = chains.map(|(pair, hosts)| scope.spawn(move || chain.run(pair, *hosts)));
        let chains: Vec<_> = chains.collect();
        let result = work();
        drop(done);
        let mut flows = Vec::new();
        for chain in chains {
            flows.extend(chain.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
        }
        Ok((result?, Some(summary(&flows))))
    })
}

/// One short flow that is counted.
#[derive(Clone, Copy)]
enum ShortFlow {
    /// From its `connect` to its last byte, in seconds.
    Complete(f64),
    /// It had taken this long when the run ended.
    CutOff(f64),
}

/// Short flows that follow each other.
#[derive(Clone, Copy)]
struct Chain<'a> {
    /// That of one short flow.
    config: &'a LabConfig,
    clock: Clock,
    began: Instant,
    /// What begins before this time is not counted.
    counted_from: Instant,
    pause: Duration,
    is_done: &'a AtomicBool,
}

impl Chain<'_> {
    /// Carries one flow after another until the run is over.
    fn run(self, pair: u32, endpoints: Endpoints<'_>) -> Result<Vec<ShortFlow>, LabError> {
        let number = self.config.all_flows() + pair;
        let mut flows = Vec::new();
        let mut stream = FIRST_STREAM.wrapping_add(pair);
        while !self.is_done.load(Ordering::Relaxed) {
            let begins = self.clock.now();
            let plan = Plan { number, port: SHORT_PORT, stream, endpoints };
            let transfer = Transfer::open(self.config, self.clock, self.began, [plan])?;
            let is_over = || self.is_done.load(Ordering::Relaxed);
            let report = transfer.run(&is_over, &mut |_| ())?;
            if begins >= self.counted_from {
                let complete = report.completions.first().copied().map(ShortFlow::Complete);
                flows.push(complete.unwrap_or(ShortFlow::CutOff(report.seconds)));
            }
            if !report.completed {
                break;
            }
            stream = stream.wrapping_add(self.config.pairs);
            self.rest();
        }
        Ok(flows)
    }

    /// Waits for the next flow's turn, or for the end of the run.
    fn rest(&self) {
        let next = self.clock.now() + self.pause;
        while self.clock.now() < next && !self.is_done.load(Ordering::Relaxed) {
            thread::sleep(self.clock.until(next).min(PATIENCE));
        }
    }
}

/// A flow that the end has cut off is overdue if it took longer than any that completed; of others
/// nobody knows what they would have taken.
fn summary(flows: &[ShortFlow]) -> ShortFlows {
    let complete = flows.iter().filter_map(|flow| match flow {
        ShortFlow::Complete(seconds) => Some(*seconds),
        ShortFlow::CutOff(_) => None,
    });
    let completion_seconds: Vec<f64> = complete.collect();
    let longest = completion_seconds.iter().copied().fold(0.0, f64::max);
    let is_overdue = |flow: &&ShortFlow| matches!(flow, ShortFlow::CutOff(s) if *s > longest);
    let overdue = flows.iter().filter(is_overdue).count() as u64;
    ShortFlows { completion_seconds, overdue }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_off_is_overdue_once_it_took_longer_than_all_others() {
        use ShortFlow::{Complete, CutOff};
        let flows = summary(&[Complete(0.2), CutOff(0.3), Complete(0.4), CutOff(0.5)]);
        assert_eq!((flows.completion_seconds, flows.overdue), (vec![0.2, 0.4], 1));
        assert_eq!(summary(&[CutOff(0.1)]).overdue, 1);
        assert_eq!(summary(&[]).overdue, 0);
    }
}
