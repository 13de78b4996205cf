//! The Internet checksum (RFC 1071), over TCP with its pseudo-header, and its incremental update.

use crate::packet::Packet;
use crate::wire::ip;
use crate::wire::tcp::Segment;

/// Where a TCP header has its checksum, in bytes.
pub const TCP_FIELD: usize = 16;

/// The Internet checksum of `bytes`: what a header's checksum field should hold if that field
/// stands as zero in `bytes`; zero if `bytes` includes a checksum that is right.
pub fn internet(bytes: &[u8]) -> u16 {
    !fold(sum(bytes))
}

/// The TCP checksum of a segment of `wire_len` bytes, header and payload, that begins with
/// `captured`; the rest counts as zeros. The checksum field stands as zero, or else this is zero
/// exactly if the checksum is right.
///
/// Addresses are IPv6 or IPv4-mapped. One formula serves both: the prefix ::ffff adds 0xffff,
/// which is zero in one's complement, and the pseudo-headers (RFC 9293 §3.1, RFC 8200 §8.1) differ
/// in nothing else that is not zero.
pub fn tcp(source: &[u8; 16], destination: &[u8; 16], captured: &[u8], wire_len: u32) -> u16 {
    let pseudo_header = sum(source) + sum(destination) + u64::from(ip::TCP) + u64::from(wire_len);
    !fold(pseudo_header + sum(captured))
}

/// What a checksum field holds that is left to a network card: the sum of the pseudo-header alone,
/// for a segment of `wire_len` bytes.
pub fn of_pseudo_header(source: &[u8; 16], destination: &[u8; 16], wire_len: u32) -> u16 {
    !tcp(source, destination, &[], wire_len)
}

/// Whether a segment, header and whole payload, carries the right TCP checksum.
///
/// Packets between two hosts of one machine often do not: theirs is left to a network card.
pub fn tcp_is_right(source: &[u8; 16], destination: &[u8; 16], segment: &[u8]) -> bool {
    tcp(source, destination, segment, segment.len() as u32) == 0
}

/// Whether the TCP checksum of a packet is right; true for a packet that was not captured whole,
/// whose checksum nobody can verify.
pub fn has_right_checksum(packet: &Packet) -> bool {
    let Ok(segment) = Segment::parse(packet) else { return true };
    let begin = usize::from(segment.transport_offset);
    let end = usize::from(segment.payload_offset) + segment.payload_len as usize;
    let (source, destination) = (&segment.source.address, &segment.destination.address);
    let captured = packet.bytes().get(begin..end);
    captured.is_none_or(|tcp| tcp_is_right(source, destination, tcp))
}

/// `checksum` after a 16-bit word at an even offset changed from `old` to `new` (RFC 1624 eqn 3).
pub fn update_u16(checksum: u16, old: u16, new: u16) -> u16 {
    !fold(u64::from(!checksum) + u64::from(!old) + u64::from(new))
}

/// `checksum` after a 32-bit word at an even offset changed from `old` to `new`.
pub fn update_u32(checksum: u16, old: u32, new: u32) -> u16 {
    let words = |word: u32| u64::from(word >> 16) + u64::from(word & 0xffff);
    !fold(u64::from(!checksum) + words(!old) + words(new))
}

/// The sum of all big-endian 16-bit words; a last odd byte is padded with zero.
fn sum(bytes: &[u8]) -> u64 {
    // Four bytes at a time: their two words end up in one sum, which `fold` adds together.
    let (words, rest) = bytes.as_chunks::<4>();
    let whole: u64 = words.iter().map(|word| u64::from(u32::from_be_bytes(*word))).sum();
    let tail = match *rest {
        [a] => [a, 0, 0, 0],
        [a, b] => [a, b, 0, 0],
        [a, b, c] => [a, b, c, 0],
        _ => [0; 4],
    };
    whole + u64::from(u32::from_be_bytes(tail))
}

/// Sixteen bits with all carries added back.
fn fold(sum: u64) -> u16 {
    let mut sum = sum;
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_rfc_1071() {
        // RFC 1071 §3: the one's complement sum of these bytes is ddf2.
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(internet(&bytes), !0xddf2);
        assert_eq!(internet(&bytes[..7]), !(0xddf2 - 0xf7));
        assert_eq!(internet(&[]), 0xffff);
    }

    #[test]
    fn a_right_checksum_sums_to_zero() {
        // An IPv4 header from a capture.
        let header = [
            0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0xb8, 0x61, 0xc0, 0xa8,
            0x00, 0x01, 0xc0, 0xa8, 0x00, 0xc7,
        ];
        assert_eq!(internet(&header), 0);
    }

    #[test]
    fn a_card_adds_the_segment_to_the_sum_of_the_pseudo_header() {
        let (source, destination) = ([1; 16], [2; 16]);
        let mut segment = *b"a header and a payload";
        let length = segment.len() as u32;
        segment[16..18].fill(0);
        let whole = tcp(&source, &destination, &segment, length);
        let left = of_pseudo_header(&source, &destination, length);
        segment[16..18].copy_from_slice(&left.to_be_bytes());
        assert_eq!(internet(&segment), whole);
    }

    #[test]
    fn the_example_of_rfc_1624() {
        // RFC 1624 §4: the older equations give ffff here; eqn 3 gives the right 0000.
        assert_eq!(update_u16(0xdd2f, 0x5555, 0x3285), 0x0000);
    }

    #[test]
    fn an_update_equals_a_fresh_sum() {
        let mut bytes = [0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0, 0x01, 0xff];
        let before = internet(&bytes);
        bytes[2..4].copy_from_slice(&0xbeefu16.to_be_bytes());
        let between = update_u16(before, 0x5678, 0xbeef);
        assert_eq!(between, internet(&bytes));
        bytes[4..8].copy_from_slice(&0xcafe_f00du32.to_be_bytes());
        assert_eq!(update_u32(between, 0x9abc_def0, 0xcafe_f00d), internet(&bytes));
    }
}
