//! Positions in one direction of a connection, as 64-bit numbers that never wrap, and
//! its timestamps.

use crate::time::Instant;
use crate::wire::seq::SeqNumber;

/// One direction: position 0 is the SYN, data begin at 1, the FIN follows the last byte.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stream {
    /// The sequence number of position 0.
    pub(super) isn: SeqNumber,
}

impl Stream {
    /// The sequence number of a position.
    pub(super) fn seq(self, position: u64) -> SeqNumber {
        // The low 32 bits are what sequence numbers are.
        self.isn + position as u32
    }

    /// The position of a sequence number that lies within 2^31 of `near`; none if that would be
    /// before the SYN.
    pub(super) fn position(self, seq: SeqNumber, near: u64) -> Option<u64> {
        near.checked_add_signed(i64::from(seq.offset_from(self.seq(near))))
    }
}

/// The timestamp clock: milliseconds, from 1 on so that no stamp looks like none.
pub(super) fn timestamp(now: Instant) -> u32 {
    (now.as_nanos() / 1_000_000 + 1) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_survive_the_wrap() {
        let stream = Stream { isn: SeqNumber(u32::MAX - 10) };
        for near in [5, 11, 12, (1 << 32) + 3, (7 << 32) + 11] {
            for position in (near - 5..near + 10).chain([near + 1_000_000_000]) {
                assert_eq!(stream.position(stream.seq(position), near), Some(position));
            }
        }
        assert_eq!(stream.position(stream.isn - 1, 3), None);
    }
}
