//! Reads captures: pcapng, with one interface or several, and pcap, as they are or packed by gzip.
//!
//! What a file says beside its packets is taken as far as it makes sense, and its end is where it
//! makes none: what came before is read.

mod link;
mod order;
mod pcap;
mod pcapng;
mod reading;
mod record;
mod source;

pub use record::{Crossing, Interface, Record};

use super::error::ReplayError;
use super::left_out::LeftOut;
use super::united::united;
use airmend_proto::Instant;
use airmend_proto::recording::RecordedAgent;
use pcap::Format;
use reading::Reading;
use source::{Source, Stop};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

/// The longest time from the first to the last packet: a hundred years.
const LONGEST: Duration = Duration::from_secs(100 * 366 * 24 * 3600);

/// How files begin that other programs pack, and the programs that unpack them.
const PACKED: [([u8; 4], &str); 4] = [
    ([0x28, 0xb5, 0x2f, 0xfd], "unzstd"),
    ([0xfd, b'7', b'z', b'X'], "unxz"),
    ([0x04, 0x22, 0x4d, 0x18], "unlz4"),
    ([b'P', b'K', 3, 4], "unzip"),
];

/// A capture in memory, in the order of time.
#[derive(Clone, Debug)]
pub struct Capture {
    /// The interfaces as the file describes them: one of several files that were joined more than
    /// once. The records name the first description.
    pub interfaces: Vec<Interface>,
    /// The packets, at least one.
    pub records: Vec<Record>,
    /// The packets that are in no record.
    pub left_out: LeftOut,
    /// The agent that was recorded, if this is a recording of ours.
    pub agent: Option<RecordedAgent>,
    /// Whether the file ends in the middle of a packet.
    pub is_cut: bool,
    /// Why the rest of the file, behind the packets, makes no sense.
    pub damage: Option<String>,
}

impl Capture {
    /// Reads a file.
    pub fn open(path: &Path) -> Result<Self, ReplayError> {
        Self::read(File::open(path).map_err(ReplayError::Unreadable)?)
    }

    /// Reads a capture up to its end.
    pub fn read(file: impl Read) -> Result<Self, ReplayError> {
        let mut source = Source::new(file).map_err(ReplayError::Unreadable)?;
        let magic = match source.next::<4>() {
            Ok(Some(magic)) => magic,
            Ok(None) | Err(Stop::Cut) => return Err(ReplayError::NotACapture),
            Err(Stop::Damaged(why)) => return Err(ReplayError::Damaged { packets: 0, why }),
            Err(Stop::Unreadable(error)) => return Err(ReplayError::Unreadable(error)),
        };
        let mut reading = Reading::default();
        let read = match Format::of(magic) {
            Some(format) => pcap::read(format, &mut source, &mut reading),
            None if magic == pcapng::SECTION_HEADER => pcapng::read(&mut source, &mut reading),
            None => return Err(not_a_capture(magic)),
        };
        let (is_cut, damage) = match read {
            Ok(()) => (false, None),
            Err(Stop::Cut) => (true, None),
            Err(Stop::Damaged(why)) => (false, Some(why)),
            Err(Stop::Unreadable(error)) => return Err(ReplayError::Unreadable(error)),
        };
        Self::of(reading, is_cut, damage)
    }

    /// The name of the interface of a record.
    pub(super) fn interface(&self, record: &Record) -> Option<&str> {
        self.interfaces.get(record.interface)?.name.as_deref()
    }

    fn of(mut reading: Reading, is_cut: bool, damage: Option<String>) -> Result<Self, ReplayError> {
        // Packets of several interfaces are not always written in the order of time.
        reading.records.sort_by_key(|(nanos, _)| *nanos);
        let one = united(&times(&reading));
        let Reading { interfaces, records, left_out, agent } = reading;
        let Some(&(first, _)) = records.first() else {
            return Err(match damage {
                Some(why) => ReplayError::Damaged { packets: 0, why },
                None if left_out.is_empty() => ReplayError::Empty,
                None => ReplayError::NoTcp { left_out },
            });
        };
        // An agent's timers have no end at the end of time.
        if records.last().is_some_and(|(last, _)| last - first > LONGEST.as_nanos() as u64) {
            return Err(ReplayError::TooLong);
        }
        let since = |(nanos, record): (u64, Record)| {
            let (at, interface) = (Instant::from_nanos(nanos - first), one[record.interface]);
            Record { at, interface, ..record }
        };
        let records = records.into_iter().map(since).collect();
        Ok(Self { interfaces, records, left_out, agent, is_cut, damage })
    }
}

fn not_a_capture(magic: [u8; 4]) -> ReplayError {
    match PACKED.iter().find(|(begin, _)| *begin == magic) {
        Some((_, program)) => ReplayError::Packed(program),
        None if magic.starts_with(b"BZh") => ReplayError::Packed("bunzip2"),
        None => ReplayError::NotACapture,
    }
}

/// Each interface with the times of its first packet and its last, where it has any. The packets
/// are in the order of time.
fn times(reading: &Reading) -> Vec<(&Interface, Option<(u64, u64)>)> {
    let mut seen: Vec<_> = reading.interfaces.iter().map(|interface| (interface, None)).collect();
    for (nanos, record) in &reading.records {
        let (_, times) = &mut seen[record.interface];
        *times = Some((times.map_or(*nanos, |(first, _)| first), *nanos));
    }
    seen
}
