//! What an agent may change in a packet: each judged from both packets, not from what it says.

use super::packet::{CE, NEGATIVE_ACK, Tcp};
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

/// Whether `actual` is `original` with an older timestamp [C-27]; the invariants check that its
/// sender has used it.
pub(crate) fn is_restored(actual: &Packet, original: &Packet) -> bool {
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
}

/// Whether `actual` is the ACK of `original` with the range of a `duplicate` as its first block
/// [C-29]; the invariants check the blocks.
pub(crate) fn is_duplicate_report(actual: &Packet, original: &Packet, duplicate: &Packet) -> bool {
    let (Ok(new), Ok(old)) = (Segment::parse(actual), Segment::parse(original)) else {
        return false;
    };
    let Ok(twice) = Segment::parse(duplicate) else { return false };
    new.options.sack.as_slice().first() == Some(&(twice.seq, twice.end()))
        && (new.source, new.destination) == (old.source, old.destination)
        && (new.ack, new.window, new.payload_len) == (old.ack, old.window, 0)
        && new.options.timestamps == old.options.timestamps
        && Tcp::is_intact(actual)
}

/// Whether `actual` repeats the ACK of `original` with the codepoint of a negative acknowledgment
/// [S0-41]; the invariants check the blocks.
pub(crate) fn is_negative_ack(actual: &Packet, original: &Packet) -> bool {
    let (Some(new), Some(old)) = (Tcp::read(actual), Tcp::read(original)) else { return false };
    new.dscp == NEGATIVE_ACK
        && (new.flow, new.sender, new.ipv6, new.len) == (old.flow, old.sender, old.ipv6, 0)
        && (new.ack, new.window) == (old.ack, old.window)
        && Tcp::is_intact(actual)
}

/// Lengths, checksums and payload are right, if they were.
fn is_right(actual: &Packet, original: &Packet) -> bool {
    Tcp::is_intact(actual) || !Tcp::is_intact(original)
}
