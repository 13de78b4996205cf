//! The status of a link for people.

use super::report::clock;
use crate::text::{bytes, count, percent, rate, significant};
use airmend_live::tunnel::{LinkStatus, PathStatus, PeerStatus};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Counters that an operator should know of when they are not zero.
const TROUBLE: [&str; 12] = [
    "send_errors",
    "forged",
    "unreadable",
    "looped",
    "replayed",
    "reordered_too_far",
    "handshakes_refused",
    "device_drops",
    "wrong_source",
    "no_peer",
    "crowded_out",
    "socket_drops",
];

/// Prints everything that matters.
pub(super) fn print(out: &mut impl Write, status: &LinkStatus) -> io::Result<()> {
    let LinkStatus { interface, version, uptime_seconds, peers, .. } = status;
    let up = clock(*uptime_seconds);
    let (memory, limit) = (bytes(status.memory_bytes), bytes(status.memory_limit_bytes));
    let memory = ("memory", format!("{memory} of at most {limit} for packets"));
    let mtu = ("MTU", status.mtu.to_string());
    if let [peer] = &peers[..] {
        writeln!(out, "{interface}: link (airmend {version}), up {up}")?;
        let all = BTreeMap::from_iter(peer.counters.iter().chain(&status.counters));
        let mut own = lines(peer, &all);
        own.splice(1..2, [mtu]);
        own.push(memory);
        return print_lines(out, &own);
    }
    let there = peers.iter().filter(|peer| peer.is_up()).count();
    writeln!(
        out,
        "{interface}: link (airmend {version}), up {up}, {there} of {} peers",
        peers.len()
    )?;
    print_lines(out, &[mtu, memory])?;
    for peer in peers {
        writeln!(out, "{}:", peer.name)?;
        print_lines(out, &lines(peer, &BTreeMap::from_iter(&peer.counters)))?;
    }
    let nobody = status.counters.iter().filter_map(|(name, all)| {
        let theirs = peers.iter().filter_map(|peer| peer.counters.get(name)).sum();
        let rest = all.saturating_sub(theirs);
        (rest > 0).then(|| format!("{} {}", name.replace('_', " "), count(rest)))
    });
    let nobody: Vec<_> = nobody.collect();
    if nobody.is_empty() { Ok(()) } else { writeln!(out, "nobody's: {}", nobody.join(", ")) }
}

fn print_lines(out: &mut impl Write, lines: &[(&str, String)]) -> io::Result<()> {
    lines.iter().try_for_each(|(name, words)| writeln!(out, "  {name:<9} {words}"))
}

fn lines(peer: &PeerStatus, counters: &BTreeMap<&String, &u64>) -> Vec<(&'static str, String)> {
    let ago = |ago: Option<f64>| ago.map_or("never".to_owned(), |ago| format!("{ago:.1} s ago"));
    let state = match (&peer.endpoint, peer.is_silent) {
        (None, _) => "not there yet".to_owned(),
        (Some(endpoint), true) => format!("{endpoint}, silent"),
        (Some(endpoint), false) => endpoint.clone(),
    };
    let (handshake, heard) = (ago(peer.handshake_seconds_ago), ago(peer.heard_seconds_ago));
    let mut lines = vec![
        ("peer", format!("{state}; last heard {heard}, session begun {handshake}")),
        ("MTU", peer.mtu.to_string()),
        ("goodput", format!("{} sent, {} received", rate(peer.sent_bps), rate(peer.received_bps))),
    ];
    if let Some(path) = &peer.path {
        lines.push(("path", path_of(path)));
        let waiting = format!("{} wait", count(path.queued_packets));
        let again = percent(peer.retransmitted_share);
        let coded = percent(peer.coded_share);
        lines.push(("frames", format!("{again} sent again, {coded} repair frames; {waiting}")));
    }
    if let Some(without) = peer.estimated_without_bps {
        lines.push(("without", without_of(peer, without)));
    }
    let trouble = TROUBLE.iter().filter_map(|name| {
        let value = counters.get(&(*name).to_owned()).filter(|value| ***value > 0)?;
        Some(format!("{} {}", name.replace('_', " "), count(**value)))
    });
    let mut trouble: Vec<_> = trouble.collect();
    if peer.route_loop {
        trouble.push("the route to the peer leads through the link itself".to_owned());
    }
    if !trouble.is_empty() {
        lines.push(("trouble", trouble.join(", ")));
    }
    lines
}

/// `the last 12 MB crossed at 18.1 Mb/s; one TCP flow would have about 1.10 Mb/s (an estimate)`.
fn without_of(peer: &PeerStatus, without: f64) -> String {
    let with = 8.0 * peer.transfer_bytes as f64 / peer.transfer_seconds;
    let with =
        if peer.transfer_seconds > 0.0 { format!(" at {}", rate(with)) } else { String::new() };
    let (last, without) = (bytes(peer.transfer_bytes), rate(without));
    format!("the last {last} crossed{with}; one TCP flow would have about {without} (an estimate)")
}

/// `5 % loss, round trip 80.2 ms (deviation 1.2, least 78), at most 20 Mb/s`.
fn path_of(path: &PathStatus) -> String {
    let millis = |time: Option<f64>| time.map_or("-".to_owned(), |time| significant(time * 1e3));
    let loss = path.loss.map_or("loss unknown yet".to_owned(), |loss| percent(loss) + " loss");
    let most = path.rate_bps.map_or(String::new(), |bps| format!(", at most {}", rate(bps)));
    format!(
        "{loss}, round trip {} ms (deviation {}, least {}){most}",
        millis(path.round_trip_seconds),
        millis(path.deviation_seconds),
        millis(path.least_round_trip_seconds),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_says_how_the_path_is_and_what_is_wrong() {
        let path = PathStatus {
            rate_bps: Some(2e7),
            loss: Some(0.05),
            round_trip_seconds: Some(0.0802),
            queued_packets: 12,
            ..PathStatus::default()
        };
        let counters = [("forged".to_owned(), 3), ("looped".to_owned(), 0)].into();
        let peer = PeerStatus {
            name: "oslo".into(),
            endpoint: Some("192.0.2.1:4433".into()),
            heard_seconds_ago: Some(0.04),
            sent_bps: 1.72e7,
            path: Some(path),
            retransmitted_share: 0.01,
            transfer_bytes: 12_000_000,
            transfer_seconds: 6.0,
            estimated_without_bps: Some(1.2e6),
            counters,
            ..PeerStatus::default()
        };
        let mut status = LinkStatus {
            interface: "home".into(),
            version: "1.2.3".into(),
            uptime_seconds: 61.0,
            mtu: 1_422,
            memory_bytes: 1_500_000,
            memory_limit_bytes: 600_000_000,
            peers: vec![peer],
            ..LinkStatus::default()
        };
        let printed = |status: &LinkStatus| {
            let mut text = Vec::new();
            print(&mut text, status).unwrap();
            String::from_utf8(text).unwrap()
        };
        let text = printed(&status);
        for words in [
            "home: link (airmend 1.2.3), up 0:01:01\n",
            "  peer      192.0.2.1:4433; last heard 0.0 s ago, session begun never\n",
            "  goodput   17.20 Mb/s sent, 0",
            "5 % loss, round trip 80.20 ms",
            "1 % sent again, 0 % repair frames; 12 wait\n",
            "without   the last 12 MB crossed at 16.00 Mb/s; one TCP flow would have about 1.20",
            "  trouble   forged 3\n",
            "  memory    1.5 MB of at most 600 MB for packets\n",
        ] {
            assert!(text.contains(words), "no {words:?} in\n{text}");
        }
        status.peers[0].is_silent = true;
        assert!(printed(&status).contains("192.0.2.1:4433, silent;"));
        status.peers.push(PeerStatus { name: "bergen".into(), ..PeerStatus::default() });
        status.counters = [("forged".to_owned(), 10)].into();
        let text = printed(&status);
        for words in [
            "up 0:01:01, 0 of 2 peers\n",
            "\noslo:\n  peer      192.0.2.1:4433, silent;",
            "\nbergen:\n  peer      not there yet;",
            "\nnobody's: forged 7\n",
        ] {
            assert!(text.contains(words), "no {words:?} in\n{text}");
        }
    }
}
