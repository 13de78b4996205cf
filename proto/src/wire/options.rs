//! TCP options: every one walked, those that matter to an agent kept.

use crate::wire::seq::SeqNumber;
use alloc::vec::Vec;
use core::ops::Range;

/// A TCP header has room for this many bytes of options (RFC 9293 §3.1).
pub(super) const MAX_OPTIONS_LEN: usize = 40;
/// RFC 7323 §2.3: a larger shift is taken as 14.
const MAX_WINDOW_SCALE: u8 = 14;

const END_OF_OPTIONS: u8 = 0;
pub(super) const NO_OPERATION: u8 = 1;
const MAXIMUM_SEGMENT_SIZE: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
pub(super) const SACK: u8 = 5;
pub(super) const TIMESTAMPS: u8 = 8;
/// RFC 2385.
const MD5_SIGNATURE: u8 = 19;
/// Multipath TCP (RFC 8684).
const MULTIPATH: u8 = 30;
/// TCP-AO (RFC 5925).
const AUTHENTICATION: u8 = 29;

/// RFC 7323 timestamps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Timestamps {
    /// TSval, the sender's clock.
    pub value: u32,
    /// TSecr, the peer's clock echoed.
    pub echo: u32,
}

/// Up to four SACK blocks (RFC 2018 §3): as many as fit into a header's 40 bytes of options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    blocks: [(SeqNumber, SeqNumber); 4],
    count: u8,
}

impl SackBlocks {
    /// The blocks in the order of the option, each from its left edge to beyond its right edge.
    pub fn as_slice(&self) -> &[(SeqNumber, SeqNumber)] {
        self.blocks.get(..usize::from(self.count)).unwrap_or(&[])
    }

    /// Adds a block; a fifth one does not fit and is ignored.
    pub fn push(&mut self, left: SeqNumber, right: SeqNumber) {
        if let Some(slot) = self.blocks.get_mut(usize::from(self.count)) {
            *slot = (left, right);
            self.count += 1;
        }
    }

    /// Whether there is no block.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn parse(body: &[u8]) -> Self {
        let mut blocks = Self::default();
        for block in body.as_chunks::<8>().0 {
            let &[a, b, c, d, e, f, g, h] = block;
            blocks.push(
                SeqNumber(u32::from_be_bytes([a, b, c, d])),
                SeqNumber(u32::from_be_bytes([e, f, g, h])),
            );
        }
        blocks
    }
}

impl FromIterator<(SeqNumber, SeqNumber)> for SackBlocks {
    fn from_iter<I: IntoIterator<Item = (SeqNumber, SeqNumber)>>(blocks: I) -> Self {
        let mut this = Self::default();
        blocks.into_iter().for_each(|(left, right)| this.push(left, right));
        this
    }
}

/// The options that matter to an agent; all others are skipped by their length.
///
/// They are kept as they stand in the header: MSS, window scale and SACK-permitted mean something
/// on SYN segments only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Maximum segment size.
    pub mss: Option<u16>,
    /// Window scale shift, at most 14.
    pub window_scale: Option<u8>,
    /// SACK permitted (on SYN segments).
    pub sack_permitted: bool,
    /// Timestamps.
    pub timestamps: Option<Timestamps>,
    /// Selective acknowledgments.
    pub sack: SackBlocks,
    /// TCP-AO or MD5 signs the header: it may be dropped or passed, never edited.
    pub signed: bool,
    /// An option of Multipath TCP, whose content belongs to another connection.
    pub multipath: bool,
}

impl Options {
    /// Walks the options of a header.
    ///
    /// An option whose length is less than 2 or runs past the end breaks the list. The walk ends
    /// there and what came before it holds, as in Linux: the receiver will take the segment, so an
    /// agent may mend it. An option of a known kind and a wrong length is skipped like an unknown
    /// one, and of two options of one kind the last counts, again as in Linux.
    pub(super) fn parse(bytes: &[u8]) -> Self {
        let mut options = Self::default();
        walk(bytes, |kind, _, body| options.take(kind, body));
        options
    }

    /// Keeps one option if it is of a kind that matters.
    fn take(&mut self, kind: u8, body: &[u8]) {
        match (kind, body) {
            (MAXIMUM_SEGMENT_SIZE, &[a, b]) => self.mss = Some(u16::from_be_bytes([a, b])),
            (WINDOW_SCALE, &[shift]) => self.window_scale = Some(shift.min(MAX_WINDOW_SCALE)),
            (SACK_PERMITTED, []) => self.sack_permitted = true,
            (TIMESTAMPS, &[a, b, c, d, e, f, g, h]) => {
                self.timestamps = Some(Timestamps {
                    value: u32::from_be_bytes([a, b, c, d]),
                    echo: u32::from_be_bytes([e, f, g, h]),
                });
            }
            (SACK, body) if !body.is_empty() && body.len().is_multiple_of(8) => {
                self.sack = SackBlocks::parse(body);
            }
            // Of any length: a signature that looks odd here may still be one to the receiver.
            (MD5_SIGNATURE | AUTHENTICATION, _) => self.signed = true,
            (MULTIPATH, _) => self.multipath = true,
            _ => {}
        }
    }

    /// Appends the options as Linux lays them out. What does not fit into `room` bytes is left out,
    /// SACK blocks last and one by one.
    pub(super) fn emit(&self, header: &mut Vec<u8>, room: usize) {
        let full = header.len() + room;
        let mut push = |option: &[u8]| {
            if header.len() + option.len() <= full {
                header.extend_from_slice(option);
            }
        };
        if let Some(mss) = self.mss {
            let [a, b] = mss.to_be_bytes();
            push(&[MAXIMUM_SEGMENT_SIZE, 4, a, b]);
        }
        if self.sack_permitted {
            push(&[NO_OPERATION, NO_OPERATION, SACK_PERMITTED, 2]);
        }
        if let Some(Timestamps { value, echo }) = self.timestamps {
            let mut option = [NO_OPERATION, NO_OPERATION, TIMESTAMPS, 10, 0, 0, 0, 0, 0, 0, 0, 0];
            option[4..8].copy_from_slice(&value.to_be_bytes());
            option[8..].copy_from_slice(&echo.to_be_bytes());
            push(&option);
        }
        if let Some(shift) = self.window_scale {
            push(&[NO_OPERATION, WINDOW_SCALE, 3, shift]);
        }
        if self.signed {
            // A digest of zeros: a stand-in that every parser takes for a signature.
            let mut option = [0; 20];
            option[..4].copy_from_slice(&[NO_OPERATION, NO_OPERATION, MD5_SIGNATURE, 18]);
            push(&option);
        }
        let fitting = full.saturating_sub(header.len() + 4) / 8;
        let blocks = self.sack.as_slice();
        let blocks = blocks.get(..fitting).unwrap_or(blocks);
        if !blocks.is_empty() {
            let len = 2 + 8 * blocks.len() as u8;
            header.extend_from_slice(&[NO_OPERATION, NO_OPERATION, SACK, len]);
            for (left, right) in blocks {
                header.extend_from_slice(&left.0.to_be_bytes());
                header.extend_from_slice(&right.0.to_be_bytes());
            }
        }
    }
}

/// Where the last option of this kind stands, kind and length included: the one that counts.
pub(super) fn find(bytes: &[u8], kind: u8) -> Option<Range<usize>> {
    let mut found = None;
    walk(bytes, |other, range, body| {
        // SACK with a wrong length is skipped like an unknown option, as [`Options::take`] does.
        let counts = kind != SACK || (!body.is_empty() && body.len().is_multiple_of(8));
        if other == kind && counts {
            found = Some(range);
        }
    });
    found
}

/// Calls `take` with the kind, the place and the body of each option that has a length.
fn walk(bytes: &[u8], mut take: impl FnMut(u8, Range<usize>, &[u8])) {
    let mut at = 0;
    while let Some([kind, behind @ ..]) = bytes.get(at..) {
        if *kind == NO_OPERATION {
            at += 1;
            continue;
        }
        if *kind == END_OF_OPTIONS {
            break;
        }
        let [len, ..] = behind else { break };
        let end = at + usize::from(*len);
        let Some([_, _, body @ ..]) = bytes.get(at..end) else { break };
        take(*kind, at..end, body);
        at = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TS: [u8; 10] = [8, 10, 0, 0, 0, 1, 0, 0, 0, 2];

    fn seen(parts: &[&[u8]]) -> Options {
        Options::parse(&parts.concat())
    }

    fn timestamps() -> Option<Timestamps> {
        Some(Timestamps { value: 1, echo: 2 })
    }

    #[test]
    fn unknown_kinds_are_skipped_by_their_length() {
        // Multipath TCP, user timeout, Fast Open, an experiment.
        let unknown: [&[u8]; 4] = [&[30, 4, 0, 0], &[28, 4, 1, 2], &[34, 2], &[254, 5, 9, 9, 9]];
        for option in unknown {
            assert_eq!(seen(&[option, &TS]).timestamps, timestamps());
        }
    }

    #[test]
    fn a_broken_list_ends_the_walk_and_keeps_what_came_before() {
        let broken: [&[u8]; 4] = [&[28, 0], &[28, 1], &[28], &[28, 40, 0]];
        for option in broken {
            assert_eq!(seen(&[&TS, option]).timestamps, timestamps());
            let behind = seen(&[option, &TS]);
            assert_eq!(behind, Options::default(), "{option:?}");
        }
    }

    #[test]
    fn nothing_counts_behind_the_end_of_the_list() {
        assert_eq!(seen(&[&[2, 4, 5, 0xb4, 0], &TS]), Options { mss: Some(1460), ..seen(&[]) });
    }

    #[test]
    fn a_known_kind_of_a_wrong_length_is_skipped() {
        let wrong: [&[u8]; 6] =
            [&[2, 3, 1], &[3, 4, 1, 1], &[4, 3, 0], &[5, 2], &[5, 9, 1, 1, 1, 1, 1, 1, 1], &[8, 2]];
        for option in wrong {
            let expected = Options { timestamps: timestamps(), ..Options::default() };
            assert_eq!(seen(&[option, &TS]), expected, "{option:?}");
        }
    }

    #[test]
    fn four_sack_blocks_are_kept() {
        let mut option = [0; 34];
        option[..2].copy_from_slice(&[5, 34]);
        for (at, byte) in option[2..].iter_mut().enumerate() {
            *byte = u8::from(at % 4 == 3) * (at / 4) as u8;
        }
        let expected = [(0, 1), (2, 3), (4, 5), (6, 7)].map(|(l, r)| (SeqNumber(l), SeqNumber(r)));
        assert_eq!(Options::parse(&option).sack.as_slice(), expected);
    }

    #[test]
    fn the_window_scale_is_at_most_14() {
        assert_eq!(seen(&[&[3, 3, 14]]).window_scale, Some(14));
        assert_eq!(seen(&[&[3, 3, 255]]).window_scale, Some(14));
    }

    #[test]
    fn of_two_options_of_one_kind_the_last_counts() {
        assert_eq!(seen(&[&[2, 4, 1, 0], &[2, 4, 2, 0]]).mss, Some(0x200));
    }

    #[test]
    fn multipath_is_seen() {
        assert!(seen(&[&[30, 4, 0, 0], &TS]).multipath && !seen(&[&TS]).multipath);
    }

    #[test]
    fn either_signature_makes_a_header_signed() {
        assert!(seen(&[&[19, 18], &[0; 16]]).signed);
        assert!(seen(&[&[29, 4, 1, 1]]).signed);
        assert!(!seen(&[&TS]).signed);
    }

    #[test]
    fn sack_blocks_that_do_not_fit_are_left_out() {
        let sack: SackBlocks = (0..5).map(|n| (SeqNumber(n), SeqNumber(n + 1))).collect();
        assert_eq!(sack.as_slice().len(), 4);
        let blocks_kept = |options: Options| {
            let mut header = Vec::new();
            options.emit(&mut header, MAX_OPTIONS_LEN);
            assert!(header.len() <= MAX_OPTIONS_LEN);
            Options::parse(&header).sack.as_slice().len()
        };
        let options = Options { sack, ..Options::default() };
        assert_eq!(blocks_kept(options), 4);
        assert_eq!(blocks_kept(Options { timestamps: timestamps(), ..options }), 3);
        assert_eq!(blocks_kept(Options { signed: true, ..options }), 2);
    }
}
