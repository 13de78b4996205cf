//! What a gateway says that it gains while it mends, beside the same transfer without it.

use crate::daemon::{Daemon, repairs};
use crate::kit::{Result, has_steady_clock};
use crate::transfer::{Plan, transfer};
use crate::world::{Shape, World};
use std::env;
use std::time::Duration;

const BYTES: u64 = 3_000_000;
/// Milliseconds of wire and of air, one way, and the share of frames that the air loses.
const PATHS: [(u64, u64, f64); 6] =
    [(5, 2, 0.01), (5, 2, 0.03), (40, 2, 0.03), (40, 2, 0.01), (20, 20, 0.03), (5, 70, 0.03)];
/// How many of them are judged without `AIRMEND_WHOLE_TABLE`.
const USUAL: usize = 1;
/// What is told of all transfers is right within this factor of what switching the agent off shows.
/// A transfer alone varies more: 4 to 13 Mb/s at 1 %.
const WITHIN: f64 = 1.3;
/// Transfers over each path where they are judged.
const SEEDS: u64 = 8;

pub(crate) fn gain_told() -> Result {
    let seeds = if has_steady_clock() { SEEDS } else { 1 };
    let mut wrong = Vec::new();
    let count = if env::var_os("AIRMEND_WHOLE_TABLE").is_some() { PATHS.len() } else { USUAL };
    for (wired, air, loss) in PATHS.into_iter().take(count) {
        let mut sums = [0.0; 2];
        for seed in 1..=seeds {
            let [wired_delay, air_delay] = [wired, air].map(Duration::from_millis);
            let shape = Shape { loss, seed, wired_delay, air_delay, ..Shape::default() };
            let [told, seen] = told_and_seen(shape)?;
            // Of the same bytes: mean times, not mean rates.
            sums = [sums[0] + 1.0 / told, sums[1] + 1.0 / seen];
        }
        let ratio = sums[1] / sums[0];
        let line = format!("{wired} + {air} ms, {loss}: told {ratio:.3} times what was seen");
        println!("{line}");
        if !(1.0 / WITHIN..WITHIN).contains(&ratio) {
            wrong.push(line);
        }
    }
    assert!(!has_steady_clock() || wrong.is_empty(), "{wrong:#?}");
    Ok(())
}

/// A transfer's rate without mending: as a gateway tells it that mends, and as it is.
fn told_and_seen(shape: Shape) -> Result<[f64; 2]> {
    let figures = |flags: &[&str]| -> Result<_> {
        let world = World::new(shape)?;
        let daemon = Daemon::start(&world.base, "air0", flags)?;
        let plan = Plan { congestion: Some("cubic"), ..Plan::equal(1, BYTES) };
        transfer(&world, &plan, |_| Ok(()))?;
        daemon.end()
    };
    let (mended, observed) = (figures(&[])?, figures(&["--observe"])?);
    let (gain, without) = (&mended["gain"], &observed["observation"]["goodput_bps"]);
    let figure = |name: &str| gain[name].as_f64().unwrap_or(f64::NAN);
    let [goodput, told] = ["goodput_bps", "without_bps"].map(figure);
    let without = without.as_f64().ok_or("no goodput")?;
    println!("{goodput:.0} b/s mended, without {told:.0} told, {without:.0} seen");
    assert_eq!(gain["flows_seen"], 1);
    assert!(repairs(&mended) > 0 && 0.0 < told && told <= goodput, "{gain}");
    let spent = mended["bytes"]["repairs"].as_u64().ok_or("no bytes")?;
    assert!(spent > 0 && spent < BYTES / 5, "{spent} bytes of repairs");
    Ok([told, without])
}
