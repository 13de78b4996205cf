//! The status of a link for people.

use super::report::clock;
use crate::text::{count, percent, rate, significant};
use airmend_live::tunnel::{LinkStatus, PathStatus};
use std::io::{self, Write};

/// Counters that an operator should know of when they are not zero.
const TROUBLE: [&str; 8] = [
    "send_errors",
    "forged",
    "unreadable",
    "looped",
    "replayed",
    "reordered_too_far",
    "handshakes_refused",
    "device_drops",
];

/// Prints everything that matters.
pub(super) fn print(out: &mut impl Write, status: &LinkStatus) -> io::Result<()> {
    let LinkStatus { interface, version, uptime_seconds, .. } = status;
    writeln!(out, "{interface}: link (airmend {version}), up {}", clock(*uptime_seconds))?;
    for (name, words) in lines(status) {
        writeln!(out, "  {name:<9} {words}")?;
    }
    Ok(())
}

fn lines(status: &LinkStatus) -> Vec<(&'static str, String)> {
    let ago = |ago: Option<f64>| ago.map_or("never".to_owned(), |ago| format!("{ago:.1} s ago"));
    let state = match (&status.peer, status.is_silent) {
        (None, _) => "not there yet".to_owned(),
        (Some(peer), true) => format!("{peer}, silent"),
        (Some(peer), false) => peer.clone(),
    };
    let (handshake, heard) = (ago(status.handshake_seconds_ago), ago(status.heard_seconds_ago));
    let mut lines = vec![
        ("peer", format!("{state}; last heard {heard}, session begun {handshake}")),
        ("MTU", status.mtu.to_string()),
        (
            "goodput",
            format!("{} sent, {} received", rate(status.sent_bps), rate(status.received_bps)),
        ),
    ];
    if let Some(path) = &status.path {
        lines.push(("path", path_of(path)));
        let waiting = format!("{} wait", count(path.queued_packets));
        let again = percent(status.retransmitted_share);
        let coded = percent(status.coded_share);
        lines.push(("frames", format!("{again} sent again, {coded} repair frames; {waiting}")));
    }
    if let Some(without) = status.estimated_without_bps {
        lines.push(("without", format!("about {} for one TCP flow (an estimate)", rate(without))));
    }
    let trouble = TROUBLE.iter().filter_map(|name| {
        let value = status.counters.get(*name).filter(|value| **value > 0)?;
        Some(format!("{} {}", name.replace('_', " "), count(*value)))
    });
    let mut trouble: Vec<_> = trouble.collect();
    if status.route_loop {
        trouble.push("the route to the peer leads through the link itself".to_owned());
    }
    if !trouble.is_empty() {
        lines.push(("trouble", trouble.join(", ")));
    }
    lines
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
        let mut status = LinkStatus {
            interface: "home".into(),
            version: "1.2.3".into(),
            uptime_seconds: 61.0,
            mtu: 1_422,
            peer: Some("192.0.2.1:4433".into()),
            heard_seconds_ago: Some(0.04),
            sent_bps: 1.72e7,
            path: Some(path),
            retransmitted_share: 0.01,
            estimated_without_bps: Some(1.2e6),
            counters: [("forged".to_owned(), 3), ("looped".to_owned(), 0)].into(),
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
            "about 1.20 Mb/s for one TCP flow (an estimate)\n",
            "  trouble   forged 3\n",
        ] {
            assert!(text.contains(words), "no {words:?} in\n{text}");
        }
        status.is_silent = true;
        assert!(printed(&status).contains("192.0.2.1:4433, silent;"));
    }
}
