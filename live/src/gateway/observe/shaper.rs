//! The rate of the interface's own shaper, as `tc` prints it.

use airmend_proto::units;
use std::process::Command;

/// The rate of the shaper, in bits per second. `None` without such a queue, or without `tc`.
pub(in crate::gateway) fn rate(interface: &str) -> Option<u64> {
    // HTB's rate is one of its class, TBF's and CAKE's of the queue itself.
    let said = ["class", "qdisc"].map(|what| {
        let output = Command::new("tc").args([what, "show", "dev", interface]).output();
        output
            .map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
            .unwrap_or_default()
    });
    said.iter().find_map(|said| root_rate(said))
}

/// The rate of what has no parent: all of it leaves there.
fn root_rate(said: &str) -> Option<u64> {
    said.lines().find_map(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        let is_root = words.contains(&"root");
        let is_rate = |word: &&str| matches!(*word, "rate" | "bandwidth");
        let rate = words.iter().position(is_rate).filter(|_| is_root)?;
        units::parse_rate(&words.get(rate + 1)?.to_lowercase()).ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_root_tells_the_whole_rate() {
        let htb = "class htb 1:2 parent 1:3 prio 0 rate 8bit ceil 20Mbit burst 225b cburst 1600b\n\
                   class htb 1:3 root rate 20Mbit ceil 20Mbit burst 1600b cburst 1600b\n";
        assert_eq!(root_rate(htb), Some(20_000_000));
        let tbf = "qdisc tbf 80d6: root refcnt 3 rate 7500Kbit burst 2999b lat 30.9ms\n";
        assert_eq!(root_rate(tbf), Some(7_500_000));
        let cake = "qdisc cake 8001: root refcnt 2 bandwidth 5Mbit diffserv3 triple-isolate\n";
        assert_eq!(root_rate(cake), Some(5_000_000));
        for none in
            ["", "qdisc noqueue 0: root refcnt 2\n", "qdisc cake 1: root bandwidth unlimited"]
        {
            assert_eq!(root_rate(none), None, "{none}");
        }
    }
}
