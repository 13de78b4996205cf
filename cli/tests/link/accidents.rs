//! What happens to the machine of an end: its interfaces go down, and nobody takes what it prints.

use crate::interface::shown;
use crate::kit::unread::unread;
use crate::kit::{Process, Result, TempFile, until};
use crate::stream::transfer;
use crate::world::{INNER, RIGHT, World};
use airmend_live::lab::Namespace;
use nix::sys::signal::Signal;
use serde_json::Value;
use std::fs::{File, OpenOptions, read_to_string};
use std::net::UdpSocket;
use std::process::Stdio;

const BYTES: u64 = 300_000;

/// Packets for an interface that is down are lost; the link stays.
pub(crate) fn interface_down() -> Result {
    let world = World::new()?;
    let printed = TempFile::new("figures");
    let right = listen(&world, File::create(&printed.0)?.into())?;
    let dialer = world.dial(&format!("{RIGHT}:4433"))?;
    transfer(&world, BYTES)?;
    world.right.ip("link set mend0 down\n")?;
    let bind = || Ok(UdpSocket::bind((INNER[0], 0)));
    let socket = world.left.run(bind)??;
    until("a packet for the interface that is down", || {
        socket.send_to(b"lost", (INNER[1], 9)).ok()?;
        right.signal(Signal::SIGUSR1).ok()?;
        let text = read_to_string(&printed.0).ok()?;
        let figures: Value = serde_json::from_str(text.lines().next_back()?).ok()?;
        (figures["counters"]["device_drops"].as_u64()? > 0).then_some(())
    })?;
    world.right.ip("link set mend0 up\n")?;
    transfer(&world, BYTES)?;
    crate::ended(dialer)?;
    Ok(())
}

/// A radio that is down is waited for, and one that has vanished is an error.
pub(crate) fn radio_down() -> Result {
    let world = World::new()?;
    let over = ["--over", "ethernet", "--interface", "eth0"];
    let address = shown(&world.right, "-br link show eth0")?;
    let mac = address.split_whitespace().nth(2).ok_or("no address")?;
    let _listener =
        world.end(&world.right, INNER[1], &[&over[..], &["--listen", "any"]].concat())?;
    let mut dialer = world.end(&world.left, INNER[0], &[&over[..], &["--peer", mac]].concat())?;
    transfer(&world, BYTES)?;
    world.left.ip("link set eth0 down\nlink set eth0 up\n")?;
    transfer(&world, BYTES)?;
    world.left.ip("link del eth0\n")?;
    dialer.said("the interface has vanished")?;
    Ok(())
}

/// Nobody reads the figures, or the disk is full: packets cross all the same.
pub(crate) fn figures_that_nobody_takes() -> Result {
    let full = OpenOptions::new().write(true).open("/dev/full")?;
    let (unread, _kept) = unread()?;
    for printed in [full.into(), unread] {
        let world = World::new()?;
        let mut right = listen(&world, printed)?;
        let dialer = world.dial(&format!("{RIGHT}:4433"))?;
        transfer(&world, BYTES)?;
        right.signal(Signal::SIGUSR1)?;
        transfer(&world, BYTES)?;
        right.signal(Signal::SIGTERM)?;
        // The interface is gone before the last figures are printed.
        until("the end of the interface", || {
            let links = shown(&world.right, "-o link").ok()?;
            (!links.contains("mend0")).then_some(())
        })?;
        crate::ended(dialer)?;
        right.kill()?;
    }
    Ok(())
}

/// The end that listens at the right, once its interface is up, with this standard output.
fn listen(world: &World, printed: Stdio) -> Result<Process> {
    let mut command = world.command(INNER[1], &["--listen", "0.0.0.0:4433"]);
    command.stdout(printed);
    let process = Process(world.right.run(|| Ok(command.spawn()))??);
    until("the interface", || has_address(&world.right).then_some(()))?;
    Ok(process)
}

fn has_address(namespace: &Namespace) -> bool {
    shown(namespace, "address show mend0").is_ok_and(|text| text.contains(INNER[1]))
}
