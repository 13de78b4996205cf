//! The first window of an end's own connections, over a path that netem makes longer.

use crate::ended;
use crate::interface::{INNER6, shown};
use crate::kit::{Result, TempFile, airmend, until};
use crate::netem::shape;
use crate::stream::transfer;
use crate::world::{INNER, Link, RIGHT, World};
use airmend_live::lab::Namespace;
use nix::sys::signal::Signal;
use std::fs;

/// What the left end's hosts have behind the right one.
const NETWORK: &str = "10.50.0.0/16";
/// More than the path holds, 100 kB, so that it is measured.
const BYTES: u64 = 1_000_000;

/// The windows follow what the path holds, of addresses and of routes of both families, and are
/// gone when nobody wants them; the other end leaves its routes as they are.
pub(crate) fn follows_the_path() -> Result {
    let world = World::new()?;
    for [from, to] in [[&world.left, &world.right], [&world.right, &world.left]] {
        shape(from, to, "delay 20ms")?;
    }
    let inner = INNER6.map(|address| format!("{address}/64"));
    let flags = ["--listen", "0.0.0.0:4433", "--address", &inner[1], "--no-initcwnd"];
    let listener = world.end(&world.right, INNER[1], &flags)?;
    let file = TempFile::new("left.toml");
    let configure = |more: &str| {
        let ([v4, _], [v6, _], key) = (INNER, &inner, world.key.0.display());
        let text = format!(
            "key-file = \"{key}\"\naddress = [\"{v4}/24\", \"{v6}\"]\n{more}\n[[peer]]\n\
             endpoint = \"{RIGHT}:4433\"\nallowed-ips = \"{NETWORK}\"\n"
        );
        fs::write(&file.0, text)
    };
    configure("")?;
    let mut command = airmend();
    command.args(["link", "--json", "--config"]).arg(&file.0);
    let mut dialer = Link::start(&world.left, command)?;
    let own = ["10.9.0.0/24", "fdaa::/64"];
    let all = [own[0], own[1], NETWORK];
    assert!(all.iter().all(|network| window(&world.left, network).is_ok_and(|it| it.is_none())));
    transfer(&world, BYTES)?;
    for change in ["", "link set mend0 down\nlink set mend0 up\n"] {
        world.left.ip(change)?;
        for network in all {
            let segments = until(&format!("a window to {network} after {change:?}"), || {
                window(&world.left, network).ok().flatten()
            })?;
            // 64 KB of segments of 1,382 bytes at most.
            assert!((11..=47).contains(&segments), "{network}: {segments}");
        }
    }
    let told = dialer.said("initcwnd")?;
    assert!(all.iter().any(|network| told.contains(network)), "{told}");
    assert_eq!(window(&world.left, "fe80::/64")?, None);
    configure("no-initcwnd = true")?;
    dialer.signal(Signal::SIGHUP)?;
    for network in all {
        until(&format!("no window to {network}"), || {
            window(&world.left, network).is_ok_and(|it| it.is_none()).then_some(())
        })?;
    }
    for network in own {
        assert_eq!(window(&world.right, network)?, None, "{network}");
    }
    transfer(&world, BYTES)?;
    ended(dialer)?;
    ended(listener)?;
    Ok(())
}

/// The first window of the route to a network, if it has one.
fn window(host: &Namespace, network: &str) -> Result<Option<u32>> {
    let family = if network.contains(':') { "-6" } else { "-4" };
    let routes = shown(host, &format!("{family} route show dev mend0"))?;
    let route = routes.lines().find(|line| line.starts_with(network));
    let route = route.ok_or_else(|| format!("no route to {network}: {routes}"))?;
    let mut words = route.split_whitespace().skip_while(|word| *word != "initcwnd");
    Ok(words.nth(1).map(str::parse).transpose()?)
}
