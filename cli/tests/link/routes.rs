//! Routes from allowed addresses: nothing for them leaves another way, whatever becomes of the
//! process.

use crate::interface::shown;
use crate::kit::{PATIENCE, Result, TempFile, until};
use crate::stream::lasting;
use crate::world::{INNER, Link, RIGHT, World};
use crate::{BYTES, ended};
use airmend_live::lab::Namespace;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg};
use std::io::IoSliceMut;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixDatagram;
use std::process::Command;

/// A host behind the peer, and one in a network that is not allowed.
const BEHIND: [&str; 2] = ["10.50.1.1", "10.51.1.1"];
const ALLOWED: &str = "10.50.7.7/16,fd50::/16";

/// Where packets for this address go: the interface, or nowhere.
pub(crate) fn way(namespace: &Namespace, address: &str) -> String {
    let found = shown(namespace, &format!("route get {address}")).unwrap_or_default();
    let mut words = found.split_whitespace().skip_while(|word| *word != "dev");
    words.nth(1).unwrap_or("nowhere").to_owned()
}

/// Killed, the link leaves routes that drop; ended, it leaves nothing.
pub(crate) fn routed() -> Result {
    let world = World::new()?;
    world.left.ip(&format!("route add default via {RIGHT}\n"))?;
    let _listener = world.listen("0.0.0.0:4433")?;
    let at = format!("{RIGHT}:4433");
    let start = |more: &[&str]| {
        let flags = [&["--peer", &at, "--allowed-ips", ALLOWED], more].concat();
        world.end(&world.left, INNER[0], &flags)
    };
    let ways = || (way(&world.left, BEHIND[0]), way(&world.left, BEHIND[1]));
    let are = |behind: &str| (behind.to_owned(), "eth0".to_owned());
    for _ in 0..2 {
        let dialer = start(&[])?;
        assert_eq!(ways(), are("mend0"));
        let all = shown(&world.left, "-6 route")?;
        assert!(
            all.contains("fd50::/16 dev mend0") && all.contains("blackhole fd50::/16"),
            "{all}"
        );
        // The kernel takes routes of IPv4 away with the interface; they come back with it.
        world.left.ip("link set mend0 down\n")?;
        assert_eq!(ways(), are("nowhere"));
        world.left.ip("link set mend0 up\n")?;
        until("the route", || (ways() == are("mend0")).then_some(()))?;
        dialer.kill()?;
        assert_eq!(ways(), are("nowhere"));
    }
    ended(start(&[])?)?;
    assert_eq!(ways(), are("eth0"));
    // Whoever wants so has none of it.
    let dialer = start(&["--no-routes"])?;
    assert_eq!(ways(), are("eth0"));
    dialer.kill()?;
    let dialer = start(&["--no-blackholes"])?;
    assert_eq!(ways(), are("mend0"));
    dialer.kill()?;
    assert_eq!(ways(), are("eth0"));
    Ok(())
}

/// The file that the next notification with one brings.
pub(crate) fn kept(manager: &UnixDatagram) -> Result<RawFd> {
    loop {
        let mut bytes = [0; 1024];
        let mut space = nix::cmsg_space!(RawFd);
        let mut buffers = [IoSliceMut::new(&mut bytes)];
        // Without CLOEXEC: the next process gets it.
        let flags = MsgFlags::empty();
        let message = recvmsg::<()>(manager.as_raw_fd(), &mut buffers, Some(&mut space), flags)?;
        let mut files = message.cmsgs()?.filter_map(|message| match message {
            ControlMessageOwned::ScmRights(files) => files.first().copied(),
            _ => None,
        });
        if let Some(file) = files.next() {
            assert!(bytes.starts_with(b"FDSTORE=1\nFDNAME=interface"));
            return Ok(file);
        }
    }
}

/// The service manager keeps the interface over the end of a process: a stream goes on, and nothing
/// leaves another way meanwhile, not even for the moment of a restart.
pub(crate) fn kept_over_a_restart() -> Result {
    let world = World::new()?;
    let _listener = world.listen("0.0.0.0:4433")?;
    let at = TempFile::new("manager");
    let manager = UnixDatagram::bind(&at.0)?;
    manager.set_read_timeout(Some(PATIENCE))?;
    let link = |address: &str| {
        let dial = format!("{RIGHT}:4433");
        let flags = ["--peer", &dial, "--allowed-ips", ALLOWED, "--address", address];
        world.command(INNER[0], &flags)
    };
    let mut command = link("10.8.0.1/24");
    command.env("NOTIFY_SOCKET", &at.0);
    let dialer = Link::start(&world.left, command)?;
    let file = kept(&manager)?;
    let mut again = None;
    lasting(world.hosts(), INNER[1].parse()?, |received| {
        until("the beginning", || (received() > BYTES / 4).then_some(()))?;
        let before = shown(&world.left, "-o link show mend0")?;
        ended(dialer)?;
        assert_eq!(way(&world.left, BEHIND[0]), "mend0");
        assert!(shown(&world.left, "address show mend0")?.contains("10.8.0.1/24"));
        // Other addresses by now.
        let command = link("10.7.0.1/24");
        let mut shell = Command::new("bash");
        let script = format!("exec 3<&{file}; LISTEN_PID=$$ exec \"$0\" \"$@\"");
        shell.args(["-c", &script]).arg(command.get_program()).args(command.get_args());
        shell.env("LISTEN_FDS", "1").env("LISTEN_FDNAMES", "interface");
        again = Some(Link::start(&world.left, shell)?);
        let after = shown(&world.left, "-o link show mend0")?;
        assert_eq!(before.split(':').next(), after.split(':').next(), "the same interface");
        let addresses = shown(&world.left, "address show mend0")?;
        assert!(addresses.contains("10.7.0.1") && !addresses.contains("10.8.0.1"), "{addresses}");
        let killed = received();
        until("as much again", || (received() > killed + BYTES / 4).then_some(()))
    })?;
    ended(again.ok_or("no restart")?)?;
    nix::unistd::close(file)?;
    until("the end of the interface", || (way(&world.left, BEHIND[0]) == "nowhere").then_some(()))
}
