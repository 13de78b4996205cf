//! One mobile host whose packets take more time than there is, beside one that is mended.

use crate::cable::End;
use crate::daemon::{Daemon, command, socket};
use crate::hostile::{frame, mac, silent};
use crate::kit::{Result, until};
use crate::transfer::{Plan, transfer};
use crate::world::{AIR, Shape, World};
use airmend_proto::wire::build::SegmentBuilder;
use airmend_proto::wire::seq::SeqNumber;
use airmend_proto::wire::tcp::Flags;
use std::time::Instant;

/// How long the agent works on an ACK of the one host, in a debug build.
const WORK_MICROS: u32 = 500;
/// ACKs of that host that wait for the cable at any time: at 10,000 a second they want five times
/// the time that there is.
const ACKS: usize = 5_000;
/// ACKs that pass without a verdict before the other host is looked at.
const TOO_MUCH: u64 = 1_000;

/// The quantile of a histogram in a status: the bound of its bucket, in seconds.
pub(crate) fn quantile(histogram: &serde_json::Value, share: f64) -> f64 {
    let figures = |name| {
        let all = histogram[name].as_array().into_iter().flatten();
        all.filter_map(serde_json::Value::as_f64).collect::<Vec<_>>()
    };
    let rank = histogram["count"].as_f64().unwrap_or(0.0) * share;
    let (bounds, counts) = (figures("bounds"), figures("counts"));
    let mut below = 0.0;
    let found = bounds.iter().zip(&counts).find(|(_, count)| {
        below += **count;
        below >= rank
    });
    found.map_or(f64::INFINITY, |(bound, _)| *bound)
}

/// The other host is mended while there is too much to do; where the gateway had a processor, the
/// heartbeat went on, and that host's ACKs did not wait.
pub(crate) fn one_host_takes_all_the_time() -> Result {
    if !cfg!(debug_assertions) {
        println!("only a debug build works more when it is asked to");
        return Ok(());
    }
    let world = World::new(Shape::default())?;
    let [fixed, mobile] = silent(&world)?;
    let (wired, air) = (mac(&world.base, "wired0")?, mac(&world.base, "air0")?);
    let socket = socket();
    let mut command = command("air0", &socket, &[]);
    let address = mobile.map(|byte| byte.to_string()).join(".");
    command.env("AIRMEND_WORK", format!("{address}={WORK_MICROS}"));
    let daemon = Daemon::launch(&world.base, command, socket)?;
    let data = SegmentBuilder::new((fixed, 80), (mobile, 5000)).seq(SeqNumber(1));
    let data = frame(wired, data.ack(SeqNumber(1)).flags(Flags::ACK).payload(&[7; 100]));
    world.cables.insert(world.wired(), End::Station, data);
    let mut number = 0_u16;
    let mut too_much_to_do = || {
        while world.cables.to_insert() < ACKS {
            // A duplicate, so that it wants a verdict.
            let ack = SegmentBuilder::new((mobile, 5000), (fixed, 80)).seq(SeqNumber(1));
            let ack = ack.ack(SeqNumber(1)).flags(Flags::ACK).window(number | 1);
            world.cables.insert(AIR, End::Station, frame(air, ack));
            number = number.wrapping_add(1);
        }
        daemon.status().ok()?["packets"]["unjudged"].as_u64()
    };
    let (begin, mut delayed) = (Instant::now(), 0.0);
    transfer(&world, &Plan::lasting(2), |progress| {
        progress.reach(300_000)?;
        until("more than there is time for", || {
            too_much_to_do().filter(|unjudged| *unjudged > TOO_MUCH)
        })?;
        daemon.mends_most(|| {
            too_much_to_do();
            world.cables.carried(AIR).1
        })?;
        delayed = daemon.run_delay()?.as_secs_f64() / begin.elapsed().as_secs_f64();
        Ok(())
    })?;
    let status = daemon.end()?;
    let wait = |share| 1e3 * quantile(&status["ack_wait_seconds"], share);
    let timeouts = status["heartbeat_timeouts"].as_u64().ok_or("no heartbeat_timeouts")?;
    println!(
        "ACKs waited up to {} ms in the median, {} ms (99 %), {} without verdict; {timeouts} \
         heartbeat timeouts; no processor {:.0} % of the time",
        wait(0.5),
        wait(0.99),
        status["packets"]["unjudged"],
        100.0 * delayed,
    );
    // A real-time thread that never sleeps is held back 50 ms in a second by the kernel.
    if delayed < 0.1 {
        assert!(wait(0.9) <= 20.0, "{} ms", wait(0.9));
        assert!(timeouts as f64 <= 6.0 + begin.elapsed().as_secs_f64(), "{timeouts}");
    }
    Ok(())
}
