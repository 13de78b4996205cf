//! What the kernel's netem does to datagrams, as a path that delays each by another time does, or a
//! network that an attacker is on: they come late, in another order, twice, or with a bit changed.

use crate::kit::Result;
use crate::stream::transfer;
use crate::world::{RIGHT, World, queue, run};
use crate::{count, ended};
use airmend_live::lab::Namespace;
use std::env;
use std::fs;
use std::time::Instant;

const BYTES: u64 = 4_000_000;
/// What netem does; the most that is sent again, as a share of all packets: where datagrams
/// overtake others more, since the link has to learn by how many; and the least rate, as a share of
/// what a tunnel has that mends nothing: none where datagrams arrive at other distances than they
/// were sent, as docs/link.md says.
const TREATMENTS: [(&str, f64, f64); 6] = [
    ("delay 20ms", 0.02, 0.9),
    ("delay 20ms 8ms distribution normal", 0.02, 0.0),
    ("delay 20ms reorder 25% 50%", 0.1, 0.0),
    ("delay 20ms duplicate 10%", 0.02, 0.9),
    ("delay 20ms slot 10ms 30ms", 0.02, 0.0),
    ("delay 20ms corrupt 2%", 0.05, 0.9),
];

/// A transfer arrives whole under each treatment of both directions; the link takes neither delay
/// nor order for a loss, and is not slower than a tunnel where it need not be. The tunnel is
/// measured where that is judged, and everywhere with `AIRMEND_WHOLE_TABLE`.
pub(crate) fn through() -> Result {
    for (treatment, most, least) in TREATMENTS {
        let is_compared = least > 0.0 || env::var_os("AIRMEND_WHOLE_TABLE").is_some();
        let plain = if is_compared { through_link(treatment, "plain")?.0 } else { 0.0 };
        let (mbps, sent) = through_link(treatment, "tulip")?;
        let retransmits = sent["agent_counters"]["link_retransmits"].as_u64().unwrap_or(0);
        let share = retransmits as f64 / count(&sent, "packets_in") as f64;
        println!("{treatment}: {mbps:.2} Mb/s, {plain:.2} by the tunnel, {share:.3} sent again");
        assert!(mbps >= least * plain, "{treatment}: {mbps} Mb/s, and {plain} by the tunnel");
        assert!(share < most, "{treatment}: a share of {share} was sent again");
    }
    Ok(())
}

/// A queue that drains at 20 Mb/s where frames leave, and netem where they arrive. Netem comes
/// after the queue, since what it lets go early skips a rate of its own and any queue within it,
/// and since it takes a super-packet for one packet: the queue sends the datagrams one by one.
pub(crate) fn shape(from: &Namespace, to: &Namespace, treatment: &str) -> Result {
    from.ip("link set dev eth0 gso_max_segs 1\n")?;
    queue(from, "eth0", "tbf rate 20mbit burst 3000 limit 1500000")?;
    to.ip("link add ifb0 type ifb\nlink set ifb0 up\n")?;
    let redirect = "qdisc add dev eth0 ingress\n\
                    filter add dev eth0 parent ffff: matchall \
                    action mirred egress redirect dev ifb0\n";
    run(Some(to), "tc", &["-batch", "-"], redirect)?;
    queue(to, "ifb0", &format!("netem limit 1000 {treatment}"))
}

/// The rate of a transfer, in Mb/s, and the figures of the end that sent it.
fn through_link(treatment: &str, arq: &'static str) -> Result<(f64, serde_json::Value)> {
    let world = World::with(arq)?;
    for [from, to] in [[&world.left, &world.right], [&world.right, &world.left]] {
        shape(from, to, treatment)?;
        from.run(|| Ok(fs::write("/proc/sys/net/ipv4/tcp_congestion_control", "cubic")))??;
    }
    let (listener, dialer) = (world.listen("0.0.0.0:4433")?, world.dial(&format!("{RIGHT}:4433"))?);
    transfer(&world, 1)?;
    let begin = Instant::now();
    transfer(&world, BYTES)?;
    let mbps = BYTES as f64 * 8.0 / begin.elapsed().as_secs_f64() / 1e6;
    let sent = ended(dialer)?;
    ended(listener)?;
    Ok((mbps, sent))
}
