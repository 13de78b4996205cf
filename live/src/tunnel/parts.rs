//! Frames in parts: frames that were built before the path's MTU decreased, and those that IPv6 or
//! `--mtu` make longer than it.
//!
//! IP's own fragments would not do: many paths drop them, and where ICMP is filtered the kernel
//! does not know how long they may be.

use super::message::{Message, PART_HEADER};
use airmend_proto::{Ecn, Instant};
use bytes::Bytes;
use std::collections::VecDeque;
use std::time::Duration;

/// Frames put together at a time, and bytes that their parts take; the oldest ones make room. Of
/// many peers each has a share of what packets may take at all.
const FRAMES: usize = 64;
const BYTES: usize = 4 << 20;
const SHARE: usize = 8;
/// Bytes that a part takes besides its own: its place in its frame, and the allocator's.
const OVERHEAD: usize = 64;
/// A frame that has not come whole within this time never will (RFC 791 §3.2).
const LIFETIME: Duration = Duration::from_secs(15);

/// Cuts a frame into parts that are at most `room` bytes long as messages; `None` if that takes
/// more than 255.
pub(super) fn split(
    number: u32,
    frame: &[u8],
    room: usize,
) -> Option<impl Iterator<Item = Message<'_>>> {
    let size = room.checked_sub(PART_HEADER).filter(|size| *size > 0)?;
    let of = u8::try_from(frame.len().div_ceil(size)).ok()?;
    let parts = (0..of).zip(frame.chunks(size));
    Some(parts.map(move |(part, bytes)| Message::Part { number, part, of, bytes }))
}

/// Puts frames together.
#[derive(Debug)]
pub(super) struct Parts {
    frames: VecDeque<Incomplete>,
    /// Bytes that they take, and may take.
    bytes: usize,
    max_bytes: usize,
}

#[derive(Debug)]
struct Incomplete {
    number: u32,
    /// Copies, so that a short part keeps no long buffer.
    parts: Vec<Option<Box<[u8]>>>,
    bytes: usize,
    since: Instant,
    /// The ECN field of the whole: that of any part, but a mark is kept (RFC 3168 §5.3).
    ecn: Ecn,
}

impl Parts {
    /// Nothing, of a peer whose packets may take so many bytes.
    pub(super) fn new(cache_bytes: usize) -> Self {
        let mut parts = Self { frames: VecDeque::new(), bytes: 0, max_bytes: 0 };
        parts.limit_cache(cache_bytes);
        parts
    }

    /// From now on the peer's packets may take so many bytes.
    pub(super) fn limit_cache(&mut self, bytes: usize) {
        self.max_bytes = BYTES.min(bytes / SHARE);
    }

    /// Bytes that they take.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes a part, which of how many it is, and the ECN field that it arrived with; the frame, if
    /// that was its last one.
    pub(super) fn push(
        &mut self,
        now: Instant,
        number: u32,
        (part, of): (u8, u8),
        bytes: &[u8],
        ecn: Ecn,
    ) -> Option<(Bytes, Ecn)> {
        self.expire(now);
        let place =
            |frames: &VecDeque<Incomplete>| frames.iter().rposition(|frame| frame.number == number);
        let is_new = place(&self.frames).is_none();
        let new_bytes = OVERHEAD + bytes.len();
        while self.bytes + new_bytes > self.max_bytes || is_new && self.frames.len() == FRAMES {
            self.forget_oldest()?;
        }
        let at = place(&self.frames).unwrap_or_else(|| {
            let parts = vec![None; usize::from(of)];
            self.frames.push_back(Incomplete { number, parts, bytes: 0, since: now, ecn });
            self.frames.len() - 1
        });
        let frame = self.frames.get_mut(at)?;
        let before = frame.parts.get_mut(usize::from(part))?.replace(bytes.into());
        let old_bytes = before.map_or(0, |before| OVERHEAD + before.len());
        frame.bytes = frame.bytes + new_bytes - old_bytes;
        self.bytes = self.bytes + new_bytes - old_bytes;
        if ecn == Ecn::Ce {
            frame.ecn = ecn;
        }
        if frame.parts.iter().any(Option::is_none) {
            return None;
        }
        let Incomplete { parts, bytes, ecn, .. } = self.frames.remove(at)?;
        self.bytes -= bytes;
        let whole: Vec<_> = parts.into_iter().flatten().collect();
        Some((whole.concat().into(), ecn))
    }

    /// Forgets frames that never came whole.
    pub(super) fn expire(&mut self, now: Instant) {
        while self.frames.front().is_some_and(|frame| now.since(frame.since) > LIFETIME) {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) -> Option<()> {
        self.bytes -= self.frames.pop_front()?.bytes;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(length: usize) -> Vec<u8> {
        (0..length).map(|at| (at * 7) as u8).collect()
    }

    /// What comes of these parts of the frames with these numbers.
    fn put(parts: &mut Parts, messages: &[Vec<u8>]) -> Vec<Bytes> {
        let read = messages.iter().map(|bytes| match Message::parse(bytes) {
            Some(Message::Part { number, part, of, bytes }) => parts
                .push(Instant::ZERO, number, (part, of), bytes, Ecn::Ect0)
                .map(|(whole, _)| whole),
            other => panic!("{other:?}"),
        });
        read.flatten().collect()
    }

    fn cut(number: u32, frame: &[u8], room: usize) -> Vec<Vec<u8>> {
        split(number, frame, room).expect("few parts").map(|part| part.bytes(0)).collect()
    }

    #[test]
    fn a_frame_in_parts_comes_back_in_any_order() {
        for length in [100, 513, 514, 1026, 1422] {
            let whole = frame(length);
            let mut messages = cut(3, &whole, 520);
            assert!(messages.iter().all(|message| message.len() <= 520));
            let mut parts = Parts::new(usize::MAX);
            for _ in 0..messages.len() {
                messages.rotate_left(1);
                assert_eq!(put(&mut parts, &messages), [&whole[..]], "{length}");
                assert!(parts.frames.is_empty() && parts.bytes == 0);
            }
        }
    }

    #[test]
    fn frames_do_not_mix_and_lost_parts_are_forgotten() {
        let (whole, mut parts) = (frame(1000), Parts::new(usize::MAX));
        for number in 0..200 {
            assert!(put(&mut parts, &cut(number, &whole, 520)[..1]).is_empty());
        }
        assert_eq!(parts.frames.len(), FRAMES);
        assert_eq!(put(&mut parts, &cut(199, &whole, 520)[1..]), [&whole[..]]);
        assert!(put(&mut parts, &cut(1, &whole, 520)[1..]).is_empty());
        // Nobody sends that: the same number with another count.
        assert!(
            put(&mut parts, &[Message::Part { number: 198, part: 9, of: 10, bytes: &[] }.bytes(0)])
                .is_empty()
        );
    }

    #[test]
    fn parts_take_no_more_memory_than_their_bound_and_not_for_ever() {
        let (long, mut parts) = (frame(60_000), Parts::new(usize::MAX));
        for number in 0..FRAMES as u32 {
            for part in 0..254 {
                // The second one takes the place of the first.
                for bytes in [&long[..1], &long] {
                    let now = Instant::from_millis(1_000);
                    assert!(parts.push(now, number, (part, 255), bytes, Ecn::Ect0).is_none());
                }
            }
            let held = parts.frames.iter().flat_map(|frame| frame.parts.iter().flatten());
            let held: usize = held.map(|part| OVERHEAD + part.len()).sum();
            assert_eq!(parts.bytes, held);
            assert!(held <= BYTES, "{held} bytes");
        }
        parts.expire(Instant::from_millis(1_000) + LIFETIME);
        assert!(parts.bytes > BYTES / 2);
        parts.expire(Instant::from_millis(17_000));
        assert_eq!((parts.bytes, parts.frames.len()), (0, 0));
    }

    #[test]
    fn a_mark_on_any_part_is_one_on_the_whole() {
        for marked in 0..4 {
            let mut parts = Parts::new(usize::MAX);
            let mut push = |part| {
                let ecn = if part == marked { Ecn::Ce } else { Ecn::Ect0 };
                parts.push(Instant::ZERO, 1, (part, 3), b"part", ecn)
            };
            let whole = [0, 1, 2].map(&mut push)[2].clone();
            let expected = if marked < 3 { Ecn::Ce } else { Ecn::Ect0 };
            assert_eq!(whole.map(|(_, ecn)| ecn), Some(expected), "{marked}");
        }
    }

    #[test]
    fn what_needs_too_many_parts_is_not_cut() {
        assert!(split(0, &frame(1000), PART_HEADER).is_none());
        assert!(split(0, &frame(1000), PART_HEADER + 3).is_none());
        assert!(split(0, &frame(1000), 0).is_none());
    }
}
