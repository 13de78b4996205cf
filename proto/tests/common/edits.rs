//! What an agent may change in a packet: each judged from both packets, not from what it says.

use super::packet::{CE, Tcp};
use airmend_proto::Packet;
use airmend_proto::wire::tcp::{Options, Segment};

/// Whether `actual` is `original` without some of its SACK blocks: in their place are NOPs, and
/// nothing else has changed.
pub(crate) fn is_stripped(actual: &Packet, original: &Packet) -> bool {
    let (Ok(new), Ok(old)) = (Segment::parse(actual), Segment::parse(original)) else {
        return false;
    };
    let (kept, had) = (new.options.sack.as_slice(), old.options.sack.as_slice());
    let same = Segment { options: Options { sack: old.options.sack, ..new.options }, ..new } == old;
    same && is_right(actual, original)
        && kept.len() < had.len()
        && kept.iter().all(|block| had.contains(block))
}

/// Whether `actual` is `original` with the codepoint "congestion experienced".
pub(crate) fn is_marked(actual: &Packet, original: &Packet) -> bool {
    let (Some(new), Some(old)) = (Tcp::read(actual), Tcp::read(original)) else { return false };
    let capable = old.ecn != 0 && old.ecn != CE;
    capable && Tcp { ecn: CE, ..old } == new && is_right(actual, original)
}

/// Whether `part` is a segment of `whole`, perhaps all of it, with the same timestamp or another.
pub(crate) fn is_part(part: &Packet, whole: &Packet) -> bool {
    let (Some(new), Some(old)) = (Tcp::read(part), Tcp::read(whole)) else { return false };
    let from = new.seq.wrapping_sub(old.seq);
    let lies_within = u64::from(from) + u64::from(new.len) <= u64::from(old.len);
    let differing = new.options.iter().zip(&old.options).enumerate().filter(|(_, (a, b))| a != b);
    let mut differing = differing.map(|(at, _)| at);
    let first = differing.next();
    let only_a_word = first.is_none_or(|first| differing.all(|at| at < first + 4));
    let same = Tcp {
        seq: new.seq,
        len: new.len,
        flags: new.flags,
        options: new.options.clone(),
        segment_size: new.segment_size,
        ..old.clone()
    };
    same == new
        && new.flags.0 & !old.flags.0 == 0
        && new.options.len() == old.options.len()
        && lies_within
        && only_a_word
        && is_right(part, whole)
}

/// Whether `actual` is `original` with an older timestamp, of those that its sender `has_used`
/// [C-27].
pub(crate) fn is_restored(
    actual: &Packet,
    original: &Packet,
    has_used: impl Fn(u32) -> bool,
) -> bool {
    let (Ok(new), Ok(old)) = (Segment::parse(actual), Segment::parse(original)) else {
        return false;
    };
    let (Some(restored), Some(had)) = (new.options.timestamps, old.options.timestamps) else {
        return false;
    };
    let options = Options { timestamps: old.options.timestamps, ..new.options };
    Segment { options, ..new } == old
        && is_right(actual, original)
        && restored.echo == had.echo
        && (restored.value.wrapping_sub(had.value) as i32) < 0
        && has_used(restored.value)
}

/// Whether `actual` is the ACK of `original` with the range of a `duplicate` as its first block,
/// and blocks of the original behind it [C-29].
pub(crate) fn is_duplicate_report(actual: &Packet, original: &Packet, duplicate: &Packet) -> bool {
    let (Ok(new), Ok(old)) = (Segment::parse(actual), Segment::parse(original)) else {
        return false;
    };
    let Ok(twice) = Segment::parse(duplicate) else { return false };
    let Some((first, rest)) = new.options.sack.as_slice().split_first() else { return false };
    let had = old.options.sack.as_slice();
    let (left, right) = *first;
    let is_reported = |block: &(_, _)| block.0 <= left && right <= block.1;
    *first == (twice.seq, twice.end())
        && (right <= old.ack || had.iter().any(is_reported))
        && rest.iter().all(|block| had.contains(block))
        && (new.source, new.destination) == (old.source, old.destination)
        && (new.ack, new.window, new.payload_len) == (old.ack, old.window, 0)
        && new.options.timestamps == old.options.timestamps
        && Tcp::is_intact(actual)
}

/// Lengths, checksums and payload are right, if they were.
fn is_right(actual: &Packet, original: &Packet) -> bool {
    Tcp::is_intact(actual) || !Tcp::is_intact(original)
}
