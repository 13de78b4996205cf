//! Records both sides of an agent as pcapng, with comments that say what it did, so that Wireshark
//! tells the story.
//!
//! A thread of its own writes the file: the loop that keeps time never waits for a disk.

use crate::output_file;
use airmend_proto::recording::{COPIED, DEPARTED, RecordedAgent, TimersRan};
use airmend_proto::{Event, Instant, LinkType, Packet, Port};
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::{DataLink, Endianness, PcapError};
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Packets that wait at most to be written; about 100 MB of full frames.
const BACKLOG: usize = 1 << 16;
/// Runs of timers at most of which one record says when they were. A replay lets later ones, which
/// an agent without packets hardly has, run with the next packet.
const MOST_TIMERS: usize = 1_024;

/// Which way a packet crossed a port of the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crossing {
    /// It entered the agent.
    Inbound,
    /// A copy of it entered the agent: it had left already.
    Copied,
    /// It left the agent.
    Outbound,
    /// It had left the agent before, and departed from a queue of the kernel.
    Departed,
}

struct Record {
    at: Instant,
    side: Port,
    crossing: Crossing,
    packet: Packet,
    comments: Vec<Event>,
    /// When the timers ran since the last record.
    timers: Vec<Instant>,
}

/// A pcapng file being written: interface 0 is the wired side, interface 1 the air.
#[derive(Debug)]
pub struct Recording {
    records: SyncSender<Record>,
    writer: JoinHandle<io::Result<()>>,
    missed: u64,
    timers: Vec<Instant>,
}

impl Recording {
    /// Creates the file, of packets that begin as `link_type` says, and starts its writer. What is
    /// known of the agent stands at the head.
    pub fn create(
        path: &Path,
        link_type: LinkType,
        agent: Option<&RecordedAgent>,
    ) -> io::Result<Self> {
        let file = BufWriter::with_capacity(1 << 18, output_file::create(path)?);
        let mut file = PcapNgWriter::with_section_header(file, section(agent)).map_err(into_io)?;
        for side in [Port::Wired, Port::Air] {
            file.write_pcapng_block(interface(side, link_type)).map_err(into_io)?;
        }
        let (records, queue) = sync_channel(BACKLOG);
        let begin = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let writer = std::thread::Builder::new()
            .name("pcapng".to_owned())
            .spawn(move || write_all(file, &queue, begin))?;
        Ok(Self { records, writer, missed: 0, timers: Vec::new() })
    }

    /// Records one packet and what the agent did with it.
    pub fn record(
        &mut self,
        at: Instant,
        side: Port,
        crossing: Crossing,
        packet: &Packet,
        comments: &[Event],
    ) {
        let (comments, packet) = (comments.to_vec(), packet.clone());
        // The agent looks at its timers with every packet; a replay knows that without being told.
        self.timers.retain(|&ran| ran < at);
        let timers = std::mem::take(&mut self.timers);
        let record = Record { at, side, crossing, packet, comments, timers };
        if self.records.try_send(record).is_err() {
            self.missed += 1;
        }
    }

    /// Notes that the agent's timers ran without a packet that entered; the next record says when.
    pub fn timers_ran(&mut self, at: Instant) {
        if self.timers.len() < MOST_TIMERS {
            self.timers.push(at);
        }
    }

    /// Writes what is left. An error if anything is missing from the file.
    pub fn finish(self) -> io::Result<()> {
        drop(self.records);
        self.writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        if self.missed > 0 {
            let message = format!("the disk was too slow, {} packets are missing", self.missed);
            return Err(io::Error::other(message));
        }
        Ok(())
    }
}

fn write_all(
    mut file: PcapNgWriter<BufWriter<File>>,
    queue: &Receiver<Record>,
    begin: Duration,
) -> io::Result<()> {
    for record in queue {
        file.write_pcapng_block(block(&record, begin)).map_err(into_io)?;
    }
    file.get_mut().flush()
}

fn section(agent: Option<&RecordedAgent>) -> SectionHeaderBlock<'static> {
    let program = concat!("airmend ", env!("CARGO_PKG_VERSION"));
    let mut options = vec![SectionHeaderOption::UserApplication(Cow::Borrowed(program))];
    options.extend(agent.map(|agent| SectionHeaderOption::Comment(agent.to_string().into())));
    SectionHeaderBlock { endianness: Endianness::native(), options, ..Default::default() }
}

fn interface(side: Port, link_type: LinkType) -> InterfaceDescriptionBlock<'static> {
    let nanoseconds = 9;
    InterfaceDescriptionBlock {
        linktype: match link_type {
            LinkType::Ethernet => DataLink::ETHERNET,
            _ => DataLink::RAW,
        },
        snaplen: 0,
        options: vec![
            InterfaceDescriptionOption::IfName(Cow::Borrowed(side.name())),
            InterfaceDescriptionOption::IfTsResol(nanoseconds),
        ],
    }
}

fn block(record: &Record, begin: Duration) -> EnhancedPacketBlock<'_> {
    let comment = |text: String| EnhancedPacketOption::Comment(text.into());
    let timers = record.timers.iter().map(|&ran| TimersRan(record.at.since(ran)).to_string());
    let events = record.comments.iter().map(Event::to_string);
    let (flags, crossing) = match record.crossing {
        Crossing::Inbound => (1, None),
        Crossing::Copied => (1, Some(COPIED)),
        Crossing::Outbound => (2, None),
        Crossing::Departed => (2, Some(DEPARTED)),
    };
    let crossing = crossing.map(str::to_owned);
    let mut options = vec![EnhancedPacketOption::Flags(flags)];
    options.extend(timers.chain(crossing).chain(events).map(comment));
    EnhancedPacketBlock {
        interface_id: match record.side {
            Port::Wired => 0,
            Port::Air => 1,
        },
        timestamp: begin + record.at.since(Instant::ZERO),
        original_len: record.packet.wire_len(),
        data: Cow::Borrowed(record.packet.bytes()),
        options,
    }
}

fn into_io(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        error => io::Error::other(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_without_packets_costs_no_memory() {
        let path = std::env::temp_dir().join(format!("airmend-timers-{}", std::process::id()));
        let mut recording = Recording::create(&path, LinkType::Ip, None).unwrap();
        (0..100_000).for_each(|millis| recording.timers_ran(Instant::from_millis(millis)));
        assert_eq!(recording.timers.len(), MOST_TIMERS);
        recording.finish().unwrap();
        std::fs::remove_file(path).unwrap();
    }
}
