//! What needs no namespace: the user's rights, clock, timers and processors.

use super::check::Check;
use crate::text;
use airmend_live::gateway::queue_places;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

/// Looks and measures.
pub(super) fn checks() -> Vec<Check> {
    let queues = queue_places(MAX_INTERFACES)
        .into_iter()
        .map(|(name, place)| Check::new(&format!("queue of {name}"), Ok::<_, String>(place), ""));
    [rights(), clock(), timer(), processors()].into_iter().chain(queues).collect()
}

/// The capabilities that the gateway needs.
fn rights() -> Check {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let missing = missing_rights(&status);
    let result = match missing[..] {
        [] => Ok("this user has CAP_NET_ADMIN, CAP_BPF and CAP_NET_RAW".to_owned()),
        _ => Err(format!("this user lacks {}", missing.join(", "))),
    };
    let cost = "run the gateway as root, as the service airmend@IF, or after `setcap \
                cap_net_admin,cap_bpf,cap_net_raw+ep $(which airmend)`; the laboratory needs none";
    Check::new("rights of a gateway", result, cost)
}

/// The least of 1,000 steps of the clock.
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

/// The time that the thread sleeps beyond its timeout.
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

/// The gateway's capabilities that `/proc/self/status` does not have.
fn missing_rights(status: &str) -> Vec<&'static str> {
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    let missing = RIGHTS.into_iter().filter(|(bit, _)| mask & (1 << bit) == 0);
    missing.map(|(_, name)| name).collect()
}

const RIGHTS: [(u32, &str); 3] = [(12, "CAP_NET_ADMIN"), (39, "CAP_BPF"), (13, "CAP_NET_RAW")];
/// Interfaces that are listed.
const MAX_INTERFACES: usize = 16;
const SLEEP: Duration = Duration::from_millis(1);
const SLEEPS: usize = 300;
/// A frame of 1500 bytes takes 600 µs at 20 Mb/s: what is later than one frame shows.
const TIMER_LATE: Duration = Duration::from_micros(600);
const CLOCK_STEP: Duration = Duration::from_micros(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_user_lacks_is_named() {
        assert_eq!(missing_rights("Name:\tx\nCapEff:\t000001ffffffffff\n"), [""; 0]);
        assert_eq!(missing_rights("CapEff:\t0000008000003000\n"), [""; 0]);
        assert_eq!(missing_rights("CapEff:\t0000000000003000\n"), ["CAP_BPF"]);
        let all = ["CAP_NET_ADMIN", "CAP_BPF", "CAP_NET_RAW"];
        assert_eq!(missing_rights("CapEff:\t0000000000000000\n"), all);
        assert_eq!(missing_rights(""), all);
    }
}
