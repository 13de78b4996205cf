//! What the gateway has no business with, and where it cannot be.

use crate::daemon::{Daemon, command, socket};
use crate::kit::{PATIENCE, Result, airmend};
use crate::world::{AIR, Shape, World, run};
use airmend_live::lab::Namespace;
use std::io::ErrorKind;
use std::net::UdpSocket;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};
use std::thread;

/// Packets that are no TCP never leave the kernel.
pub(crate) fn no_tcp() -> Result {
    const DATAGRAMS: usize = 500;
    let world = World::new(Shape::default())?;
    let daemon = Daemon::start(&world.base, "air0", &[])?;
    let bind = |namespace: &Namespace, address: &str| -> Result<UdpSocket> {
        let socket = namespace.run(|| Ok(UdpSocket::bind(address)))??;
        socket.set_read_timeout(Some(PATIENCE))?;
        Ok(socket)
    };
    for addresses in [["10.77.1.2:7", "10.77.2.2:7"], ["[fd77:1::2]:7", "[fd77:2::2]:7"]] {
        let [fixed, mobile] =
            [bind(&world.fixed, addresses[0])?, bind(&world.mobiles[0], addresses[1])?];
        for number in 0..DATAGRAMS {
            let mut buffer = [0; 1_400];
            buffer[..8].copy_from_slice(&number.to_be_bytes());
            mobile.send_to(&buffer, addresses[0])?;
            let (length, from) = fixed.recv_from(&mut buffer)?;
            fixed.send_to(&buffer[..length], from)?;
            assert_eq!(mobile.recv(&mut buffer)?, 1_400);
            assert_eq!(buffer[..8], number.to_be_bytes());
        }
        // To a port where nobody listens: ICMP comes back.
        mobile.connect(addresses[0].replace(":7", ":9"))?;
        mobile.send(b"hello")?;
        let refused = mobile.recv(&mut [0]).err().map(|error| error.kind());
        assert_eq!(refused, Some(ErrorKind::ConnectionRefused));
    }
    let status = daemon.end()?;
    let visited: u64 = status["packets"]
        .as_object()
        .map_or(0, |paths| paths.values().filter_map(serde_json::Value::as_u64).sum());
    println!("{} frames without TCP, {visited} visited the daemon", world.cables.others(AIR));
    assert_eq!((visited, &status["flows"]), (0, &0.into()), "{status}");
    assert!(world.cables.others(AIR) >= 4 * DATAGRAMS as u64);
    Ok(())
}

/// Each ends at once with one sentence, which has these words.
pub(crate) fn bad_places() -> Result {
    let base = Namespace::new()?;
    base.ip("link set lo up\nlink add air0 type veth peer name other\nlink set air0 up\n")?;
    let runs = |mut command: Command| -> Result<Output> {
        command.env_remove("NOTIFY_SOCKET");
        Ok(base.run(|| Ok(command.output()))??)
    };
    let refused = |interface: &str, flags: &[&str], words: &str| -> Result {
        refusal(&runs(command(interface, &socket(), flags))?, words)
    };
    refused("air9", &[], "there is no interface air9")?;
    refused("lo", &[], "lo is the loopback interface")?;
    refused("air0", &["--agent", "tulip"], "alone")?;
    if run(&base, "ip", &["link", "add", "sit9", "type", "sit", "local", "10.0.0.1"], "").is_ok() {
        refused("sit9", &[], "carries neither Ethernet frames nor IP packets")?;
    }
    let mut ordinary = command("air0", &socket(), &[]);
    ordinary.uid(65_534).gid(65_534);
    match runs(ordinary) {
        Ok(output) => refusal(&output, "lacks CAP_NET_ADMIN")?,
        Err(why) => println!("other users cannot run this program here: {why}"),
    }
    let without_bpf = || {
        let dropped = caps::drop(None, caps::CapSet::Bounding, caps::Capability::CAP_BPF);
        dropped.map_err(|error| error.to_string())?;
        runs(command("air0", &socket(), &[])).map_err(|error| error.to_string())
    };
    let output = thread::scope(|scope| scope.spawn(without_bpf).join());
    refusal(&output.map_err(|_| "a panic")??, "lacks CAP_BPF")?;
    let unknown = airmend().args(["gateway", "air0", "--attach", "nowhere"]).output()?;
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("auto, tcx or clsact"));
    Ok(())
}

/// It has ended with one sentence, which has these words.
pub(crate) fn refusal(output: &Output, words: &str) -> Result {
    let said = String::from_utf8_lossy(&output.stderr);
    println!("{}", said.trim());
    assert!(!output.status.success(), "{words}");
    assert!(said.contains(words) && said.trim().lines().count() == 1, "{words}: {said}");
    Ok(())
}
