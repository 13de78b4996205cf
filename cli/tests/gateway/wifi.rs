//! The gateway on an access point: radios that the kernel emulates, hostapd and wpa_supplicant with
//! WPA2, and everything of mac80211 between the copy of a packet and the air.

mod aggregation;
mod cell;
mod figures;
mod process;

use crate::daemon::{Daemon, repairs};
use crate::kit::{Result, until};
use crate::transfer::{Hosts, Plan, Progress, transfer};
use crate::world::run;
use aggregation::Sessions;
use cell::{Cell, Limit, Shape};
use figures::{Figures, PLAIN_BYTES, compare, idle, measure};
use serde_json::Value;
use std::thread;
use std::time::{Duration, Instant};

/// Of what the air can carry, what the median of [`RUNS`] mended transfers reaches. The losses of
/// netem have no seed, and the beginning of a short transfer is a large part of it: single
/// transfers had 0.78 to 0.97.
const REACHED: f64 = 0.6;
const RUNS: usize = 3;
const MENDED_BYTES: u64 = 4_000_000;
/// Bytes before each event, and losses that must be mended after it.
const BEFORE: u64 = 600_000;
const ENOUGH: u64 = 10;

/// The gateway beside an access point that routes. Where the limit is behind the driver, repairs
/// wait behind the data like everything else, and what that queue drops looks like the air's loss:
/// that is measured, and nothing is asserted but that every byte arrives.
pub(crate) fn routed() -> Result {
    const BEHIND_BYTES: u64 = 1_500_000;
    let cell = Cell::new(Shape::default())?;
    judge(&cell, 0.02)?;
    judge(&cell, 0.05)?;
    drop(cell);
    let cell = Cell::new(Shape { limit: Limit::Driver, ..Shape::default() })?;
    compare(&cell, 0.02, BEHIND_BYTES, 1)?;
    compare(&cell, 0.05, BEHIND_BYTES, 1).map(drop)
}

/// The same with the access point's interface in a bridge.
pub(crate) fn bridged() -> Result {
    let cell = Cell::new(Shape { is_bridge: true, rate_bps: 20_000_000, ..Shape::default() })?;
    judge(&cell, 0.02)?;
    judge(&cell, 0.05)
}

/// A row of the table, with the queue of the interface at the air's rate.
fn judge(cell: &Cell, loss: f64) -> Result {
    let [plain, mended] = compare(cell, loss, MENDED_BYTES, RUNS)?;
    let reached = cell.capacity_mbps(loss) * REACHED;
    assert!(mended.mbps >= reached, "{:.2} of {reached:.2} Mb/s", mended.mbps);
    assert!(loss < 0.05 || mended.mbps >= 3.0 * plain.mbps, "{:.2}", plain.mbps);
    Ok(())
}

/// A station that goes and comes back amid transfers: by itself, sent away, out of range, and with
/// another link address.
pub(crate) fn reconnects() -> Result {
    let cell = Cell::new(Shape { rate_bps: 20_000_000, ..Shape::default() })?;
    cell.lose(0.02)?;
    let daemon = cell.gateway()?;
    let took = transfer(cell.hosts(), &Plan::lasting(3), |progress| {
        let survives =
            |what: &str, event: &dyn Fn() -> Result| survives(&daemon, progress, what, event);
        survives("disconnected", &|| {
            cell.wpa_cli(0, "disconnect")?;
            thread::sleep(Duration::from_millis(500));
            cell.wpa_cli(0, "reconnect")?;
            cell.connected(0, 2)
        })?;
        survives("sent away", &|| {
            cell.hostapd_cli(&format!("deauthenticate {}", cell.mac(0)?))?;
            cell.connected(0, 3)
        })?;
        survives("out of range", &|| {
            cell.set_radio(0, "group", "2")?;
            thread::sleep(Duration::from_millis(300));
            cell.set_radio(0, "group", "1")
        })?;
        survives("with another address", &|| come_with_another_address(&cell))
    })?;
    println!("all of it took {:.1} s", took.as_secs_f64());
    leaves_nothing(&cell, daemon)
}

/// Waits for some bytes, lets something happen, and waits for mending after it.
fn survives(
    daemon: &Daemon,
    progress: &Progress,
    what: &str,
    event: &dyn Fn() -> Result,
) -> Result {
    progress.more(BEFORE)?;
    let before = repairs(&daemon.status()?);
    let gone = Instant::now();
    event()?;
    let back = Instant::now();
    let at = progress.received();
    until("another byte", || (progress.received() > at).then_some(()))?;
    let going = back.elapsed();
    let after = daemon.mended(before + ENOUGH)?;
    println!(
        "{what}: back after {:.2?}, data {going:.2?} later, {ENOUGH} repairs ({before} to {after}) \
         {:.2?} later",
        back - gone,
        back.elapsed(),
    );
    Ok(())
}

/// As a telephone does that hides who it is: another link address, the same IP address.
fn come_with_another_address(cell: &Cell) -> Result {
    cell.wpa_cli(0, "disconnect")?;
    cell.stations[0].ip("link set wlan0 down\nlink set wlan0 address 02:00:00:00:77:01\n\
         link set wlan0 up\n")?;
    cell.set_route(0)?;
    cell.wpa_cli(0, "reconnect")?;
    cell.connected(0, 4)?;
    // Its ARP request tells the access point, as DHCP or an announcement would.
    run(&cell.stations[0], "ping", &["-c", "1", "10.77.2.1"], "").map(drop)
}

/// Neither in the gateway, when the transfers are over, nor in the kernel, when the gateway is.
fn leaves_nothing(cell: &Cell, daemon: Daemon) -> Result {
    until("an empty cache", || daemon.status().ok().filter(|status| status["cache_bytes"] == 0))?;
    let final_status = daemon.end()?;
    println!("{} repairs; {}", repairs(&final_status), final_status["packets"]);
    assert_eq!(final_status["counters"]["agent_panics"], 0);
    let filters = run(&cell.base, "tc", &["filter", "show", "dev", "wlan0", "ingress"], "");
    let links = run(&cell.base, "ip", &["link"], "")?;
    assert!(filters.as_deref().unwrap_or_default().trim().is_empty(), "{filters:?}");
    assert!(!links.contains("airmend"), "{links}");
    Ok(())
}

/// Two stations of one access point, both mended; then one serves the other, which mac80211 bridges
/// by itself: the gateway sees both directions leave and none come, and does nothing.
pub(crate) fn two_stations() -> Result {
    let shape = Shape { stations: 2, rate_bps: 20_000_000, ..Shape::default() };
    let cell = Cell::new(shape)?;
    cell.lose(0.05)?;
    let daemon = cell.gateway()?;
    thread::scope(|scope| -> Result {
        let both = [0, 1].map(|mobile| {
            let (cell, daemon) = (&cell, &daemon);
            scope.spawn(move || one_of_two(cell, daemon, mobile).map_err(|e| e.to_string()))
        });
        Ok(both.into_iter().try_for_each(|one| one.join().map_err(|_| "a panic".to_owned())?)?)
    })?;
    let voice = cell.voice()?;
    let before = repairs(&daemon.status()?);
    assert!(voice >= before, "{voice} frames of voice, {before} repairs");
    let hosts = Hosts {
        fixed: &cell.stations[0],
        addresses: [cell.address(0), cell.address(0)],
        mobiles: &cell.stations[1..],
    };
    let took = transfer(hosts, &Plan::equal(1, 300_000), |_| Ok(()))?;
    let after = repairs(&daemon.status()?);
    println!("station to station: {:.1} s, {} repairs", took.as_secs_f64(), after - before);
    leaves_nothing(&cell, daemon)
}

/// The transfers of one station, which are mended while those of the other are.
fn one_of_two(cell: &Cell, daemon: &Daemon, mobile: usize) -> Result {
    const BYTES: u64 = 1_400_000;
    let begin = Instant::now();
    transfer(cell.hosts(), &Plan { mobile, ..Plan::lasting(1) }, |progress| {
        progress.reach(BYTES)?;
        let mbps = BYTES as f64 * 8e-6 / begin.elapsed().as_secs_f64();
        println!("station {mobile}: {mbps:.2} Mb/s");
        // A status tells of flows that live.
        let mended = flow_repairs(&daemon.status()?, cell.address(mobile));
        let lost = cell.lost(mobile)?;
        println!("station {mobile}: {mended} repairs of {lost} losses");
        assert!(mended * 2 > lost, "{mended} of {lost}");
        Ok(())
    })?;
    Ok(())
}

/// Repairs of the flows of one mobile host, as the status tells them.
fn flow_repairs(status: &Value, mobile: &str) -> u64 {
    let flows = status["top"].as_array().map_or(&[][..], Vec::as_slice);
    let is_its = |flow: &&Value| {
        flow["air"].as_str().is_some_and(|air| air.starts_with(&format!("{mobile}:")))
    };
    flows.iter().filter(is_its).filter_map(|flow| flow["repairs"].as_u64()).sum()
}

/// Of the goodput without aggregation and with a station that is awake, what is left with it and
/// with one that dozes: a few dozen losses differ from run to run, and so does the goodput by some
/// 5 %.
const UNHARMED: f64 = 0.8;

/// What 802.11 does to the order and the timing of frames does no harm: aggregation with repairs in
/// another access category, a station that dozes, and fades. What is lost in a fade is a gap in the
/// sequence of a block-acknowledgment session, behind which the station holds everything back until
/// 64 frames or 100 ms later; repairs are in another sequence, and overtake.
pub(crate) fn power_save() -> Result {
    const LOSS: f64 = 0.02;
    let run_with = |cell: &Cell, what: &str, is_mended: bool, meanwhile: &dyn Fn() -> Result| {
        let bytes = if is_mended { 1_500_000 } else { PLAIN_BYTES / 2 };
        let figures = measure(cell, bytes, is_mended, meanwhile)?;
        let Figures { mbps, sent, repairs, lost } = figures;
        let name = if is_mended { "mended" } else { "plain" };
        println!(
            "{what}, {name}: {mbps:.2} Mb/s, {sent:.3} bytes per byte, {repairs} repairs of {lost} \
             losses behind the driver",
        );
        Ok::<_, Box<dyn std::error::Error>>(figures)
    };
    let cell = Cell::new(Shape { is_ht: false, ..Shape::default() })?;
    cell.lose(LOSS)?;
    let legacy = run_with(&cell, "no aggregation", true, &idle)?;
    run_with(&cell, "no aggregation, fades", true, &|| fade(&cell))?;
    drop(cell);

    let cell = Cell::new(Shape::default())?;
    let sessions = Sessions::watch(cell.radio())?;
    cell.lose(LOSS)?;
    let aggregated = run_with(&cell, "A-MPDU", true, &idle)?;
    let (voice, begun) = (cell.voice()?, sessions.begun()?);
    println!("aggregated: traffic identifiers {begun:?}; {voice} frames of voice");
    assert!(begun.contains(&0), "best effort is not aggregated");
    assert!(voice >= aggregated.repairs, "{voice} frames of voice");
    assert!(aggregated.mbps >= legacy.mbps * UNHARMED, "aggregation does harm");

    run(&cell.stations[0], "iw", &["dev", "wlan0", "set", "power_save", "on"], "")?;
    run_with(&cell, "A-MPDU, power save", false, &|| doze(&cell))?;
    let dozing = run_with(&cell, "A-MPDU, power save", true, &|| doze(&cell))?;
    assert!(dozing.mbps >= aggregated.mbps * UNHARMED, "power save does harm");
    let plain = run_with(&cell, "A-MPDU, fades", false, &|| fade(&cell))?;
    let faded = run_with(&cell, "A-MPDU, fades", true, &|| fade(&cell))?;
    assert!(faded.mbps >= plain.mbps, "mending does harm");
    Ok(())
}

/// 30 ms of each 100 asleep: the access point keeps what comes meanwhile.
fn doze(cell: &Cell) -> Result {
    cell.set_radio(0, "ps", "1")?;
    thread::sleep(Duration::from_millis(30));
    cell.set_radio(0, "ps", "0")?;
    thread::sleep(Duration::from_millis(70));
    Ok(())
}

/// 4 ms of each 200 the station hears nothing.
fn fade(cell: &Cell) -> Result {
    cell.set_radio(0, "group", "2")?;
    thread::sleep(Duration::from_millis(4));
    cell.set_radio(0, "group", "1")?;
    thread::sleep(Duration::from_millis(196));
    Ok(())
}
