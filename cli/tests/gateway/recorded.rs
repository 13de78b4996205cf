//! `--pcap` on an Ethernet interface: what it writes is read by `airmend replay` and by Wireshark.

use crate::daemon::{Daemon, repairs};
use crate::kit::{Result, airmend};
use crate::transfer::{PORT, Plan, transfer};
use crate::world::{Shape, World};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

const FLOWS: usize = 4;

/// Every flow is found again in the recording, and the agent's repairs of it.
pub(crate) fn recorded() -> Result {
    let world = World::new(Shape::default())?;
    let file = std::env::temp_dir().join(format!("airmend-gateway-{}.pcapng", std::process::id()));
    let checked = record(&world, &file).and_then(|()| in_wireshark(&file, FLOWS));
    fs::remove_file(&file).ok();
    checked
}

fn record(world: &World, file: &Path) -> Result {
    let daemon = Daemon::start(&world.base, "air0", &["--pcap", file.to_str().ok_or("no UTF-8")?])?;
    transfer(world, &Plan::equal(FLOWS, 200_000), |_| Ok(()))?;
    let mended = repairs(&daemon.end()?);

    let output = airmend().arg("replay").arg(file).args(["--json"]).output()?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complaint}");
    let text = String::from_utf8(output.stdout)?;
    let last: Value = serde_json::from_str(text.lines().last().ok_or("no line")?)?;
    println!("{mended} repairs; replayed: {last}");
    assert_eq!((&last["flows"], &last["local_retransmits"]), (&FLOWS.into(), &mended.into()));
    let check = &last["check"];
    assert_eq!(check["same"], check["outputs"], "{check}");
    Ok(())
}

/// Where tshark is installed: it finds the connections and nothing malformed. A heuristic dissector
/// may take random payload for its own protocol; `data` keeps tshark to the headers.
fn in_wireshark(file: &Path, flows: usize) -> Result {
    let tshark = |filter: &str| -> Result<String> {
        let mut tshark = Command::new("tshark");
        tshark.args(["-r", file.to_str().ok_or("no UTF-8")?, "-Y", filter]);
        tshark.args(["-d", &format!("tcp.port=={PORT},data")]);
        Ok(String::from_utf8(tshark.args(["-T", "fields", "-e", "tcp.stream"]).output()?.stdout)?)
    };
    let Ok(streams) = tshark("tcp && eth") else {
        println!("tshark is not installed: Wireshark was not asked");
        return Ok(());
    };
    let mut streams: Vec<&str> = streams.lines().collect();
    streams.sort_unstable();
    streams.dedup();
    assert_eq!(streams.len(), flows, "{streams:?}");
    assert_eq!(tshark("_ws.malformed || !tcp")?, "");
    Ok(())
}
