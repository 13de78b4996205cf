//! Transfers after each other, short flows beside others, and several pairs of hosts.

use super::{Scratch, complete, complete_with_enough, config, lab_link, plain};
use airmend_live::lab::config::{Amount, LabConfig, Short};
use airmend_live::lab::outcome::Outcome;
use airmend_live::lab::run;
use airmend_proto::agents::{AgentConfig, Limits};
use pcap_file::pcapng::{Block, PcapNgReader};
use std::collections::BTreeSet;
use std::error::Error;
use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

pub(crate) fn one_after_another() -> Result<(), Box<dyn Error>> {
    let amount = Amount::Bytes(20_000);
    let config = LabConfig { sequential: 5, flows: 2, amount, ..config() };
    let outcome = complete(&config)?;
    // SYN, SYN-ACK and the first data each take a path's delay of 7 ms.
    assert!(outcome.completion_seconds.iter().all(|seconds| *seconds > 0.021));
    let sum = outcome.completion_seconds.iter().sum::<f64>();
    assert!(outcome.seconds < sum && outcome.seconds > sum / 2.0);
    // Only the first connection's sequence is drawn: SYN, data, FIN.
    assert!(outcome.trace.iter().all(|point| point.offset <= 20_002));
    // Stopped in the second one.
    let stop = AtomicBool::new(false);
    let mut progress = |progress: airmend_live::lab::Progress| {
        stop.store(progress.bytes > 40_000, Ordering::Relaxed);
    };
    let outcome = run(&config, plain(), &stop, &mut progress)?;
    assert!(!outcome.completed && outcome.completion_seconds.len() < 10);
    Ok(())
}

/// Short flows beside a bulk flow whose window does not fill the queue, between one pair of hosts
/// and between two.
pub(crate) fn short_flows() -> Result<(), Box<dyn Error>> {
    let second = Duration::from_secs(1);
    let short = |pause| Some(Short { bytes: 20_000, pause });
    let beside = LabConfig {
        amount: Amount::Time(second),
        window_segments: Some(20),
        short: short(Duration::from_millis(5)),
        ..config()
    };
    let some_end = |_: &LabConfig, outcome: &Outcome| {
        outcome.short.as_ref().is_some_and(|flows| !flows.completion_seconds.is_empty())
    };
    for (ipv6, pairs) in [(false, 1), (true, 2)] {
        let mut config = LabConfig { ipv6, pairs, flows: pairs, ..beside.clone() };
        let outcome = complete_with_enough(&mut config, &some_end)?;
        let flows = outcome.short.ok_or("no short flows")?;
        let times = flows.completion_seconds;
        // Two round trips of 14 ms, for the handshake and the first window of ten segments, and a
        // path's delay for the rest.
        assert!(times.iter().all(|seconds| *seconds > 0.035), "{times:?}");
        // One at a time between each two hosts, so that their times add up to no more than the run.
        let together = f64::from(pairs) * outcome.seconds;
        assert!(!times.is_empty() && times.iter().sum::<f64>() <= together, "{times:?}");
    }
    // The first begins within the warm-up, the second would begin after the end.
    let (pause, warmup) = (600 * second, Duration::from_millis(500));
    let mut config = LabConfig { short: short(pause), warmup, ..beside.clone() };
    let outcome = complete_with_enough(&mut config, &|_, _| true)?;
    let flows = outcome.short.ok_or("no short flows")?;
    assert_eq!((flows.completion_seconds.len(), flows.overdue), (0, 0));
    // Nothing of what they carry is taken for the others'.
    let mut bytes = LabConfig { amount: Amount::Bytes(300_000), ..beside };
    let outcome = complete_with_enough(&mut bytes, &some_end)?;
    assert!(some_end(&bytes, &outcome), "{:?}", outcome.short);
    assert!(complete(&LabConfig { short: None, ..bytes })?.short.is_none());
    Ok(())
}

/// Four flows between three pairs of hosts, all of which the agent sees; those of a further pair
/// pass it by.
pub(crate) fn several_pairs() -> Result<(), Box<dyn Error>> {
    let amount = Amount::Bytes(100_000);
    for ipv6 in [false, true] {
        let name = format!("airmend-pairs-{}.pcapng", std::process::id());
        let file = Scratch(std::env::temp_dir().join(name));
        let pcap = Some(file.0.clone());
        complete(&LabConfig { pairs: 3, flows: 4, ipv6, amount, pcap, ..config() })?;
        assert_eq!(pairs_in(&file)?, BTreeSet::from([0, 1, 2]));
    }
    let config = LabConfig { pairs: 2, flows: 2, unmended_flows: 1, amount, ..config() };
    let limits = Limits { egress: config.egress_limits(), ..Limits::default() };
    let agent = AgentConfig::by_name("snoop95")?.build(limits, 1);
    let outcome = run(&config, agent, &AtomicBool::new(false), &mut |_| ())?;
    assert!(outcome.completed && outcome.bytes_received == 300_000);
    let opened = outcome.agent_counters.get("flows_opened").copied().unwrap_or(0);
    // A straggler after the close opens one once more.
    assert!((2..=4).contains(&opened), "{:?}", outcome.agent_counters);
    assert_eq!(outcome.flow_goodput_bps.len(), 3);

    let outcome = lab_link::run(&config)?;
    assert!(outcome.completed && outcome.bytes_received == 300_000);
    Ok(())
}

/// The pairs whose packets are in a recording, by the group of their source address.
fn pairs_in(file: &Scratch) -> Result<BTreeSet<u8>, Box<dyn Error>> {
    let mut reader = PcapNgReader::new(File::open(&file.0)?)?;
    let mut pairs = BTreeSet::new();
    while let Some(block) = reader.next_block() {
        let Block::EnhancedPacket(packet) = block? else { continue };
        let is_ipv4 = packet.data.first().is_some_and(|byte| byte >> 4 == 4);
        pairs.extend(packet.data.get(if is_ipv4 { 14 } else { 15 }));
    }
    Ok(pairs)
}
