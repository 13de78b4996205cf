//! Any bytes as a capture: its packets are in the order of time and belong to its interfaces, they
//! are read the same after they have been written, and an agent can be replayed over them.

use airmend_proto::agents::{AgentConfig, Limits};
use airmend_proto::{Forwarder, Instant, LinkType};
use airmend_sim::replay::{Capture, Pace, Record, Sides, replay, steps};

/// Bytes that gzip packs at most in one (RFC 1951).
const MOST_PACKED: usize = 1032;

pub(crate) fn fuzz(data: &[u8]) {
    let mut capture = match Capture::read(data) {
        Ok(capture) => capture,
        Err(error) => return assert!(error.to_string().lines().count() <= 1, "{error}"),
    };
    let records = &capture.records;
    assert_eq!(records.first().map(|record| record.at), Some(Instant::ZERO));
    assert!(records.is_sorted_by_key(|record| record.at));
    assert!(records.iter().all(|record| record.interface < capture.interfaces.len()));
    let unpacked = data.len() * if data.starts_with(&[0x1f, 0x8b]) { MOST_PACKED } else { 1 };
    assert!(records.iter().map(|record| record.packet.bytes().len()).sum::<usize>() <= unpacked);
    for link_type in [LinkType::Ip, LinkType::Ethernet] {
        let is_same = |record: &&Record| record.packet.link_type() == link_type;
        written_and_read(records.iter().filter(is_same).collect(), link_type);
    }
    capture.remove_duplicates();
    let left = capture.records.len();
    capture.remove_duplicates();
    assert_eq!(capture.records.len(), left, "no copy is left");
    let Ok(steps) = steps(&capture, &Sides::of(&capture)) else { return };
    for (agent, pace) in [("snoop", Pace::Free), ("snoop95", Pace::Recorded)] {
        let agent = AgentConfig::by_name(agent).expect("it is registered");
        let limits = Limits { flows: 8, cache_bytes: 1 << 16, ..Limits::default() };
        let mut forwarder = Forwarder::new(agent.build(limits, 1), limits.egress);
        replay(&mut forwarder, &steps.steps, pace, false);
    }
}

/// As pcap with nanoseconds (draft-ietf-opsawg-pcap), whose seconds have 32 bits.
fn written_and_read(records: Vec<&Record>, link_type: LinkType) {
    let Some(first) = records.first() else { return };
    let kind = if link_type == LinkType::Ethernet { 1 } else { 101 };
    let header = [0xa1b2_3c4d, 0x0002_0004, 0, 0, u32::MAX, kind];
    let mut file: Vec<u8> = header.into_iter().flat_map(u32::to_be_bytes).collect();
    for record in &records {
        let nanos = record.at.since(first.at).as_nanos();
        let Ok(seconds) = u32::try_from(nanos / 1_000_000_000) else { return };
        let packet = &record.packet;
        let words = [seconds, (nanos % 1_000_000_000) as u32, packet.bytes().len() as u32];
        file.extend(words.into_iter().chain([packet.wire_len()]).flat_map(u32::to_be_bytes));
        file.extend(packet.bytes());
    }
    let again = Capture::read(&file[..]).expect("what was written can be read");
    assert!(!again.is_cut && again.records.len() == records.len());
    for (again, record) in again.records.iter().zip(&records) {
        assert_eq!(again.at.since(Instant::ZERO), record.at.since(first.at));
        assert_eq!(again.packet, record.packet);
    }
}
