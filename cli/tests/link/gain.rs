//! What a link says that one TCP connection would have without it, beside the same bytes over the
//! same path without it: the kernel's CUBIC, over netem.

use crate::ended;
use crate::kit::{Result, TempFile, airmend, has_steady_clock};
use crate::stream::stream;
use crate::world::{INNER, RIGHT, World, queue};
use serde_json::Value;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

const BYTES: u64 = 3_000_000;
/// What a link carries before, so that it knows the path's loss, and the pause after which it tells
/// of a new transfer.
const BEFORE: u64 = 12_000_000;
const PAUSE: Duration = Duration::from_millis(1_500);
/// Milliseconds one way, and percent lost each way.
const PATHS: [(u32, u32); 5] = [(5, 1), (20, 1), (20, 3), (70, 1), (40, 5)];
/// Transfers over each path with the link, which tell nearly the same, and without, which vary.
const TOLD: u32 = 2;
const SEEN: u32 = 16;
/// What is told is right within this factor.
const WITHIN: f64 = 1.3;

pub(crate) fn told() -> Result {
    let mut wrong = Vec::new();
    for (delay, loss) in PATHS {
        let path = format!("netem delay {delay}ms loss {loss}% rate 20mbit limit 1000");
        // Of the same bytes: mean times, not mean rates.
        let mean = |runs: u32, rate: fn(&str) -> Result<f64>| -> Result<f64> {
            let times: Result<f64> = (0..runs).map(|_| Ok(1.0 / rate(&path)?)).sum();
            Ok(f64::from(runs) / times?)
        };
        let (told, seen) = (mean(TOLD, told_by_a_link)?, mean(SEEN, seen_without)?);
        let ratio = told / seen;
        let line = format!("{path}: {told:.0} b/s told, {seen:.0} seen, {ratio:.3}");
        println!("{line}");
        if !(1.0 / WITHIN..WITHIN).contains(&ratio) {
            wrong.push(line);
        }
    }
    assert!(!has_steady_clock() || wrong.is_empty(), "{wrong:#?}");
    Ok(())
}

/// Two machines with this path between them.
fn world(path: &str) -> Result<World> {
    let world = World::new()?;
    for host in world.hosts() {
        // TCP hands super-packets to the queue, whatever the interface can, and netem loses each as
        // one: TCP would meet half of the losses, or fewer.
        host.ip("link set dev eth0 gso_max_segs 1\n")?;
        queue(host, "eth0", path)?;
        host.run(|| Ok(fs::write("/proc/sys/net/ipv4/tcp_congestion_control", "cubic")))??;
    }
    Ok(world)
}

/// Bits of payload per second that a link tells after a transfer.
fn told_by_a_link(path: &str) -> Result<f64> {
    let (world, socket) = (world(path)?, TempFile::new("link.sock"));
    let listener = world.listen("0.0.0.0:4433")?;
    let (at, told_at) = (format!("{RIGHT}:4433"), socket.0.display().to_string());
    let dialer = world.end(&world.left, INNER[0], &["--peer", &at, "--socket", &told_at])?;
    for bytes in [1, BEFORE] {
        stream(world.hosts(), INNER[1].parse()?, bytes)?;
    }
    thread::sleep(PAUSE);
    stream(world.hosts(), INNER[1].parse()?, BYTES)?;
    let output = airmend().args(["status", "--json", "--socket", &told_at]).output()?;
    let status: Value = serde_json::from_slice(&output.stdout)?;
    let peer = &status["peers"][0];
    println!("{path}: {}", peer["path"]);
    let told = peer["estimated_without_bps"].as_f64().ok_or_else(|| format!("none in {peer}"))?;
    ended(dialer)?;
    ended(listener)?;
    Ok(told)
}

/// The same of the transfer over the path itself.
fn seen_without(path: &str) -> Result<f64> {
    let world = world(path)?;
    let begin = Instant::now();
    stream(world.hosts(), RIGHT.parse()?, BYTES)?;
    Ok(BYTES as f64 * 8.0 / begin.elapsed().as_secs_f64())
}
