//! Packets that were captured more than once: by mirror ports, and by the interface `any`.

use super::capture::{Capture, Crossing, Record};
use super::encapsulation::tcp_in;
use super::left_out::Reason;
use airmend_proto::wire::tcp::Segment;
use airmend_proto::{Instant, Packet};
use std::collections::HashMap;
use std::collections::hash_map::{Entry, RandomState};
use std::hash::BuildHasher;
use std::time::Duration;

/// The copies of a packet are less than this apart. No TCP sends the same packet again so soon.
const WINDOW: Duration = Duration::from_millis(1);

impl Capture {
    /// Removes all copies of a TCP packet but the first, as `editcap -d` does, and counts them
    /// among those left out. Copies have the same bytes from the IP header on, but for the TTL and
    /// its checksum: a router may be between the mirrored ports. A recording of ours has no copies.
    ///
    /// A segment without payload and without an IP identification may be followed by the very same,
    /// since duplicate ACKs differ in nothing else. It is a copy if most segments with payload have
    /// copies, too.
    pub fn remove_duplicates(&mut self) {
        if self.agent.is_some() {
            return;
        }
        let kinds = kinds(&self.records);
        let count = |wanted: Kind| kinds.iter().filter(|kind| **kind == wanted).count();
        let is_doubled = 2 * count(Kind::CopyOfData) > count(Kind::Data);
        let mut kinds = kinds.iter();
        self.records.retain(|_| {
            let is_copy = match kinds.next() {
                Some(Kind::Copy | Kind::CopyOfData) => true,
                Some(Kind::Alike) => is_doubled,
                _ => false,
            };
            if is_copy {
                self.left_out.count(Reason::Copy);
            }
            !is_copy
        });
    }
}

/// A packet among those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The first with payload.
    Data,
    /// Another one with payload.
    CopyOfData,
    /// Another one without payload.
    Copy,
    /// Another one, or the next duplicate ACK.
    Alike,
    /// Anything else.
    Other,
}

fn kinds(records: &[Record]) -> Vec<Kind> {
    let hasher = RandomState::new();
    let mut first_seen: HashMap<u64, Instant> = HashMap::new();
    let kind = |record: &Record| {
        let Ok((packet, _)) = tcp_in(&record.packet) else { return Kind::Other };
        let Ok(segment) = Segment::parse(&packet) else { return Kind::Other };
        let has_payload = segment.payload_len > 0;
        let place = (record.interface, record.crossing);
        let Some((same, is_identified)) = fingerprint(&hasher, place, &packet, &segment) else {
            return Kind::Other;
        };
        match first_seen.entry(same) {
            Entry::Occupied(first) if record.at.since(*first.get()) < WINDOW => {
                match (has_payload, is_identified) {
                    (true, _) => Kind::CopyOfData,
                    (false, true) => Kind::Copy,
                    (false, false) => Kind::Alike,
                }
            }
            first => {
                first.insert_entry(record.at);
                if has_payload { Kind::Data } else { Kind::Other }
            }
        }
    };
    records.iter().map(kind).collect()
}

/// A hash of what all copies of a packet have in common, and whether that has an IP identification.
fn fingerprint(
    hasher: &RandomState,
    place: (usize, Option<Crossing>),
    packet: &Packet,
    segment: &Segment,
) -> Option<(u64, bool)> {
    let header = usize::from(segment.network_offset);
    // What follows the payload is padding of the frame.
    let end = usize::from(segment.payload_offset) + segment.payload_len as usize;
    let captured = packet.bytes();
    let ip = captured.get(header..end.min(captured.len()))?;
    let is_version_4 = ip.first()? >> 4 == 4;
    let (fixed, is_identified) = if is_version_4 {
        // Without the TTL and the checksum (RFC 791 §3.1).
        ([ip.get(..8)?, ip.get(9..10)?, ip.get(12..)?], ip.get(4..6)? != [0, 0])
    } else {
        // Without the hop limit (RFC 8200 §3).
        ([ip.get(..7)?, &[], ip.get(8..)?], false)
    };
    Some((hasher.hash_one((place, fixed, segment.payload_len)), is_identified))
}
