//! A link from its first file on, as somebody who is new to it has it: the example's file, the
//! unit's command, names, restarts, a peer that moves, one that is gone, and one with a wrong key.
//!
//! What a machine has in /etc and /run each end has for itself. The part of systemd is to keep the
//! interface over a restart, as `FileDescriptorStoreMax=` of the unit says.

use crate::interface::shown;
use crate::kit::{PATIENCE, Result, TempFile, airmend, has_steady_clock, until};
use crate::routes::{kept, way};
use crate::stream::{lasting, transfer};
use crate::world::{INNER, LEFT, Link, RIGHT, World};
use crate::{BYTES, count, ended};
use airmend_live::lab::Namespace;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::net::{IpAddr, UdpSocket};
use std::os::fd::RawFd;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const UNIT: &str = include_str!("../../../packaging/airmend-link@.service");
const EXAMPLE: &str = include_str!("../../../packaging/home.toml");
/// The link's name, and with it that of its interface.
const NAME: &str = "home";
const PEER: &str = "oslo.example.net";
/// Behind the peer, where everything goes through the link.
const BEHIND: &str = "10.50.1.1";
/// Where the peer moves.
const MOVED: &str = "192.0.2.9";

/// A machine: its namespace, and its /etc and /run.
struct Machine<'a> {
    namespace: &'a Namespace,
    inner: &'static str,
    root: TempFile,
    manager: UnixDatagram,
}

impl Drop for Machine<'_> {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.root.0).ok();
    }
}

impl<'a> Machine<'a> {
    /// A machine that finds no name.
    fn new(namespace: &'a Namespace, inner: &'static str) -> Result<Self> {
        let root = TempFile::new("machine");
        for directory in ["etc/airmend/link", "run"] {
            fs::create_dir_all(root.0.join(directory))?;
        }
        fs::write(root.0.join("etc/nsswitch.conf"), "hosts: files\n")?;
        fs::write(root.0.join("etc/hosts"), "127.0.0.1 localhost\n")?;
        let manager = UnixDatagram::bind(root.0.join("run/notify"))?;
        manager.set_read_timeout(Some(PATIENCE))?;
        Ok(Self { namespace, inner, root, manager })
    }

    fn file(&self, extension: &str) -> PathBuf {
        self.root.0.join("etc/airmend/link").join(format!("{NAME}.{extension}"))
    }

    /// Makes a key as the example says; its public half.
    fn keygen(&self) -> Result<String> {
        fs::remove_file(self.file("key")).ok();
        let made = airmend().arg("keygen").arg(self.file("key")).output()?;
        Ok(String::from_utf8(made.stdout)?.trim().to_owned())
    }

    /// Copies the example and changes what this machine needs.
    fn configure(&self, key: &str, changes: &[(&str, &str)]) -> Result {
        let (nobody, address) = ("0".repeat(64), format!("{}/24", self.inner));
        let mut text = EXAMPLE.replace(&nobody, key).replace("10.9.0.1/24", &address);
        for (from, to) in changes {
            assert!(text.contains(from), "the example has no {from:?}");
            text = text.replacen(from, to, 1);
        }
        Ok(fs::write(self.file("toml"), text)?)
    }

    /// From now on it finds the peer here.
    fn finds(&self, address: &str) -> Result {
        Ok(fs::write(self.root.0.join("etc/hosts"), format!("{address} {PEER}\n"))?)
    }

    /// Starts it for the first time.
    fn start(&self) -> Result<Link> {
        self.start_with(None)
    }

    /// Starts it again, with the interface that was kept since the last time.
    fn start_again(&self) -> Result<Link> {
        let file = kept(&self.manager)?;
        let link = self.start_with(Some(file));
        nix::unistd::close(file)?;
        link
    }

    /// Starts what the unit starts.
    fn start_with(&self, interface: Option<RawFd>) -> Result<Link> {
        let exec = UNIT.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/bin/airmend "));
        let arguments = exec.ok_or("no command")?.replace("%I", NAME);
        let pass = interface.map_or(String::new(), |file| {
            format!("exec 3<&{file}; export LISTEN_FDS=1 LISTEN_FDNAMES=interface LISTEN_PID=$$;")
        });
        let script = format!(
            "mount --bind \"$1/run\" /run && mount --bind \"$1/etc\" /etc && {pass} \
             exec \"$0\" {arguments} --json"
        );
        let mut shell = Command::new("unshare");
        shell.args(["--mount", "bash", "-c", &script]).arg(airmend().get_program());
        shell.arg(&self.root.0).env("NOTIFY_SOCKET", "/run/notify");
        Link::start(self.namespace, shell)
    }

    fn status(&self) -> Result<Value> {
        let socket = self.root.0.join("run/airmend").join(NAME).join("status.sock");
        let output = airmend().args(["status", "--json", "--socket"]).arg(socket).output()?;
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    fn has_carrier(&self) -> bool {
        let shown = shown(self.namespace, &format!("link show {NAME}"));
        shown.is_ok_and(|text| !text.contains("NO-CARRIER"))
    }
}

/// What must not take longer, where the clock can tell.
fn within(what: &str, begin: Instant, limit: Duration) {
    let passed = begin.elapsed();
    println!("{what}: {passed:.1?}");
    assert!(!has_steady_clock() || passed <= limit, "{what}: {passed:.1?}, wanted {limit:?}");
}

pub(crate) fn as_a_new_user() -> Result {
    let world = World::new()?;
    // What is not for the link leaves here.
    world.left.ip(&format!("route add default via {RIGHT}\n"))?;
    world.right.ip(&format!("address add {BEHIND}/32 dev lo\n"))?;
    let begun = |arrived: &dyn Fn() -> u64| until("one", || (arrived() > 0).then_some(()));
    assert_eq!(sources(&world, begun)?, [LEFT.parse()?].into(), "without a link");
    let left = Machine::new(&world.left, INNER[0])?;
    let right = Machine::new(&world.right, INNER[1])?;
    let (at_left, at_right) = (left.keygen()?, right.keygen()?);
    right.configure(&at_left, &[("\"oslo\"", "\"laptop\"")])?;
    let changes = [
        ("listen = \"[::]:4433\"\n", ""),
        ("# endpoint =", "endpoint ="),
        ("# allowed-ips =", "allowed-ips ="),
    ];
    left.configure(&at_right, &changes)?;

    // A boot without names, then with them.
    let mut dialer = left.start()?;
    dialer.said("the name of the peer has no address now")?;
    let mut listener = right.start()?;
    let begin = Instant::now();
    left.finds(RIGHT)?;
    dialer.said("the peer is there")?;
    listener.said("the peer is there")?;
    transfer(&world, 1_000)?;
    within("from the name to the first bytes", begin, Duration::from_secs(10));
    assert_eq!(way(&world.left, BEHIND), NAME);

    let [mut dialer, listener] = restarted(&world, [&left, &right], [dialer, listener])?;
    moved(&world, &mut dialer)?;

    let begin = Instant::now();
    listener.kill()?;
    dialer.said("no answer from")?;
    let is_silent = || left.status().ok().filter(|status| status["peers"][0]["is_silent"] == true);
    until("the status", is_silent)?;
    until("no carrier", || (!left.has_carrier()).then_some(()))?;
    within("from the peer's end to log, status and carrier", begin, Duration::from_secs(3));
    assert_eq!(way(&world.left, BEHIND), NAME, "nothing leaves beside the link");

    // It comes back at another address, which its name says.
    readdress(&world, MOVED, RIGHT)?;
    let listener = right.start_again()?;
    let begin = Instant::now();
    left.finds(RIGHT)?;
    dialer.said(&format!("the peer is there, at {RIGHT}"))?;
    within("from the name's change to the peer's answer", begin, Duration::from_secs(5));
    transfer(&world, 1_000)?;
    ended(listener)?;

    // This end has another key by now, of which the peer does not know.
    ended(dialer)?;
    left.keygen()?;
    let mut listener = right.start_again()?;
    let dialer = left.start_again()?;
    listener.said(&format!("refused an initiation from {LEFT}"))?;
    assert!(count(&ended(listener)?, "forged") > 0);
    ended(dialer)?;
    Ok(())
}

fn readdress(world: &World, from: &str, to: &str) -> Result {
    let change = format!("address del {from}/24 dev eth0\naddress add {to}/24 dev eth0\n");
    Ok(world.right.ip(&change)?)
}

/// From where packets come to a host behind the peer, one in a millisecond: those that leave beside
/// the link have the outer address. `meanwhile` is called with what tells how many have come.
fn sources(
    world: &World,
    meanwhile: impl FnOnce(&dyn Fn() -> u64) -> Result,
) -> Result<BTreeSet<IpAddr>> {
    let behind = world.right.run(|| Ok(UdpSocket::bind((BEHIND, 5007))))??;
    behind.set_read_timeout(Some(Duration::from_millis(100)))?;
    let sender = world.left.run(|| Ok(UdpSocket::bind("0.0.0.0:0")))??;
    let (arrived, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                // Where nothing takes it, it is held back.
                sender.send_to(b"x", (BEHIND, 5007)).ok();
                thread::sleep(Duration::from_millis(1));
            }
        });
        let found = scope.spawn(|| {
            let mut found = BTreeSet::new();
            while !stop.load(Ordering::Relaxed) {
                if let Ok((_, from)) = behind.recv_from(&mut [0; 8]) {
                    found.insert(from.ip());
                    arrived.fetch_add(1, Ordering::Relaxed);
                }
            }
            found
        });
        let done = meanwhile(&|| arrived.load(Ordering::Relaxed));
        stop.store(true, Ordering::Relaxed);
        let found = found.join().map_err(|_| "a panic")?;
        done.map(|()| found)
    })
}

/// `systemctl restart` of each end: a stream lives, and nothing leaves beside the link meanwhile.
fn restarted(world: &World, machines: [&Machine<'_>; 2], links: [Link; 2]) -> Result<[Link; 2]> {
    let mut again = None;
    let found = sources(world, |_| {
        again = Some(restart_both(world, machines, links)?);
        Ok(())
    })?;
    assert_eq!(found, [INNER[0].parse()?].into(), "what is for the link leaves beside it");
    again.ok_or_else(|| "no restart".into())
}

fn restart_both(
    world: &World,
    [left, right]: [&Machine<'_>; 2],
    [dialer, listener]: [Link; 2],
) -> Result<[Link; 2]> {
    let mut again = None;
    lasting(world.hosts(), INNER[1].parse()?, |received| {
        let goes_on = || {
            let before = received();
            until("as much again", || (received() > before + BYTES / 4).then_some(()))
        };
        goes_on()?;
        ended(dialer)?;
        assert_eq!(way(&world.left, BEHIND), NAME, "the interface stays");
        let mut dialer = left.start_again()?;
        dialer.said("the peer is there")?;
        goes_on()?;
        ended(listener)?;
        let mut listener = right.start_again()?;
        listener.said("the peer is there")?;
        goes_on()?;
        again = Some([dialer, listener]);
        Ok(())
    })?;
    again.ok_or_else(|| "no restart".into())
}

/// The peer moves to another address; a stream lives.
fn moved(world: &World, dialer: &mut Link) -> Result {
    lasting(world.hosts(), INNER[1].parse()?, |received| {
        until("the beginning", || (received() > BYTES / 4).then_some(()))?;
        let begin = Instant::now();
        readdress(world, RIGHT, MOVED)?;
        dialer.said(&format!("the peer has moved to {MOVED}"))?;
        within("from the move to the peer's new address", begin, Duration::from_secs(5));
        let before = received();
        until("as much again", || (received() > before + BYTES / 4).then_some(()))
    })
}
