//! Runs tshark with a dissector of this tree.

use std::path::Path;
use std::process::Command;

/// Why the tests cannot run, if they cannot.
pub(crate) fn lacks() -> Option<&'static str> {
    let is_installed = Command::new("tshark").arg("--version").output().is_ok();
    (!is_installed).then_some("tshark is not installed (Debian: apt-get install tshark)")
}

/// A pcap file of these packets (draft-ietf-opsawg-pcap).
fn pcap(link_type: u32, packets: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4, 0x0002_0004, 0, 0, 65_535, link_type] {
        file.extend(u32::to_be_bytes(word));
    }
    for packet in packets {
        let len = packet.len() as u32;
        for word in [0, 0, len, len] {
            file.extend(u32::to_be_bytes(word));
        }
        file.extend(packet);
    }
    file
}

/// What tshark with this script shows of each packet: these fields, separated by `|`. `name` is
/// that of the file of packets.
pub(crate) fn tshark(
    (script, fields): (&str, &[&str]),
    name: &str,
    link_type: u32,
    packets: &[Vec<u8>],
) -> Vec<String> {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, pcap(link_type, packets)).expect("a writable folder for test files");
    let mut command = Command::new("tshark");
    command.args(["-X", &format!("lua_script:{script}"), "-r"]).arg(&path);
    command.args(["-T", "fields", "-E", "separator=|", "-E", "aggregator=,"]);
    fields.iter().for_each(|field| {
        command.args(["-e", field]);
    });
    let output = command.output().expect("tshark starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !errors.contains("Lua"), "{errors}");
    String::from_utf8_lossy(&output.stdout).lines().map(String::from).collect()
}
