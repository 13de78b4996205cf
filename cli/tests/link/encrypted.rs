//! Encrypted TCP inside the link, whose headers the link cannot read: WireGuard and ESP of the
//! kernel's own, over a path that delays and loses.

use crate::kit::Result;
use crate::stream::stream;
use crate::world::{INNER, RIGHT, World, queue, run};
use crate::{count, ended};
use airmend_live::lab::Namespace;
use std::fs;
use std::time::Instant;

/// Bytes of a transfer.
const BYTES: u64 = 3_000_000;
/// The path of each direction.
const PATH: &str = "netem delay 10ms loss 5% rate 20mbit limit 1000";
/// The addresses within WireGuard.
const PRIVATE: [&str; 2] = ["10.10.0.1", "10.10.0.2"];

/// WireGuard from end to end.
pub(crate) fn wireguard() -> Result {
    is_mended(|world| {
        let ends = [&world.left, &world.right];
        let keys = [secret()?, secret()?];
        let publics = [&keys[0], &keys[1]].map(|key| run(None, "wg", &["pubkey"], key));
        let [left, right] = publics;
        let publics = [left?, right?];
        for (this, other) in [(0, 1), (1, 0)] {
            let namespace = ends[this];
            let address = PRIVATE[this];
            namespace
                .ip(&format!("link add wg0 type wireguard\naddress add {address}/24 dev wg0\n"))?;
            let (peer, allowed) = (publics[other].trim(), format!("{}/32", PRIVATE[other]));
            let endpoint = format!("{}:51820", INNER[other]);
            let flags = ["set", "wg0", "listen-port", "51820", "private-key", "/dev/stdin", "peer"];
            let of_peer = [peer, "allowed-ips", &allowed, "endpoint", &endpoint];
            run(Some(namespace), "wg", &[&flags[..], &of_peer].concat(), &keys[this])?;
            namespace.ip("link set wg0 mtu 1340 up\n")?;
        }
        Ok(PRIVATE[1])
    })
}

/// ESP in transport mode (RFC 4303) between the ends, AES-CBC with HMAC-SHA-256.
pub(crate) fn esp() -> Result {
    is_mended(|world| {
        for (namespace, [this, other]) in
            [(&world.left, INNER), (&world.right, [INNER[1], INNER[0]])]
        {
            for (from, to, direction) in [(this, other, "out"), (other, this, "in")] {
                let ends = format!("src {from} dst {to} proto esp");
                let keys = format!(
                    "auth hmac(sha256) 0x{} enc cbc(aes) 0x{}",
                    "5a".repeat(32),
                    "a5".repeat(16)
                );
                let state =
                    format!("xfrm state add {ends} spi 0x100 reqid 1 mode transport {keys}\n");
                let policy = format!(
                    "xfrm policy add src {from} dst {to} proto tcp dir {direction} \
                     tmpl {ends} reqid 1 mode transport\n"
                );
                namespace.ip(&(state + &policy))?;
            }
        }
        Ok(INNER[1])
    })
}

/// TCP inside retransmits hardly anything with `--class encrypted`, and is faster than with the
/// default rules, for which it is traffic of another kind. `encrypt` returns where the right end
/// is reached.
fn is_mended(encrypt: impl Fn(&World) -> Result<&'static str>) -> Result {
    let [default, encrypted] =
        ["default", "encrypted"].map(|rules| retransmissions(rules, &encrypt));
    let ((before, slow), (after, fast)) = (default?, encrypted?);
    assert!(before > 50, "the path lost {before} segments without retransmission by the link");
    assert!(after * 10 < before, "{after} retransmissions by TCP, {before} without the rules");
    assert!(fast > 2.0 * slow, "{fast} and {slow} Mb/s");
    Ok(())
}

/// The segments that TCP retransmitted within the transfer, and its rate in Mb/s.
fn retransmissions(
    rules: &str,
    encrypt: impl Fn(&World) -> Result<&'static str>,
) -> Result<(u64, f64)> {
    let world = World::new()?;
    for namespace in [&world.left, &world.right] {
        queue(namespace, "eth0", PATH)?;
        namespace.run(|| Ok(fs::write("/proc/sys/net/ipv4/tcp_congestion_control", "cubic")))??;
    }
    let class = ["--class", rules];
    let listener =
        world.end(&world.right, INNER[1], &[&["--listen", "0.0.0.0:4433"], &class[..]].concat())?;
    let at = format!("{RIGHT}:4433");
    let dialer = world.end(&world.left, INNER[0], &[&["--peer", &at], &class[..]].concat())?;
    let address = encrypt(&world)?;
    // WireGuard repeats a handshake that is lost after five seconds only.
    stream(world.hosts(), address.parse()?, 1)?;
    let (before, begin) = (retransmitted(&world.left)?, Instant::now());
    stream(world.hosts(), address.parse()?, BYTES)?;
    let mbps = BYTES as f64 * 8.0 / begin.elapsed().as_secs_f64() / 1e6;
    let retransmitted = retransmitted(&world.left)? - before;
    let sent = ended(dialer)?;
    ended(listener)?;
    assert!(count(&sent, "bytes_in") > BYTES, "{sent}");
    let by_link = &sent["agent_counters"]["link_retransmits"];
    println!("{rules}: {mbps:.2} Mb/s, TCP retransmitted {retransmitted}, the link {by_link}");
    Ok((retransmitted, mbps))
}

/// `RetransSegs` of the kernel there.
fn retransmitted(namespace: &Namespace) -> Result<u64> {
    let text = namespace.run(|| Ok(fs::read_to_string("/proc/thread-self/net/snmp")))??;
    let mut rows = text.lines().filter_map(|line| line.strip_prefix("Tcp:"));
    let names = rows.next().ok_or("no names of TCP's counters")?.split_whitespace();
    let values = rows.next().ok_or("no values of TCP's counters")?.split_whitespace();
    let found = names.zip(values).find(|(name, _)| *name == "RetransSegs");
    Ok(found.ok_or("no RetransSegs")?.1.parse()?)
}

fn secret() -> Result<String> {
    run(None, "wg", &["genkey"], "")
}
