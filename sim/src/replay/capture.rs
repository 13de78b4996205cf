//! Reads captures: pcapng, with one interface or several, and pcap.

use super::error::ReplayError;
use super::united::united;
use airmend_proto::recording::{COPIED, DEPARTED, RecordedAgent, TimersRan};
use airmend_proto::{Instant, LinkType, Packet};
use pcap_file::pcap::PcapReader;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::pcapng::{Block, PcapNgReader};
use pcap_file::{DataLink, PcapError, TsResolution};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

/// The longest time from the first to the last packet: a hundred years.
const LONGEST: Duration = Duration::from_secs(100 * 366 * 24 * 3600);

/// The direction of a packet at the interface, seen from the capturing machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Crossing {
    /// The machine received it.
    Inbound,
    /// The machine sent it.
    Outbound,
}

/// An interface of the capture.
#[derive(Clone, Debug)]
pub struct Interface {
    /// The name, if the file has it.
    pub name: Option<String>,
    link: DataLink,
    /// Its addresses, of IP and of the link.
    addresses: Vec<Vec<u8>>,
    /// The resolution of time stamps, per second.
    ticks: u64,
}

/// One captured packet.
#[derive(Clone, Debug)]
pub struct Record {
    /// The time since the first packet of the capture.
    pub at: Instant,
    /// The index of the interface.
    pub interface: usize,
    /// The direction, if the file has it.
    pub crossing: Option<Crossing>,
    /// The packet, perhaps cut by a snap length.
    pub packet: Packet,
    /// Whether the packet had departed when the recorded agent saw its copy.
    pub is_copy: bool,
    /// Whether the recorded agent had sent the packet before, and it now departed from a queue of
    /// the kernel.
    pub is_departure: bool,
    /// The time before the packet at which the recorded agent's timers ran.
    pub timers: Vec<Duration>,
}

/// A capture in memory, in the order of time.
#[derive(Clone, Debug)]
pub struct Capture {
    /// The interfaces as the file describes them: one of several files that were joined more than
    /// once. The records name the first description.
    pub interfaces: Vec<Interface>,
    /// The packets, at least one.
    pub records: Vec<Record>,
    /// The agent that was recorded, if this is a recording of ours.
    pub agent: Option<RecordedAgent>,
    /// Whether the file ends in the middle of a packet.
    pub is_cut: bool,
}

impl Capture {
    /// Reads a file.
    pub fn open(path: &Path) -> Result<Self, ReplayError> {
        Self::read(File::open(path).map_err(ReplayError::Unreadable)?)
    }

    /// Reads a capture up to its end.
    pub fn read(mut source: impl Read) -> Result<Self, ReplayError> {
        let mut magic = [0; 4];
        match source.read_exact(&mut magic) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(ReplayError::NotACapture);
            }
            result => result.map_err(ReplayError::Unreadable)?,
        }
        let whole = magic.as_slice().chain(source);
        let mut reading = Reading::default();
        match u32::from_be_bytes(magic) {
            0x0a0d_0d0a => reading.read_pcapng(whole)?,
            0xa1b2_c3d4 | 0xd4c3_b2a1 | 0xa1b2_3c4d | 0x4d3c_b2a1 => reading.read_pcap(whole)?,
            _ => return Err(ReplayError::NotACapture),
        }
        reading.finish()
    }

    /// The name of the interface of a record.
    pub(super) fn interface(&self, record: &Record) -> Option<&str> {
        self.interfaces.get(record.interface)?.name.as_deref()
    }
}

/// The records read so far, with the times of the file.
#[derive(Default)]
struct Reading {
    interfaces: Vec<Interface>,
    /// The number of interfaces before the present section.
    first_interface: usize,
    records: Vec<(u64, Record)>,
    agent: Option<RecordedAgent>,
    is_cut: bool,
}

impl Reading {
    fn read_pcapng(&mut self, source: impl Read) -> Result<(), ReplayError> {
        let mut reader = PcapNgReader::new(source).map_err(|_| ReplayError::NotACapture)?;
        self.agent = recorded_agent(reader.section());
        while let Some(block) = reader.next_block() {
            match block {
                Ok(Block::SectionHeader(_)) => self.first_interface = self.interfaces.len(),
                Ok(Block::InterfaceDescription(block)) => {
                    self.interfaces.push(Interface::described_by(&block));
                }
                Ok(Block::EnhancedPacket(block)) => self.take_packet(&block)?,
                Ok(_) => {}
                Err(error) => return self.end(error),
            }
        }
        Ok(())
    }

    fn read_pcap(&mut self, source: impl Read) -> Result<(), ReplayError> {
        let mut reader = PcapReader::new(source).map_err(|_| ReplayError::NotACapture)?;
        let header = reader.header();
        let nanos_per_fraction = match header.ts_resolution {
            TsResolution::MicroSecond => 1_000,
            TsResolution::NanoSecond => 1,
        };
        let link = header.datalink;
        let ticks = 1_000_000_000;
        self.interfaces.push(Interface { name: None, link, addresses: Vec::new(), ticks });
        while let Some(packet) = reader.next_raw_packet() {
            let packet = match packet {
                Ok(packet) => packet,
                Err(error) => return self.end(error),
            };
            let nanos = u64::from(packet.ts_sec) * 1_000_000_000
                + u64::from(packet.ts_frac) * nanos_per_fraction;
            let (packet, crossing) = unwrap_link(header.datalink, &packet.data, packet.orig_len)?;
            self.records.push((nanos, Record::new(0, crossing, packet)));
        }
        Ok(())
    }

    fn take_packet(&mut self, block: &EnhancedPacketBlock<'_>) -> Result<(), ReplayError> {
        let index = self.first_interface + block.interface_id as usize;
        let Some(interface) = self.interfaces.get(index) else {
            let why = format!("a packet of interface {}, which there is not", block.interface_id);
            return Err(ReplayError::Damaged { packets: self.records.len(), why });
        };
        // The library interprets every time stamp as nanoseconds.
        let stamp = block.timestamp.as_nanos();
        let nanos = stamp * 1_000_000_000 / u128::from(interface.ticks);
        let (packet, cooked) = unwrap_link(interface.link, &block.data, block.original_len)?;
        let mut record = Record::new(index, cooked, packet);
        for option in &block.options {
            match option {
                EnhancedPacketOption::Flags(flags) => {
                    record.crossing = crossing(flags & 3).or(record.crossing);
                }
                EnhancedPacketOption::Comment(text) if text == COPIED => record.is_copy = true,
                EnhancedPacketOption::Comment(text) if text == DEPARTED => {
                    record.is_departure = true;
                }
                EnhancedPacketOption::Comment(text) => {
                    record.timers.extend(text.parse::<TimersRan>().map(|ran| ran.0));
                }
                _ => {}
            }
        }
        self.records.push((u64::try_from(nanos).unwrap_or(u64::MAX), record));
        Ok(())
    }

    /// The end of the readable part: a truncated capture is valid up to there.
    fn end(&mut self, error: PcapError) -> Result<(), ReplayError> {
        match error {
            PcapError::IoError(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                self.is_cut = true;
                Ok(())
            }
            PcapError::IoError(error) => Err(ReplayError::Unreadable(error)),
            error => {
                let why = error.to_string();
                Err(ReplayError::Damaged { packets: self.records.len(), why })
            }
        }
    }

    fn finish(mut self) -> Result<Capture, ReplayError> {
        // Packets of several interfaces are not always written in the order of time.
        self.records.sort_by_key(|(nanos, _)| *nanos);
        let &(first, _) = self.records.first().ok_or(ReplayError::Empty)?;
        // An agent's timers have no end at the end of time.
        if self.records.last().is_some_and(|(last, _)| last - first > LONGEST.as_nanos() as u64) {
            return Err(ReplayError::TooLong);
        }
        let one = self.united();
        let since = |(nanos, record): (u64, Record)| {
            let (at, interface) = (Instant::from_nanos(nanos - first), one[record.interface]);
            Record { at, interface, ..record }
        };
        Ok(Capture {
            interfaces: self.interfaces,
            records: self.records.into_iter().map(since).collect(),
            agent: self.agent,
            is_cut: self.is_cut,
        })
    }

    /// For each interface the first description of it. The records are in the order of time.
    fn united(&self) -> Vec<usize> {
        let described = |i: &Interface| (i.name.clone(), u32::from(i.link), i.addresses.clone());
        let mut seen: Vec<_> = self.interfaces.iter().map(|i| (described(i), None)).collect();
        for (nanos, record) in &self.records {
            let (_, times) = &mut seen[record.interface];
            *times = Some((times.map_or(*nanos, |(first, _)| first), *nanos));
        }
        united(&seen)
    }
}

impl Record {
    fn new(interface: usize, crossing: Option<Crossing>, packet: Packet) -> Self {
        Self {
            at: Instant::ZERO,
            interface,
            crossing,
            packet,
            is_copy: false,
            is_departure: false,
            timers: Vec::new(),
        }
    }
}

impl Interface {
    fn described_by(block: &InterfaceDescriptionBlock<'_>) -> Self {
        let (link, ticks) = (block.linktype, 1_000_000);
        let mut interface = Self { name: None, link, addresses: Vec::new(), ticks };
        for option in &block.options {
            match option {
                InterfaceDescriptionOption::IfName(name) => interface.name = Some(name.to_string()),
                InterfaceDescriptionOption::IfTsResol(resolution) => {
                    let base: u64 = if resolution & 0x80 == 0 { 10 } else { 2 };
                    let power = u32::from(resolution & 0x7f);
                    interface.ticks = base.checked_pow(power).unwrap_or(u64::MAX);
                }
                InterfaceDescriptionOption::IfIpv4Addr(address)
                | InterfaceDescriptionOption::IfIpv6Addr(address)
                | InterfaceDescriptionOption::IfMacAddr(address) => {
                    interface.addresses.push(address.to_vec());
                }
                InterfaceDescriptionOption::IfEuIAddr(address) => {
                    interface.addresses.push(address.to_be_bytes().to_vec());
                }
                _ => {}
            }
        }
        interface
    }
}

fn recorded_agent(section: &SectionHeaderBlock<'_>) -> Option<RecordedAgent> {
    section.options.iter().find_map(|option| match option {
        SectionHeaderOption::Comment(text) => text.parse().ok(),
        _ => None,
    })
}

/// The two low bits of a packet block's flags.
fn crossing(flags: u32) -> Option<Crossing> {
    match flags {
        1 => Some(Crossing::Inbound),
        2 => Some(Crossing::Outbound),
        _ => None,
    }
}

/// The packet behind a link header that agents do not parse, and the direction in that header.
fn unwrap_link(
    link: DataLink,
    data: &[u8],
    wire_len: u32,
) -> Result<(Packet, Option<Crossing>), ReplayError> {
    // The length of the link header, and the offset of Linux's packet type in it.
    let (header, kind) = match link {
        DataLink::ETHERNET => {
            let bytes = data.to_vec().into();
            return Ok((Packet::truncated(LinkType::Ethernet, bytes, wire_len), None));
        }
        DataLink::RAW | DataLink::IPV4 | DataLink::IPV6 => (0, None),
        DataLink::NULL | DataLink::LOOP => (4, None),
        DataLink::LINUX_SLL => (16, data.get(1)),
        DataLink::LINUX_SLL2 => (20, data.get(10)),
        other => return Err(ReplayError::LinkType(other.into())),
    };
    let crossing = match kind {
        Some(0) => Some(Crossing::Inbound),
        Some(4) => Some(Crossing::Outbound),
        _ => None,
    };
    let bytes = data.get(header..).unwrap_or_default().to_vec().into();
    Ok((Packet::truncated(LinkType::Ip, bytes, wire_len.saturating_sub(header as u32)), crossing))
}
