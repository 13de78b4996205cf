//! A host without an address gets one from a DHCP server in the other LAN.

use crate::kit::{Process, Result, TempFile};
use crate::lans::Lans;
use crate::stream::stream;
use crate::{BYTES, ended};
use airmend_live::lab::Namespace;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// The only address that the server has to give.
const LEASE: &str = "10.7.0.77";

/// Puts the lease on the interface, in the client's namespace alone.
const SCRIPT: &str = r#"#!/bin/sh
case $1 in
    bound) ip address add "$ip/$mask" dev "$interface" ;;
esac
"#;

/// What this machine lacks for the test.
pub(crate) fn lacks() -> Option<String> {
    let listed = Command::new("busybox").arg("--list").output();
    let applets = listed.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let has = |name| applets.as_ref().is_ok_and(|all| all.lines().any(|applet| applet == name));
    (!["udhcpd", "udhcpc"].into_iter().all(has))
        .then(|| "a DHCP server and client: busybox with udhcpd and udhcpc".to_owned())
}

/// The lease crosses a lossy radio, and then a stream to the leased address does.
pub(crate) fn bridged_dhcp(arq: &str) -> Result {
    let lans = Lans::new()?;
    let ends = [lans.link(0, arq)?, lans.link(1, arq)?];
    let [client, server] = &lans.hosts;
    client.ip("address flush dev eth0\n")?;
    assert_eq!(addresses(client)?, "");
    let [leases, pid_file, config, script] =
        ["leases", "pid", "udhcpd.conf", "script"].map(TempFile::new);
    let _server = serve(server, [&leases, &pid_file, &config])?;
    ask(client, &script.0)?;
    assert!(addresses(client)?.contains(&format!(" inet {LEASE}/24 ")), "{}", addresses(client)?);
    stream([server, client], LEASE.parse()?, BYTES)?;
    ends.into_iter().try_for_each(|end| ended(end).map(drop))
}

/// Starts a server with one address to give.
fn serve(host: &Namespace, [leases, pid_file, config]: [&TempFile; 3]) -> Result<Process> {
    fs::write(&leases.0, "")?;
    let (leases, pid_file) = (leases.0.display(), pid_file.0.display());
    let text = format!(
        "interface eth0\nstart {LEASE}\nend {LEASE}\noption subnet 255.255.255.0\n\
         lease_file {leases}\npidfile {pid_file}\n"
    );
    fs::write(&config.0, text)?;
    let mut command = Command::new("busybox");
    command.args(["udhcpd", "-f", "-a", "200"]).arg(&config.0).stderr(Stdio::null());
    Ok(Process(host.run(|| Ok(command.spawn()))??))
}

/// Runs a client until it has a lease; it gives up after half a minute.
fn ask(host: &Namespace, script: &Path) -> Result {
    fs::write(script, SCRIPT)?;
    fs::set_permissions(script, fs::Permissions::from_mode(0o700))?;
    let mut command = Command::new("busybox");
    command.args(["udhcpc", "-i", "eth0", "-f", "-q", "-n", "-t", "30", "-T", "1", "-s"]);
    command.arg(script).stderr(Stdio::null());
    let status = Process(host.run(|| Ok(command.spawn()))??).wait()?;
    assert!(status.success(), "no lease: {status}");
    Ok(())
}

/// The addresses of a host's interface, as `ip` prints them.
fn addresses(host: &Namespace) -> Result<String> {
    let mut command = Command::new("ip");
    command.args(["-o", "address", "show", "dev", "eth0"]);
    let output = host.run(|| Ok(command.output()))??;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
