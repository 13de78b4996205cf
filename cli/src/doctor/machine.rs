//! What needs no namespace: the kernel, BPF, clock, timers and processors.

use super::Check;
use crate::text;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

/// Looks and measures.
pub(super) fn checks() -> Vec<Check> {
    vec![bpf(), clock(), timer(), processors()]
}

/// The programs that steer flows are attached with tcx, which came with Linux 6.6.
fn bpf() -> Check {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    // The kernel has this setting exactly if it has the system call.
    let has_call = fs::exists("/proc/sys/kernel/unprivileged_bpf_disabled").unwrap_or(false);
    let result = match version(&release) {
        _ if !has_call => Err("this kernel has no bpf system call".to_owned()),
        Some(version) if version < TCX => Err(format!("Linux {} has no tcx", release.trim())),
        _ if !may_load(&status) => Err("this user has no CAP_BPF and CAP_NET_ADMIN".to_owned()),
        _ => Ok(format!("Linux {} with tcx", release.trim())),
    };
    let cost = "the laboratory does not need it; the gateway to come will steer flows with it";
    Check::new("BPF", result, cost)
}

/// Of 1,000 steps of the clock, the least.
fn clock() -> Check {
    let step = (0..1_000).map(|_| {
        let start = Instant::now();
        loop {
            let step = start.elapsed();
            if step > Duration::ZERO {
                return step;
            }
        }
    });
    let step = step.min().unwrap_or_default();
    let source =
        fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    let source = source.map_or_else(|_| "unknown".to_owned(), |name| name.trim().to_owned());
    let found = format!("steps of {} ns, source {source}", step.as_nanos());
    let result = if step <= CLOCK_STEP { Ok(found) } else { Err(found) };
    Check::new("clock", result, "the emulated links cannot keep time")
}

/// How much longer than asked the thread sleeps.
fn timer() -> Check {
    let mut late: Vec<Duration> = (0..SLEEPS)
        .map(|_| {
            let start = Instant::now();
            thread::sleep(SLEEP);
            start.elapsed().saturating_sub(SLEEP)
        })
        .collect();
    late.sort();
    let (median, most) = (late[SLEEPS / 2], late[SLEEPS * 99 / 100]);
    let found = format!(
        "sleeps of {} end {} late, 99 % within {}",
        text::duration(SLEEP),
        text::duration(median),
        text::duration(most)
    );
    let result = if most <= TIMER_LATE { Ok(found) } else { Err(found) };
    let cost = "the emulated links will run late: stop other work, or lower --rate";
    Check::new("timer", result, cost)
}

fn processors() -> Check {
    let count = thread::available_parallelism().map_or(1, usize::from);
    let found = text::counted(count as u64, "processor");
    let result = if count >= 2 { Ok(found) } else { Err(found) };
    let cost = "the hosts and the links share one: lower --rate";
    Check::new("processors", result, cost)
}

/// Major and minor number of `6.18.44-generic`.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.trim().split(['.', '-']);
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Whether `/proc/self/status` tells of what loading and attaching a program needs.
fn may_load(status: &str) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    let has = |capability: u32| mask & (1 << capability) != 0;
    (has(CAP_BPF) || has(CAP_SYS_ADMIN)) && has(CAP_NET_ADMIN)
}

const TCX: (u32, u32) = (6, 6);
const CAP_NET_ADMIN: u32 = 12;
const CAP_SYS_ADMIN: u32 = 21;
const CAP_BPF: u32 = 39;
const SLEEP: Duration = Duration::from_millis(1);
const SLEEPS: usize = 300;
/// A frame of 1500 bytes takes 600 µs at 20 Mb/s: what is later than one frame shows.
const TIMER_LATE: Duration = Duration::from_micros(600);
const CLOCK_STEP: Duration = Duration::from_micros(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_told_apart_by_number() {
        assert_eq!(version("6.18.44-generic\n"), Some((6, 18)));
        assert_eq!(version("6.6-rc1"), Some((6, 6)));
        assert_eq!(version("strange"), None);
        assert!(version("6.10.0") >= Some(TCX) && version("6.1.0-18-amd64") < Some(TCX));
    }

    #[test]
    fn loading_needs_both_capabilities() {
        assert!(may_load("Name:\tx\nCapEff:\t000001ffffffffff\n"));
        assert!(may_load("CapEff:\t0000008000001000\n"));
        assert!(!may_load("CapEff:\t0000008000000000\n"));
        assert!(!may_load("CapEff:\t0000000000000000\n"));
        assert!(!may_load(""));
    }
}
