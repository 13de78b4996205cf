//! Files of the format pcap (draft-ietf-opsawg-pcap).

use super::order::Order;
use super::reading::Reading;
use super::record::Interface;
use super::source::{Source, Stop};
use std::io::Read;

/// The version of every file that has been written since 1998: 2.4.
const VERSION: (u16, u16) = (2, 4);

/// What the first four bytes of a file say of the rest.
#[derive(Clone, Copy)]
pub(super) struct Format {
    order: Order,
    nanos_per_fraction: u64,
    /// Bytes of the header of a packet beyond the 16 of every file.
    more: bool,
}

impl Format {
    /// The format of a file that begins so; none if it is no pcap.
    pub(super) fn of(magic: [u8; 4]) -> Option<Self> {
        let of_order = |order, magic| {
            let (nanos_per_fraction, more) = match magic {
                0xa1b2_c3d4 => (1_000, false),
                0xa1b2_3c4d => (1, false),
                // Kuznetzov's patch of libpcap, in some distributions of the 1990s and in captures
                // of the radios of others.
                0xa1b2_cd34 => (1_000, true),
                _ => return None,
            };
            Some(Self { order, nanos_per_fraction, more })
        };
        of_order(Order::Big, u32::from_be_bytes(magic))
            .or_else(|| of_order(Order::Little, u32::from_le_bytes(magic)))
    }

    fn u32(self, bytes: &[u8], at: usize) -> u32 {
        self.order.u32(bytes, at).unwrap_or_default()
    }

    /// The header of a file that was joined to the one before, in the place of a packet's.
    fn of_joined(header: &[u8; 16]) -> Option<Self> {
        let format = Self::of(*header.first_chunk()?)?;
        let version = (format.order.u16(header, 4)?, format.order.u16(header, 6)?);
        (version == VERSION && header[8..] == [0; 8]).then_some(format)
    }
}

/// Reads a file behind its first four bytes.
pub(super) fn read<R: Read>(
    mut format: Format,
    source: &mut Source<R>,
    reading: &mut Reading,
) -> Result<(), Stop> {
    source.next::<12>()?.ok_or(Stop::Cut)?;
    begin(format, source, reading)?;
    let mut data = Vec::new();
    while let Some(header) = source.next::<16>()? {
        if let Some(joined) = Format::of_joined(&header) {
            format = joined;
            begin(format, source, reading)?;
            continue;
        }
        if format.more {
            source.next::<8>()?.ok_or(Stop::Cut)?;
        }
        let [seconds, fraction, captured, wire_len] =
            [0, 4, 8, 12].map(|at| format.u32(&header, at));
        source.fill(captured, &mut data)?;
        let nanos =
            u64::from(seconds) * 1_000_000_000 + u64::from(fraction) * format.nanos_per_fraction;
        reading.packet(nanos, reading.interfaces.len() - 1, &data, wire_len);
    }
    Ok(())
}

/// Reads the rest of the header of a file.
fn begin<R: Read>(
    format: Format,
    source: &mut Source<R>,
    reading: &mut Reading,
) -> Result<(), Stop> {
    let header = source.next::<8>()?.ok_or(Stop::Cut)?;
    // Above the link type are the presence and the length of a frame check sequence: it is behind
    // the IP packet, whose own length counts.
    let link = format.u32(&header, 4) as u16;
    reading.interfaces.push(Interface { link, ..Interface::default() });
    Ok(())
}
