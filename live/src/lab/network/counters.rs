//! The kernel's counters of one network namespace.

use std::collections::BTreeMap;
use std::fs;

/// Reads the group `TcpExt` or `Tcp` of the calling thread's namespace; zero counters are left out.
pub(crate) fn read(group: &str) -> BTreeMap<String, u64> {
    // `/proc/net` is that of the process; a thread in another namespace must read its own.
    ["netstat", "snmp"]
        .iter()
        .filter_map(|file| fs::read_to_string(format!("/proc/thread-self/net/{file}")).ok())
        .flat_map(|text| parse(&text, group))
        .collect()
}

/// Packets that the interface of the calling thread's namespace has dropped, either way.
pub(crate) fn interface_drops(interface: &str) -> u64 {
    let text = fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
    let line = text.lines().find_map(|line| line.trim().strip_prefix(interface));
    let column = |number| {
        line.and_then(|line| line.trim_start_matches(':').split_whitespace().nth(number))
            .and_then(|value| value.parse::<u64>().ok())
    };
    // Receive drops are the fourth of eight columns, transmit drops the fourth after these.
    column(3).unwrap_or(0) + column(11).unwrap_or(0)
}

/// The format is pairs of lines: names, then values, both behind the name of the group.
fn parse(text: &str, group: &str) -> BTreeMap<String, u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(group)?.strip_prefix(':'));
    let (Some(names), Some(values)) = (lines.next(), lines.next()) else { return BTreeMap::new() };
    let values = values.split_whitespace().map(|value| value.parse::<u64>().unwrap_or(0));
    names
        .split_whitespace()
        .map(str::to_owned)
        .zip(values)
        .filter(|(_, value)| *value > 0)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_are_paired_within_their_group() {
        let text = "Tcp: A B C\nTcp: 1 0 3\nTcpExt: A X\nTcpExt: 9 -1\n";
        let expected = BTreeMap::from([("A".to_owned(), 1), ("C".to_owned(), 3)]);
        assert_eq!(parse(text, "Tcp"), expected);
        assert_eq!(parse(text, "TcpExt"), BTreeMap::from([("A".to_owned(), 9)]));
        assert_eq!(parse(text, "Udp"), BTreeMap::new());
    }
}
