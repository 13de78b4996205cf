//! A pre-shared key, padding, and header compression.

use crate::flood::{PACKETS, carries_all};
use crate::kit::{Result, TempFile, airmend};
use crate::stream::transfer;
use crate::world::{INNER, Link, RIGHT, World};
use crate::{count, ended};
use std::error::Error;
use std::fs;
use std::os::unix::fs::PermissionsExt;

const BYTES: u64 = 1_000_000;

/// Both ends, each with these flags of its own.
fn start(world: &World, listener: &[&str], dialer: &[&str]) -> Result<[Link; 2]> {
    let at = format!("{RIGHT}:4433");
    let listener = [&["--listen", &at], listener].concat();
    let listener = world.end(&world.right, INNER[1], &listener)?;
    let dialer = world.end(&world.left, INNER[0], &[&["--peer", &at], dialer].concat())?;
    Ok([listener, dialer])
}

/// The same one at both ends works; without it there is a sentence, and no session.
pub(crate) fn pre_shared_key() -> Result {
    let (world, psk) = (World::new()?, TempFile::new("psk"));
    let made = airmend().args(["keygen", "--psk"]).arg(&psk.0).output()?;
    assert!(made.status.success() && made.stdout.is_empty(), "{made:?}");
    assert_eq!(fs::metadata(&psk.0)?.permissions().mode() & 0o777, 0o600);
    let flags = ["--psk-file", psk.0.to_str().ok_or("a path")?];
    let [listener, dialer] = start(&world, &flags, &flags)?;
    transfer(&world, BYTES)?;
    ended(dialer)?;
    ended(listener)?;

    let [listener, mut dialer] = start(&world, &flags, &[])?;
    let line = dialer.line()?;
    assert!(line.contains("not authentic") && line.contains("--psk-file"), "{line}");
    assert!(count(&ended(dialer)?, "forged") > 0);
    assert_eq!(count(&ended(listener)?, "sessions"), 0);
    Ok(())
}

/// Small packets leave as long as the path allows, or as multiples; one end may pad alone.
pub(crate) fn padded() -> Result {
    for (flags, least, most) in [(["--pad", "path"], 1_500, 1_520), (["--pad", "16"], 100, 200)] {
        let world = World::new()?;
        // The counters would have several frames of one length as one.
        world.left.disable_offloads("eth0")?;
        let [listener, dialer] = start(&world, &[], &flags)?;
        transfer(&world, BYTES)?;
        let before = sent(&world)?;
        carries_all(world.hosts(), INNER[1])?;
        // On a busy machine link ACKs for the transfer are among them.
        let (bytes, frames) = sent(&world)?;
        let (bytes, frames) = (bytes - before.0, frames - before.1);
        assert!(frames >= u64::from(PACKETS), "{flags:?}: {frames} frames");
        let each = bytes / frames;
        let figures = ended(dialer)?;
        assert!((least..=most).contains(&each), "{flags:?}: {each} bytes each: {figures}");
        assert_eq!(figures["mtu"], 1_419, "{figures}");
        assert_eq!(ended(listener)?["mtu"], 1_422);
    }
    Ok(())
}

/// Each end sends compressed headers unless it is told not to, and reads those of the other one in
/// either case.
pub(crate) fn compressed() -> Result {
    let (yes, no): (&[&str], &[&str]) = (&[], &["--no-compression"]);
    for flags in [[yes, yes], [no, yes], [yes, no]] {
        let world = World::new()?;
        let ends = start(&world, flags[0], flags[1])?;
        transfer(&world, BYTES)?;
        for (end, flags) in ends.into_iter().zip(flags) {
            let figures = ended(end)?;
            assert_eq!(count(&figures, "compressed") > 0, flags.is_empty(), "{figures}");
            assert_eq!(count(&figures, "unreadable"), 0, "{figures}");
        }
    }
    Ok(())
}

/// Bytes, with their Ethernet headers, and frames that the left machine has sent over the cable.
fn sent(world: &World) -> Result<(u64, u64)> {
    let all = world.left.run(|| Ok(fs::read_to_string("/proc/thread-self/net/dev")))??;
    let line = all.lines().find(|line| line.trim_start().starts_with("eth0:"));
    let fields: Vec<_> = line.ok_or("no eth0")?.split_whitespace().collect();
    let field =
        |number: usize| Ok::<_, Box<dyn Error>>(fields.get(number).ok_or("short")?.parse()?);
    Ok((field(9)?, field(10)?))
}
