//! The packets read so far.

use super::super::left_out::{LeftOut, Reason};
use super::link::unwrap_link;
use super::record::{Interface, Record};
use airmend_proto::recording::RecordedAgent;

/// The content of a file, with its own times.
#[derive(Default)]
pub(super) struct Reading {
    pub(super) interfaces: Vec<Interface>,
    /// Packets with their times, in nanoseconds since 1970.
    pub(super) records: Vec<(u64, Record)>,
    pub(super) left_out: LeftOut,
    pub(super) agent: Option<RecordedAgent>,
}

impl Reading {
    /// Adds a packet of an interface: its bytes from the link header on, and its length on the
    /// wire. None if its link type is unknown.
    pub(super) fn packet(
        &mut self,
        nanos: u64,
        interface: usize,
        data: &[u8],
        wire_len: u32,
    ) -> Option<&mut Record> {
        let link = self.interfaces.get(interface).ok_or(Reason::NoInterface).map(|i| i.link);
        match link.and_then(|link| unwrap_link(link, data, wire_len)) {
            Ok((packet, crossing)) => {
                self.records.push((nanos, Record::new(interface, crossing, packet)));
                self.records.last_mut().map(|(_, record)| record)
            }
            Err(reason) => {
                self.left_out.count(reason);
                None
            }
        }
    }
}
