//! What fuzz targets read their choices from.

use airmend_proto::{LinkType, Packet};

/// Bytes still to be read; zeros after the last one.
pub(crate) struct Input<'a>(pub(crate) &'a [u8]);

impl Input<'_> {
    pub(crate) fn byte(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        *first
    }

    pub(crate) fn word(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }

    /// Mostly small, so that numbers meet.
    pub(crate) fn number(&mut self) -> u32 {
        match self.byte() {
            small @ 0..240 => u32::from(small % 12),
            240..250 => 4_090 + u32::from(self.byte() % 10),
            _ => u32::from(self.word()) << 16 | u32::from(self.word()),
        }
    }

    /// TCP over IPv4, or nearly.
    pub(crate) fn packet(&mut self) -> Packet {
        let mut bytes = vec![0; 40 + usize::from(self.byte())];
        let total_len = bytes.len() as u16;
        bytes[0] = 0x45;
        bytes[2..4].copy_from_slice(&total_len.to_be_bytes());
        bytes[9] = [6, 6, 17, self.byte()][usize::from(self.byte() & 3)];
        bytes[23] = self.byte();
        bytes[32] = 0x50;
        Packet::new(LinkType::Ip, bytes.into())
    }
}
