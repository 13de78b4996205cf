//! The bytes of a capture, unpacked, and how they end.

use flate2::bufread::MultiGzDecoder;
use std::io::{self, BufRead, BufReader, Read};

/// The longest packet or block, in bytes. Wireshark's bound for blocks.
const LONGEST: u32 = 16 << 20;
/// What a compressed capture may have unpacked, in bytes.
const MOST_UNPACKED: u64 = 16 << 30;

/// Why a capture ends before its end.
#[derive(Debug)]
pub(super) enum Stop {
    /// The file ends in the middle of a packet.
    Cut,
    /// The rest makes no sense.
    Damaged(String),
    /// The file cannot be read.
    Unreadable(io::Error),
}

/// The bytes of a file.
pub(super) struct Source<R: Read>(Packing<R>);

enum Packing<R: Read> {
    Plain(BufReader<R>),
    Gzip(Box<BufReader<io::Take<MultiGzDecoder<BufReader<R>>>>>),
}

impl<R: Read> Source<R> {
    /// The bytes of a file, which gzip may have packed.
    pub(super) fn new(file: R) -> io::Result<Self> {
        let mut file = BufReader::new(file);
        let is_gzip = file.fill_buf()?.starts_with(&[0x1f, 0x8b]);
        Ok(Self(if is_gzip {
            let unpacked = MultiGzDecoder::new(file).take(MOST_UNPACKED);
            Packing::Gzip(Box::new(BufReader::new(unpacked)))
        } else {
            Packing::Plain(file)
        }))
    }

    /// The next bytes, none at the end of the file.
    pub(super) fn next<const N: usize>(&mut self) -> Result<Option<[u8; N]>, Stop> {
        let mut bytes = Vec::with_capacity(N);
        self.append(N as u64, &mut bytes)?;
        match bytes.len() {
            0 => Ok(None),
            _ => bytes.try_into().map(Some).map_err(|_| Stop::Cut),
        }
    }

    /// As many bytes of a packet or block, into a buffer that they fill alone.
    pub(super) fn fill(&mut self, length: u32, buffer: &mut Vec<u8>) -> Result<(), Stop> {
        if length > LONGEST {
            return Err(Stop::Damaged(format!("a packet or block of {length} bytes")));
        }
        buffer.clear();
        self.append(u64::from(length), buffer)?;
        if buffer.len() as u64 == u64::from(length) { Ok(()) } else { Err(Stop::Cut) }
    }

    fn append(&mut self, length: u64, buffer: &mut Vec<u8>) -> Result<(), Stop> {
        let read = match &mut self.0 {
            Packing::Plain(file) => file.take(length).read_to_end(buffer),
            Packing::Gzip(file) => file.take(length).read_to_end(buffer),
        };
        match read {
            Ok(_) => Ok(()),
            Err(error) => Err(match error.kind() {
                io::ErrorKind::UnexpectedEof => Stop::Cut,
                io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => {
                    Stop::Damaged(format!("it cannot be unpacked ({error})"))
                }
                _ => Stop::Unreadable(error),
            }),
        }
    }
}
