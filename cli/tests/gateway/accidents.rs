//! What operators do to a gateway by mistake, or to its interface.

use crate::changes::goes_on;
use crate::daemon::{Daemon, command, repairs, socket};
use crate::kit::{Result, until};
use crate::others::refusal;
use crate::transfer::{Plan, transfer};
use crate::world::{RATE_BPS, Shape, World, air_queue, forwarding, run};
use airmend_live::lab::Namespace;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};

const CLSACT: &[&str] = &["--attach", "clsact"];

/// What a gateway may have left in a namespace, where none runs any more.
pub(crate) fn left_in(base: &Namespace) -> Result<Vec<String>> {
    let links = run(base, "ip", &["-o", "link"], "")?;
    let qdiscs = run(base, "tc", &["qdisc", "show"], "")?;
    let is_ours = |line: &&str| line.contains("airmend") || line.contains("clsact");
    Ok(links.lines().chain(qdiscs.lines()).filter(is_ours).map(str::to_owned).collect())
}

/// The name of the one reinjection device in a namespace.
pub(crate) fn reinjection(base: &Namespace) -> Result<String> {
    let links = run(base, "ip", &["-o", "link"], "")?;
    let names = links.lines().filter_map(|line| line.split(": ").nth(1));
    Ok(names.filter(|name| name.starts_with("airmend")).collect::<Vec<_>>().concat())
}

/// Waits until the gateway has ended by itself, with one sentence that has these words and nothing
/// left behind.
fn ends(world: &World, daemon: &mut Daemon, words: &str) -> Result {
    let status = daemon.wait()?;
    let said = daemon.said();
    let last = said.last().ok_or("it said nothing")?;
    println!("{last}");
    assert!(!status.success() && last.contains(words), "{status}: {said:?}");
    assert!(!daemon.socket().exists(), "its socket is left");
    assert_eq!(left_in(&world.base)?, [""; 0]);
    Ok(())
}

/// A gateway cannot go on without its interface, and says so.
pub(crate) fn deleted() -> Result {
    deleted_with(&[])
}

pub(crate) fn deleted_with_clsact() -> Result {
    deleted_with(CLSACT)
}

fn deleted_with(flags: &[&str]) -> Result {
    let world = World::new(Shape::default())?;
    let mut daemon = Daemon::start(&world.base, "air0", flags)?;
    assert!(daemon.socket().exists());
    run(&world.base, "ip", &["link", "del", "air0"], "")?;
    ends(&world, &mut daemon, "air0 has vanished")
}

/// The whole base station moves to another network namespace, but not the gateway: that ends, and
/// another one mends the same transfers at the new place.
pub(crate) fn moved() -> Result {
    moved_with(&[])
}

pub(crate) fn moved_with_clsact() -> Result {
    moved_with(CLSACT)
}

fn moved_with(flags: &[&str]) -> Result {
    let world = World::new(Shape::default())?;
    let mut daemon = Daemon::start(&world.base, "air0", flags)?;
    let place = Namespace::new()?;
    place.run(|| Ok(forwarding()))??;
    transfer(&world, &Plan::lasting(4), |progress| {
        progress.reach(3_000_000)?;
        let to = place.path();
        let to = to.display();
        world.base.ip(&format!("link set air0 netns {to}\nlink set wired0 netns {to}\n"))?;
        ends(&world, &mut daemon, "moved to another network namespace")?;
        assert_eq!(left_in(&place)?, [""; 0]);
        // The kernel takes the queue away with the move; without one the cable would drop.
        run(&place, "tc", &["-batch", "-"], &air_queue("air0", RATE_BPS))?;
        let again = Daemon::start(&place, "air0", flags)?;
        place.ip("link set air0 up\nlink set wired0 up\n\
             address add 10.77.1.1/24 dev wired0\naddress add 10.77.2.1/24 dev air0\n")?;
        let mended = again.mended(20)?;
        println!("{mended} repairs at the new place");
        again.end()?;
        assert_eq!(left_in(&place)?, [""; 0]);
        Ok(())
    })?;
    Ok(())
}

/// Even if it comes back at once, the gateway has lost it: what it listens with is bound to none.
pub(crate) fn moved_and_back() -> Result {
    let world = World::new(Shape::default())?;
    let mut daemon = Daemon::start(&world.base, "air0", &[])?;
    let place = Namespace::new()?;
    let (there, back) = (place.path(), world.base.path());
    world.base.ip(&format!("link set air0 netns {}\n", there.display()))?;
    place.ip(&format!("link set air0 netns {}\n", back.display()))?;
    ends(&world, &mut daemon, "air0 has vanished")
}

/// The interface is the same one under another name, and the old name may be another one's.
pub(crate) fn renamed() -> Result {
    renamed_with(&[])
}

pub(crate) fn renamed_with_clsact() -> Result {
    renamed_with(CLSACT)
}

fn renamed_with(flags: &[&str]) -> Result {
    let world = World::new(Shape::default())?;
    let daemon = Daemon::start(&world.base, "air0", flags)?;
    goes_on(&world, &daemon, "renamed", || {
        // Before Linux 6.2 only an interface that is down can be renamed.
        world.base.ip("link set air0 down\nlink set air0 name radio0\nlink set radio0 up\n\
             link add air0 type veth peer name other0\n")?;
        world.at_base("tc", &["qdisc", "add", "dev", "air0", "clsact"], "").map(drop)
    })?;
    until("the new name in the status", || {
        daemon.status().ok().filter(|status| status["interface"] == "radio0")
    })?;
    let said = until("the interface being up, and the new name, in the log", || {
        let said = daemon.said();
        let last = said.iter().rfind(|line| line.contains("interface down") || line.contains("up"));
        let is_up = !last.is_some_and(|line| line.contains("interface down"));
        (is_up && said.iter().any(|line| line.contains("interface renamed"))).then_some(said)
    })?;
    let named = said.iter().filter(|line| line.contains("interface renamed"));
    assert_eq!(named.filter(|line| line.contains("air0") && line.contains("radio0")).count(), 1);
    daemon.end()?;
    let left = left_in(&world.base)?;
    assert!(left.len() == 1 && left[0].contains("dev air0"), "the other's clsact alone: {left:?}");
    Ok(())
}

/// Who starts a gateway where there is one learns that in a sentence, and disturbs nothing.
pub(crate) fn second_instance() -> Result {
    second_with(&[])
}

pub(crate) fn second_instance_with_clsact() -> Result {
    second_with(CLSACT)
}

fn second_with(flags: &[&str]) -> Result {
    let world = World::new(Shape::default())?;
    let first = Daemon::start(&world.base, "air0", flags)?;
    let filters = || world.at_base("tc", &["filter", "show", "dev", "air0", "ingress"], "");
    let before = filters()?;
    transfer(&world, &Plan::lasting(4), |progress| {
        progress.reach(1_200_000)?;
        let elsewhere = socket();
        for (socket, words) in [
            (elsewhere.as_path(), "another airmend gateway mends air0 already"),
            (first.socket(), "a gateway that runs already answers at"),
        ] {
            for flags in [&[][..], CLSACT, &["--observe"]] {
                let mut second = command("air0", socket, flags);
                second.env_remove("NOTIFY_SOCKET");
                let output: Output = world.base.run(|| Ok(second.output()))??;
                refusal(&output, words)?;
            }
        }
        assert!(!elsewhere.exists(), "its socket is left");
        let before = repairs(&first.status()?);
        let after = first.mended(before + 20)?;
        println!("{before} repairs before, {after} already");
        Ok(())
    })?;
    assert_eq!(filters()?, before);
    let links = run(&world.base, "ip", &["-o", "link"], "")?;
    assert_eq!(links.matches("airmend").count(), 1, "{links}");
    first.end()?;
    assert_eq!(left_in(&world.base)?, [""; 0]);
    Ok(())
}

/// No ordinary user of the machine can keep a gateway from starting: nothing that marks an
/// interface as taken can be had without CAP_NET_ADMIN.
pub(crate) fn name_taken() -> Result {
    let base = Namespace::new()?;
    base.ip("link add air0 type veth peer name other\nlink set air0 up\n")?;
    let link = run(&base, "ip", &["-o", "link", "show", "air0"], "")?;
    let index: u32 = link.split(':').next().ok_or("no index")?.parse()?;
    let name = format!("airmend-gateway-{index}");
    let taken = base.run(|| {
        Ok(SocketAddr::from_abstract_name(name).and_then(|name| UnixDatagram::bind_addr(&name)))
    })??;
    let mut ordinary = Command::new("ip");
    ordinary.args(["tuntap", "add", &format!("airmend{index:x}"), "mode", "tap"]);
    ordinary.uid(65_534).gid(65_534);
    let made = base.run(|| Ok(ordinary.output()))??;
    println!("an ordinary user: {}", String::from_utf8_lossy(&made.stderr).trim());
    assert!(!made.status.success());
    Daemon::start(&base, "air0", &[])?.kill()?;
    // What a killed one had ends with it.
    Daemon::start(&base, "air0", &[])?.end()?;
    drop(taken);
    Ok(())
}
