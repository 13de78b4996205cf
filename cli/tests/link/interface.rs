//! The virtual interface: it keeps its addresses, IPv6 and the way to the peer.

use crate::kit::{Result, until};
use crate::stream::{stream, transfer};
use crate::world::{INNER, Link, RIGHT, World, run};
use crate::{BYTES, count, ended};
use airmend_live::lab::Namespace;
use std::time::{Duration, Instant};

/// The addresses of the two ends on the link, of IPv6.
pub(crate) const INNER6: [&str; 2] = ["fdaa::1", "fdaa::2"];
/// A second address of IPv4.
const SECOND: &str = "10.8.0.2";
/// For longer than an end takes to look at the path.
const WHILE: Duration = Duration::from_secs(3);

/// What `ip` prints there.
pub(crate) fn shown(namespace: &Namespace, arguments: &str) -> Result<String> {
    run(Some(namespace), "ip", &arguments.split(' ').collect::<Vec<_>>(), "")
}

/// The MTU of the interface.
pub(crate) fn mtu(namespace: &Namespace) -> Result<u32> {
    let text = shown(namespace, "-o link show mend0")?;
    let (_, after) = text.split_once(" mtu ").ok_or("no interface")?;
    Ok(after.split(' ').next().unwrap_or_default().parse()?)
}

/// The end that listens and the one that dials, with addresses of both families.
pub(crate) fn both_families(world: &World, dial: &str) -> Result<[Link; 2]> {
    let [left, right] = INNER6.map(|address| format!("{address}/64"));
    Ok([
        world.end(&world.right, INNER[1], &["--listen", "[::]:4433", "--address", &right])?,
        world.end(&world.left, INNER[0], &["--peer", dial, "--address", &left])?,
    ])
}

/// IPv6 is lost when an interface's MTU goes below 1280, and with it its addresses.
pub(crate) fn address_put_back() -> Result {
    let world = World::new()?;
    let [first, second] = [format!("{}/64", INNER6[1]), format!("{SECOND}/24")];
    let flags = ["--listen", "0.0.0.0:4433", "--address", &first, "--address", &second];
    let listener = world.end(&world.right, INNER[1], &flags)?;
    let inner = format!("{}/64", INNER6[0]);
    let dial = format!("{RIGHT}:4433");
    let dialer = world.end(&world.left, INNER[0], &["--peer", &dial, "--address", &inner])?;
    transfer(&world, 1_000_000)?;
    let right = &world.right;
    let all = [INNER[1], INNER6[1], SECOND];
    for change in [
        "link set mend0 mtu 1000\nlink set mend0 mtu 1422\n".to_owned(),
        "link set mend0 down\nlink set mend0 up\n".to_owned(),
        format!("address del {}/24 dev mend0\n", INNER[1]),
    ] {
        right.ip(&change)?;
        until(&format!("the addresses after {change:?}"), || {
            let addresses = shown(right, "address show mend0").ok()?;
            let are_there = all.iter().all(|address| addresses.contains(address));
            // One that is tentative cannot be bound to yet.
            (are_there && !addresses.contains("tentative")).then_some(())
        })?;
        stream([&world.left, right], INNER6[1].parse()?, 1_000_000)?;
        transfer(&world, 1_000_000)?;
    }
    ended(dialer)?;
    ended(listener)?;
    Ok(())
}

/// The link's own datagrams would enter the link.
pub(crate) fn route_through_the_link() -> Result {
    let world = World::new()?;
    let [listener, mut dialer] = both_families(&world, &format!("{RIGHT}:4433"))?;
    transfer(&world, BYTES)?;
    let wide = mtu(&world.left)?;
    lead_through_the_link(&world, &mut dialer)?;
    let begin = Instant::now();
    until("some seconds", || (begin.elapsed() > WHILE).then_some(()))?;
    assert_eq!(mtu(&world.left)?, wide);
    world.left.ip(&format!("route del {RIGHT}/32 dev mend0\n"))?;
    transfer(&world, BYTES)?;
    while let Some(line) = dialer.line_within(Duration::ZERO)? {
        assert!(!line.contains("leads through") && !line.contains("MTU"), "told once: {line}");
    }
    let figures = ended(dialer)?;
    assert!(count(&figures, "looped") > 0, "{figures}");
    let mut dialer = world.dial(&format!("{RIGHT}:4433"))?;
    transfer(&world, BYTES)?;
    lead_through_the_link(&world, &mut dialer)?;
    assert_eq!(ended(dialer)?["route_loop"], true);
    assert_eq!(ended(listener)?["route_loop"], false);
    Ok(())
}

/// Makes such a route at the left, and waits for the sentence about it.
fn lead_through_the_link(world: &World, dialer: &mut Link) -> Result {
    world.left.ip(&format!("route add {RIGHT}/32 dev mend0\n"))?;
    let told = dialer.said("leads through")?;
    assert!(told.contains(RIGHT), "{told}");
    Ok(())
}
