//! Fields of headers, written in place.

use crate::wire::checksum;

/// Offset of the checksum in a TCP header.
pub(super) const TCP_CHECKSUM: usize = 16;

pub(super) fn set_u16(bytes: &mut [u8], at: usize, value: u16) -> Option<()> {
    bytes.get_mut(at..at + 2)?.copy_from_slice(&value.to_be_bytes());
    Some(())
}

/// Updates the checksum at `at` for all words in which `new` differs from `old` (RFC 1624). Both
/// begin at an even offset of what is summed.
pub(super) fn update_checksum(new: &mut [u8], old: &[u8], at: usize) -> Option<()> {
    let field = u16::from_be_bytes(*new.get(at..)?.first_chunk()?);
    let words = |bytes: &[u8]| u16::from_be_bytes([bytes[0], *bytes.get(1).unwrap_or(&0)]);
    let updated = old.chunks(2).zip(new.chunks(2)).fold(field, |sum, (old, new)| {
        if old == new { sum } else { checksum::update_u16(sum, words(old), words(new)) }
    });
    set_u16(new, at, updated)
}
