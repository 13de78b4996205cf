//! A router on the path that marks "congestion experienced" what understands ECN (RFC 3168): nft,
//! where the frames leave the dialer's machine.

use crate::ended;
use crate::kit::{Result, until};
use crate::stream::transfer;
use crate::world::{INNER, Link, World, run};
use airmend_live::lab::Namespace;
use nix::sys::socket::{setsockopt, sockopt};
use serde_json::Value;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

/// Datagrams of each field.
const DATAGRAMS: u64 = 50;
/// Of these so many wait at a time.
const AT_ONCE: usize = 2;
const FIELDS: [&str; 4] = ["not-ect", "ect1", "ect0", "ce"];

/// What this machine lacks for the tests.
pub(crate) fn lacks() -> Option<String> {
    let nft = nft(None, "list ruleset\n");
    nft.err().map(|error| format!("nft (nftables): {error}"))
}

/// Without the rate control the mark reaches the receiver inside.
pub(crate) fn mark_arrives_inside(address: &str) -> Result {
    let (outside, inside, sender) = through_router(address, &["--set", "rate_control=off"])?;
    // What arrives inside, by the field with which it was sent.
    assert_eq!(inside, [DATAGRAMS, 0, 0, 3 * DATAGRAMS], "outside {outside:?}, {sender}");
    // Frames of one field may leave as one super-packet.
    assert!(outside[1] > 0 && outside[2] > 0, "{outside:?}");
    assert_eq!(reports(&sender), 0, "{sender}");
    Ok(())
}

/// With it the link answers itself, and the fields inside stay.
pub(crate) fn mark_is_answered(address: &str) -> Result {
    let (outside, inside, sender) = through_router(address, &[])?;
    assert_eq!(inside, [DATAGRAMS; 4], "outside {outside:?}, {sender}");
    assert!(outside[2] > outside[0] && outside[1] + outside[3] == 0, "{outside:?}");
    assert!(reports(&sender) > 0, "{sender}");
    Ok(())
}

/// A bulk transfer, whose datagrams leave as super-packets, is marked and arrives whole.
pub(crate) fn marked_transfer() -> Result {
    let (world, ends) = world("192.0.2.2:4433", &[])?;
    transfer(&world, 5_000_000)?;
    let outside = counted(&world.left, "outside")?;
    let [listener, dialer] = ends;
    let (sender, _) = (ended(dialer)?, ended(listener)?);
    assert!(outside[2] > 10 * outside[0] && reports(&sender) > 0, "{outside:?} {sender}");
    Ok(())
}

/// Datagrams of each field through the link and the router: how many of each field there are
/// outside before the router, and inside where they arrive, and the sender's figures.
fn through_router(address: &str, flags: &[&str]) -> Result<([u64; 4], [u64; 4], Value)> {
    let (world, [listener, dialer]) = world(address, flags)?;
    nft(Some(&world.right), &table("inside", "input", "iifname mend0 udp dport 9", ""))?;
    let sockets = FIELDS.iter().zip(0..).map(|(_, field)| {
        let socket = world.left.run(|| Ok(UdpSocket::bind((INNER[0], 0))))??;
        setsockopt(&socket, sockopt::Ipv4Tos, &field)?;
        Ok(socket)
    });
    let sockets: Vec<UdpSocket> = sockets.collect::<Result<_>>()?;
    let mut inside = [0; 4];
    // So few at once that no more than a packet of a flow waits behind the one that is sent: CoDel
    // leaves it alone (RFC 8289 §4.2), however long that is.
    for sent in (0..=DATAGRAMS).step_by(AT_ONCE).skip(1) {
        for socket in sockets.iter().flat_map(|socket| [socket; AT_ONCE]) {
            socket.send_to(&[0; 100], (INNER[1], 9))?;
        }
        inside = until("all datagrams", || {
            let inside = counted(&world.right, "inside").ok()?;
            (inside.iter().sum::<u64>() == 4 * sent).then_some(inside)
        })?;
    }
    // The marks are reported with a link ACK, which may still be under way.
    exchange(&world)?;
    let outside = counted(&world.left, "outside")?;
    ended(listener)?;
    Ok((outside, inside, ended(dialer)?))
}

/// A link through the router.
fn world(address: &str, flags: &[&str]) -> Result<(World, [Link; 2])> {
    let world = World::new()?;
    let mark = "ip ecn { ect0, ect1 } ip ecn set ce\nip6 ecn { ect0, ect1 } ip6 ecn set ce\n";
    nft(Some(&world.left), &table("outside", "output", "udp dport 4433", mark))?;
    let listen = [&["--listen", "[::]:4433"], flags].concat();
    let dial = [&["--peer", address], flags].concat();
    let listener = world.end(&world.right, INNER[1], &listen)?;
    let dialer = world.end(&world.left, INNER[0], &dial)?;
    // The first frames leave before it is known that the peer reads the field.
    exchange(&world)?;
    Ok((world, [listener, dialer]))
}

/// A request and its answer over the link. The answer bears a link ACK for all that came before.
fn exchange(world: &World) -> Result {
    let near = world.left.run(|| Ok(UdpSocket::bind((INNER[0], 0))))??;
    let far = world.right.run(|| Ok(UdpSocket::bind((INNER[1], 7))))??;
    for socket in [&near, &far] {
        socket.set_read_timeout(Some(Duration::from_millis(50)))?;
    }
    let address = SocketAddr::from((INNER[1].parse::<IpAddr>()?, 7));
    until("an answer over the link", || {
        near.send_to(b"request", address).ok()?;
        let (_, from) = far.recv_from(&mut [0; 8]).ok()?;
        far.send_to(b"answer", from).ok()?;
        near.recv(&mut [0; 8]).ok()
    })?;
    Ok(())
}

/// A table that counts each field of what matches, then does something to it.
fn table(name: &str, hook: &str, matching: &str, then: &str) -> String {
    let counters = [0, 1, 2, 3].map(|number| format!("counter seen{number} {{ }}\n")).concat();
    let rules: String = (0..)
        .zip(FIELDS)
        .map(|(number, field)| {
            format!(
                "{matching} ip ecn {field} counter name seen{number}\n\
             {matching} ip6 ecn {field} counter name seen{number}\n"
            )
        })
        .collect();
    let then: String = then.lines().map(|rule| format!("{matching} {rule}\n")).collect();
    format!(
        "table inet {name} {{\n{counters}chain fields {{\n\
         type filter hook {hook} priority 0; policy accept;\n{rules}{then}}}\n}}\n"
    )
}

/// What the table has counted of each field.
fn counted(namespace: &Namespace, name: &str) -> Result<[u64; 4]> {
    let mut counts = [0; 4];
    for (number, count) in counts.iter_mut().enumerate() {
        let text = nft(Some(namespace), &format!("list counter inet {name} seen{number}\n"))?;
        let packets = text.split_whitespace().skip_while(|word| *word != "packets").nth(1);
        *count = packets.ok_or("no counter")?.parse()?;
    }
    Ok(counts)
}

fn reports(figures: &Value) -> u64 {
    figures["agent_counters"]["link_ce_reports"].as_u64().unwrap_or(0)
}

/// Runs nft with these commands; what it printed.
fn nft(namespace: Option<&Namespace>, commands: &str) -> Result<String> {
    run(namespace, "nft", &["-f", "-"], commands)
}
