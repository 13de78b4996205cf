//! What must be tried in new namespaces: the child's part of `airmend doctor`.

use super::check::{Check, GATEWAY_BY_CLSACT, GATEWAY_BY_TCX};
use crate::row;
use airmend_live::bpf::Attach;
use airmend_live::gateway::{Gateway, GatewayConfig, GatewayError};
use airmend_live::lab;
use airmend_proto::agents::AgentConfig;
use anyhow::{Context, Result};
use nix::sched::{CloneFlags, unshare};
use nix::sys::socket::{
    AddressFamily, SockFlag, SockProtocol, SockType, setsockopt, socket, sockopt,
};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::process::{Command, Stdio};

/// Runs [`report`] in a child process and reads its output.
pub(super) fn in_child() -> Result<Vec<Check>> {
    let output = Command::new("/proc/self/exe")
        .args(["doctor", "--inside"])
        .stdin(Stdio::null())
        .output()
        .context("cannot start the process that tries namespaces")?;
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
}

/// Tries everything that needs a namespace, one JSON line each.
pub(super) fn report(out: &mut impl Write) -> Result<()> {
    for check in checks() {
        row::write(out, &check)?;
    }
    Ok(())
}

fn checks() -> Vec<Check> {
    let nothing_runs = "the laboratory cannot run";
    let user = Check::new("user namespace", enter_user_namespace(), nothing_runs).needed();
    let network = unshare(CloneFlags::CLONE_NEWNET);
    let mut checks = vec![
        user,
        Check::new("network namespace", network.map(|()| "made one".into()), nothing_runs).needed(),
        Check::new(
            "iproute2",
            ip(&["-V"]).map(|version| version.trim_start_matches("ip utility, ").to_owned()),
            "nothing can set up interfaces: apt-get install iproute2",
        )
        .needed(),
    ];
    // Without a namespace of its own, the rest would be tried on the host's interfaces.
    if network.is_err() {
        return checks;
    }
    let pair = ip(&["link", "add", "wired0", "type", "veth", "peer", "name", "wired1"]);
    let made = |_| "made a pair".to_owned();
    checks.push(Check::new("veth", pair.map(made), "the laboratory needs --port tun").needed());
    checks.push(
        Check::new("packet socket", packet_socket(), "the laboratory needs --port tun").needed(),
    );
    checks.push(Check::new(
        "TUN device",
        tun_device(),
        "--port tun cannot be used; the default, veth, needs no device",
    ));
    for (name, file, flag) in [
        ("SACK switch", "/proc/sys/net/ipv4/tcp_sack", "--no-sack"),
        ("timestamps switch", "/proc/sys/net/ipv4/tcp_timestamps", "--no-timestamps"),
    ] {
        let cost = format!("{flag} cannot be used");
        checks.push(Check::new(name, switch(file), &cost).needed());
    }
    for name in ["cubic", "reno", "bbr"] {
        let cost = format!("--cc {name} cannot be used");
        let result = congestion_control(name);
        checks.push(Check::new(&format!("congestion control {name}"), result, &cost));
    }
    checks.extend(gateways());
    checks
}

fn enter_user_namespace() -> Result<String, lab::LabError> {
    let is_own = |path: &str| fs::read_link(path).ok();
    let before = is_own("/proc/self/ns/user");
    lab::enter_user_namespace()?;
    let after = is_own("/proc/self/ns/user");
    Ok(if before == after {
        "not needed: this user may make network namespaces".into()
    } else {
        "made one: the laboratory needs no root".into()
    })
}

/// A whole gateway on an end of the pair: packet socket, TAP device, programs and all.
fn gateways() -> [Check; 2] {
    let open = |attach| -> Result<String, GatewayError> {
        let own = GatewayConfig::new("wired0", AgentConfig::plain());
        Gateway::open(GatewayConfig { attach, keep_privileges: true, ..own })?.close()?;
        Ok("attached one and detached it".to_owned())
    };
    let no_tcx = "the gateway uses clsact, where what a killed one leaves behind is inert and is \
                  cleaned at the next start";
    let no_clsact = "the gateway needs tcx, which came with Linux 6.6";
    [
        Check::new(GATEWAY_BY_TCX, open(Attach::Tcx), no_tcx),
        Check::new(GATEWAY_BY_CLSACT, open(Attach::Clsact), no_clsact),
    ]
}

/// The output of `ip`, or the first line of its error.
fn ip(arguments: &[&str]) -> io::Result<String> {
    let output = Command::new("ip").args(arguments).output()?;
    let first = |bytes: &[u8]| {
        String::from_utf8_lossy(bytes).lines().next().unwrap_or_default().trim().to_owned()
    };
    if output.status.success() {
        return Ok(first(&output.stdout));
    }
    Err(io::Error::other(first(&output.stderr)))
}

fn packet_socket() -> nix::Result<String> {
    let family = AddressFamily::Packet;
    socket(family, SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::EthAll)?;
    Ok("opened one".into())
}

fn tun_device() -> io::Result<String> {
    let opened = File::options().read(true).write(true).open("/dev/net/tun");
    opened
        .map_err(|error| io::Error::other(format!("cannot open /dev/net/tun: {}", error.kind())))?;
    ip(&["tuntap", "add", "dev", "air0", "mode", "tun"])?;
    Ok("made one".into())
}

/// Writes what is there: only a namespace's own setting can be written.
fn switch(file: &str) -> io::Result<String> {
    let value = fs::read_to_string(file)?;
    fs::write(file, &value)?;
    Ok("can be changed".into())
}

fn congestion_control(name: &str) -> nix::Result<String> {
    let socket = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    setsockopt(&socket, sockopt::TcpCongestion, &OsString::from(name))?;
    let default = fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control");
    let is_default = default.is_ok_and(|default| default.trim() == name);
    Ok(if is_default { "available, this machine's default" } else { "available" }.into())
}
