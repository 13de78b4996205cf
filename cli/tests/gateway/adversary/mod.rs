//! Hostile hosts on both sides of a gateway, beside one honest flow: what each attack costs.
//!
//! The short form, a part of `make test`, sends 5,000 hostile packets a second and judges loosely,
//! since other work shares the machine; where that has just become more, a line is measured anew,
//! with the flow without attack beside it. By the steady clock of a guest it judges as the whole
//! table does, and pings as well. The whole table is a command of docs/measuring.md.

mod attacks;
mod place;

use crate::daemon::{Daemon, default_command, repairs, socket};
use crate::kit::{Result, has_steady_clock};
use crate::overload::quantile;
use crate::ping::median_ping;
use crate::transfer::{Plan, transfer};
use attacks::{ATTACKS, Attack, Attacker};
use place::Place;
use serde_json::Value;
use std::thread;
use std::time::{Duration, Instant};

/// Asks for the whole table: the number of runs of each line. `AIRMEND_ATTACKS` names the attacks,
/// all by default.
const RUNS: &str = "AIRMEND_ADVERSARY";
const NAMES: &str = "AIRMEND_ATTACKS";
/// How often a line of the short form is measured anew.
const AGAIN: usize = 2;
/// Attacks that cost more than they may, as yet: their lines are printed and not judged.
const NOT_YET: [&str; 0] = [];
/// After so many bytes the honest flow's slow start is over.
const START: u64 = 1_500_000;
/// Frames are sent in bursts, one each time.
const BURST: Duration = Duration::from_millis(1);
/// How much longer a ping takes than without attack, by a steady clock: a tenth of the path's round
/// trip of 44 ms. Cables carry datagrams at once, so that a ping shows the gateway's time alone.
const PING: Duration = Duration::from_micros(4_400);
/// The least memory that an adversary may take, and the cache's limit beside it.
const MEMORY: u64 = 48 << 20;
const LIMITS: [&str; 4] = ["--limit-memory", "32MiB", "--limit-flows", "20000"];

/// How much is sent, and what is asked.
#[derive(Clone, Copy)]
struct Extent {
    /// Hostile packets a second.
    rate: u32,
    /// How long they are sent.
    time: Duration,
    /// The share of its goodput that the honest flow keeps.
    share: f64,
    /// Runs of each line; none in the short form, which has no plain forwarding.
    runs: Option<u64>,
}

/// What was measured while an attack went on.
#[derive(Clone, Debug, Default)]
struct Figures {
    /// Of the honest flow, in Mb/s.
    goodput: f64,
    /// The median of pings from the fixed host to the mobile one; by a steady clock only.
    ping: Duration,
    /// Hostile frames a second.
    rate: f64,
    /// Repairs a second.
    repairs: f64,
    /// The share of a core.
    cpu: f64,
    /// Bytes by which the process grew.
    memory: u64,
    /// 99 % of diverted ACKs waited at most so long, in seconds.
    wait: f64,
    unjudged: u64,
    unseen: u64,
    heartbeat_timeouts: u64,
    /// What became of the honest transfer, if it did not arrive whole.
    broken: Option<String>,
}

/// Every attack costs the honest flow little, and the machine no more than its limits.
pub(crate) fn adversary() -> Result {
    let runs = std::env::var(RUNS).ok().map(|runs| runs.parse()).transpose()?;
    let (rate, seconds, share) = match (runs, has_steady_clock()) {
        (Some(_), _) => (20_000, 8, 0.95),
        (None, true) => (5_000, 4, 0.95),
        (None, false) => (5_000, 2, 0.7),
    };
    let extent = Extent { rate, time: Duration::from_secs(seconds), share, runs };
    let names = std::env::var(NAMES).unwrap_or_default();
    let is_chosen =
        |attack: &&Attack| names.is_empty() || names.split(',').any(|name| name == attack.name);
    println!(
        "attack        Mb/s  share  plain   sent/s   CPU     MB  repairs  wait ms unjudg.  late  \
         ping ms  what"
    );
    let calm = Line::measure(None, extent)?;
    calm.print("none", "", &calm);
    let mut faults = Vec::new();
    for attack in ATTACKS.iter().filter(is_chosen) {
        let mut line = Line::measure(Some(attack), extent)?;
        line.print(attack.name, attack.what, &calm);
        let mut found = line.faults(&calm, extent);
        for _ in 0..AGAIN {
            if found.is_empty() || runs.is_some() {
                break;
            }
            println!("             again, since {}", found.join("; "));
            let calm = Line::measure(None, extent)?;
            line = Line::measure(Some(attack), extent)?;
            line.print(attack.name, attack.what, &calm);
            found = line.faults(&calm, extent);
        }
        if !found.is_empty() && NOT_YET.contains(&attack.name) {
            println!("             not yet judged: {}", found.join("; "));
        } else {
            faults.extend(found.iter().map(|fault| format!("{}: {fault}", attack.name)));
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(faults.join("; ").into()) }
}

/// One line of the table.
struct Line {
    /// Plain forwarding without losses on the air, beside the same attack: what the machine and the
    /// hosts bear. Only in the whole table.
    plain: Option<Figures>,
    mended: Figures,
}

impl Line {
    fn measure(attack: Option<&Attack>, extent: Extent) -> Result<Self> {
        let several = |agent, loss| -> Result<Figures> {
            let runs =
                (1..=extent.runs.unwrap_or(1)).map(|seed| run(attack, extent, agent, loss, seed));
            let mut runs = runs.collect::<Result<Vec<_>>>()?;
            if let Some(broken) = runs.iter().position(|run| run.broken.is_some()) {
                return Ok(runs.swap_remove(broken));
            }
            runs.sort_by(|a, b| a.goodput.total_cmp(&b.goodput));
            Ok(runs.swap_remove(runs.len() / 2))
        };
        let plain = extent.runs.map(|_| several("plain", 0.0)).transpose()?;
        Ok(Self { plain, mended: several("snoop", 0.02)? })
    }

    /// The share of the goodput that the honest flow has without attack; of plain forwarding and
    /// of mending.
    fn shares(&self, calm: &Self) -> (Option<f64>, f64) {
        let plain = self.plain.as_ref().zip(calm.plain.as_ref());
        let plain = plain.map(|(this, calm)| this.goodput / calm.goodput);
        (plain, self.mended.goodput / calm.mended.goodput)
    }

    fn print(&self, name: &str, what: &str, calm: &Self) {
        let (plain, share) = self.shares(calm);
        let Figures { goodput, ping, rate, repairs, cpu, memory, wait, .. } = self.mended;
        println!(
            "{name:<12} {goodput:>5.1} {:>5.0}% {:>6} {rate:>8.0} {:>4.0}% {:>6.1} \
             {repairs:>6.0}/s {:>8.1} {:>7} {:>5} {:>8.1}  {what}",
            100.0 * share,
            plain.map_or("-".to_owned(), |plain| format!("{:.0}%", 100.0 * plain)),
            100.0 * cpu,
            memory as f64 / 1e6,
            1e3 * wait,
            self.mended.unjudged + self.mended.unseen,
            self.mended.heartbeat_timeouts,
            1e3 * ping.as_secs_f64(),
        );
    }

    /// What is beyond the limits, in words.
    fn faults(&self, calm: &Self, extent: Extent) -> Vec<String> {
        let (plain, share) = self.shares(calm);
        let wanted = extent.share * plain.unwrap_or(1.0).min(1.0);
        let sent = self.mended.repairs - calm.mended.repairs;
        let broken = |whose: &str, run: &Figures| {
            run.broken.as_ref().map(|why| format!("{whose} the transfer broke: {why}"))
        };
        [
            self.plain.as_ref().and_then(|plain| broken("even without a gateway", plain)),
            broken("mended,", &self.mended),
            (share < wanted).then(|| format!("{share:.2} of the goodput, not {wanted:.2}")),
            (has_steady_clock() && self.mended.ping > calm.mended.ping + PING)
                .then(|| format!("{:?} a ping, {:?} without", self.mended.ping, calm.mended.ping)),
            (sent > self.mended.rate).then(|| format!("{sent:.0} repairs/s more than without")),
            (self.mended.memory > MEMORY)
                .then(|| format!("memory grew by {} bytes", self.mended.memory)),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// One transfer beside one attack.
fn run(
    attack: Option<&Attack>,
    extent: Extent,
    agent: &str,
    loss: f64,
    seed: u64,
) -> Result<Figures> {
    let place = Place::new(loss, seed)?;
    let socket = socket();
    let mut command = default_command("air0", &socket);
    command.args(LIMITS).args(["--agent", agent]);
    let daemon = Daemon::launch(&place.base, command, socket)?;
    let plan = Plan { congestion: Some("cubic"), ..Plan::lasting(1) };
    let mut figures = Figures::default();
    let transferred = transfer(place.hosts(), &plan, |progress| {
        progress.reach(START)?;
        let (before, memory) = (daemon.status()?, daemon.memory()?);
        let (received, begin) = (progress.received(), Instant::now());
        let hosts = place.hosts();
        let sent = thread::scope(|scope| -> Result<u64> {
            let pings = has_steady_clock().then(|| {
                scope.spawn(|| {
                    let ping = median_ping(hosts.fixed, &hosts.mobiles[0], extent.time);
                    ping.map_err(|error| error.to_string())
                })
            });
            let sent = send(&place, attack, extent, seed);
            if let Some(pings) = pings {
                figures.ping = pings.join().map_err(|_| "a panic")??;
            }
            Ok(sent)
        })?;
        let seconds = begin.elapsed().as_secs_f64();
        figures.goodput = (progress.received() - received) as f64 * 8e-6 / seconds;
        figures.rate = sent as f64 / seconds;
        let after = daemon.status()?;
        figures.memory = daemon.memory()?.saturating_sub(memory);
        let more = |count: &dyn Fn(&Value) -> f64| count(&after) - count(&before);
        figures.repairs = more(&|status| repairs(status) as f64) / seconds;
        figures.cpu = more(&|status| status["cpu_seconds"].as_f64().unwrap_or(0.0)) / seconds;
        Ok(())
    });
    figures.broken = transferred.err().map(|error| error.to_string());
    let last = daemon.end()?;
    let count = |value: &Value| value.as_u64().unwrap_or(0);
    figures.wait = quantile(&last["ack_wait_seconds"], 0.99);
    figures.unjudged = count(&last["packets"]["unjudged"]);
    figures.unseen = count(&last["packets"]["unseen"]);
    figures.heartbeat_timeouts = count(&last["heartbeat_timeouts"]);
    Ok(figures)
}

/// Sends the attack's frames at their rate; the number of those that found room.
fn send(place: &Place, attack: Option<&Attack>, extent: Extent, seed: u64) -> u64 {
    let mut attacker = Attacker::new(&place.strangers, seed);
    let begin = Instant::now();
    let (mut number, mut sent) = (0, 0);
    while begin.elapsed() < extent.time {
        let due = begin.elapsed().as_secs_f64() * f64::from(extent.rate);
        if let Some(attack) = attack.filter(|_| attacker.look()) {
            while number < due as u32 {
                let (side, frame) = attacker.frame(attack, number);
                sent += u64::from(place.strangers.send(side, &frame));
                number += 1;
            }
        } else {
            number = due as u32;
        }
        thread::sleep(BURST);
    }
    sent
}
