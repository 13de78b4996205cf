//! What the sending hosts' TCPs went through, from their kernels' counters.

use crate::lab::error::LabError;
use crate::lab::network::counters;
use crate::lab::network::host::Host;
use crate::lab::outcome::SenderCounters;
use std::collections::BTreeMap;

/// The sum of the sending hosts' counters, all of which began at zero with their namespaces.
pub(crate) struct SenderReport {
    pub(crate) counters: SenderCounters,
    /// All nonzero counters of the group `TcpExt`.
    pub(crate) tcp_ext: BTreeMap<String, u64>,
}

impl SenderReport {
    /// Reads and adds those of these hosts.
    pub(crate) fn read<'a>(senders: impl Iterator<Item = &'a Host>) -> Result<Self, LabError> {
        let (mut retransmits, mut tcp_ext) = (0, BTreeMap::new());
        for sender in senders {
            let groups = || Ok(["Tcp", "TcpExt"].map(counters::read));
            let [tcp, ext] = sender.namespace.run(groups)?;
            retransmits += tcp.get("RetransSegs").copied().unwrap_or(0);
            for (name, value) in ext {
                *tcp_ext.entry(name).or_default() += value;
            }
        }
        Ok(Self { counters: interpret(retransmits, &tcp_ext), tcp_ext })
    }
}

/// Gives the kernel's names (`net/ipv4/proc.c`) the meaning that they have in `tcp_input.c`.
///
/// A recovery is undone at most once: each of the three ways clears the marker that all of them
/// need. Where the undo ended the recovery that follows a timeout, the kernel counts it apart.
fn interpret(retransmits: u64, tcp_ext: &BTreeMap<String, u64>) -> SenderCounters {
    let sum = |names: &[&str]| names.iter().filter_map(|name| tcp_ext.get(*name)).sum::<u64>();
    SenderCounters {
        retransmits,
        timeouts: sum(&["TCPTimeouts"]),
        recoveries: sum(&["TCPRenoRecovery", "TCPSackRecovery"]),
        undone_recoveries: sum(&["TCPFullUndo", "TCPPartialUndo", "TCPDSACKUndo"]),
        undone_timeouts: sum(&["TCPLossUndo"]),
        spurious_timeouts: sum(&["TCPSpuriousRTOs"]),
        loss_probes: sum(&["TCPLossProbes"]),
        loss_probe_recoveries: sum(&["TCPLossProbeRecovery"]),
        reorderings: sum(&["TCPTSReorder", "TCPSACKReorder", "TCPRenoReorder"]),
        dsacks: sum(&["TCPDSACKRecv", "TCPDSACKOfoRecv"]),
        segments: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counter_is_found_under_its_kernel_name() {
        let names = [
            "TCPTimeouts",
            "TCPRenoRecovery",
            "TCPSackRecovery",
            "TCPFullUndo",
            "TCPPartialUndo",
            "TCPDSACKUndo",
            "TCPLossUndo",
            "TCPSpuriousRTOs",
            "TCPLossProbes",
            "TCPLossProbeRecovery",
            "TCPTSReorder",
            "TCPSACKReorder",
            "TCPRenoReorder",
            "TCPDSACKRecv",
            "TCPDSACKOfoRecv",
        ];
        // Powers of two: a sum identifies its terms.
        let values = names.iter().enumerate().map(|(bit, name)| ((*name).to_owned(), 1 << bit));
        let counters = interpret(7, &values.collect());
        let expected = SenderCounters {
            retransmits: 7,
            timeouts: 1,
            recoveries: 0b110,
            undone_recoveries: 0b11_1000,
            undone_timeouts: 1 << 6,
            spurious_timeouts: 1 << 7,
            loss_probes: 1 << 8,
            loss_probe_recoveries: 1 << 9,
            reorderings: 0b111 << 10,
            dsacks: 0b11 << 13,
            segments: 0,
        };
        assert_eq!(counters, expected);
    }
}
