//! `make soak`: short and long transfers come and go for an hour, and memory stays flat.

use crate::daemon::{Daemon, repairs};
use crate::kit::Result;
use crate::transfer::{Plan, transfer};
use crate::world::{Shape, World};
use std::time::{Duration, Instant};

/// For how many minutes; without it there is no soak.
pub(crate) const VARIABLE: &str = "SOAK_MINUTES";
/// By how much memory may grow between the second quarter and the last.
const GROWTH: f64 = 1.1;
/// A table of all flows that a gateway may have is as large as its limit from the beginning, but a
/// page of it becomes memory with the first flow there. A small table has none left after a minute.
const LIMITS: [&str; 2] = ["--limit-flows", "1000"];

pub(crate) fn soak() -> Result {
    let minutes: f64 = std::env::var(VARIABLE)?.parse()?;
    let world = World::new(Shape::default())?;
    let daemon = Daemon::start(&world.base, "air0", &LIMITS)?;
    let begin = Instant::now();
    let mut samples = Vec::new();
    while begin.elapsed() < Duration::from_secs_f64(60.0 * minutes) {
        transfer(&world, &Plan::mixed(), |_| Ok(()))?;
        samples.push(daemon.memory()?);
        let (status, seconds) = (daemon.status()?, begin.elapsed().as_secs());
        println!(
            "{seconds} s: {} kB, {} flows, {} opened, {} repairs",
            samples.last().unwrap_or(&0) >> 10,
            status["flows"],
            status["counters"]["flows_opened"],
            repairs(&status),
        );
        assert_eq!(status["counters"]["agent_panics"], 0);
    }
    let quarter = samples.len() / 4;
    let median = |quarters: &[u64]| {
        let mut sorted = quarters.to_vec();
        sorted.sort_unstable();
        sorted.get(sorted.len() / 2).copied().unwrap_or(0)
    };
    let second = median(&samples[quarter..2 * quarter]);
    let last = median(&samples[samples.len() - quarter..]);
    println!("memory: {} kB in the second quarter, {} kB in the last", second >> 10, last >> 10);
    assert!(quarter > 0, "too few rounds to tell");
    assert!(last as f64 <= second as f64 * GROWTH, "memory grows: {second} to {last} bytes");
    daemon.end()?;
    Ok(())
}
