//! The bytes that a flow carries: pseudo-random, so that a byte in the wrong place shows, and
//! computable from any offset, so that the receiver can check each one.

/// The byte stream of one flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ByteStream {
    seed: u64,
}

impl ByteStream {
    /// The stream of one flow of a run.
    pub(crate) fn new(seed: u64, flow: u32) -> Self {
        Self { seed: mix(seed ^ mix(u64::from(flow) + 1)) }
    }

    /// Fills `buffer` with the bytes from `offset` on.
    pub(crate) fn fill(&self, offset: u64, mut buffer: &mut [u8]) {
        let mut position = offset;
        while !buffer.is_empty() {
            let word = self.word(position / 8);
            let skip = (position % 8) as usize;
            let count = buffer.len().min(8 - skip);
            let (now, rest) = buffer.split_at_mut(count);
            now.copy_from_slice(&word[skip..skip + count]);
            position += count as u64;
            buffer = rest;
        }
    }

    /// The offset of the first of `bytes`, which begin at `offset`, that is not the stream's.
    /// `scratch` is room to work in, at least as long.
    pub(crate) fn first_wrong(&self, offset: u64, bytes: &[u8], scratch: &mut [u8]) -> Option<u64> {
        let expected = &mut scratch[..bytes.len()];
        self.fill(offset, expected);
        if expected == bytes {
            return None;
        }
        let wrong = expected.iter().zip(bytes).position(|(expected, byte)| expected != byte)?;
        Some(offset + wrong as u64)
    }

    fn word(&self, index: u64) -> [u8; 8] {
        mix(self.seed.wrapping_add(index.wrapping_mul(0x9e37_79b9_7f4a_7c15))).to_le_bytes()
    }
}

/// The output function of SplitMix64: every input bit changes half of the output.
fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_cut_of_the_stream_is_the_same_stream() {
        let stream = ByteStream::new(1, 0);
        let mut whole = [0; 100];
        stream.fill(0, &mut whole);
        for begin in 0..100 {
            let mut part = [0; 100];
            let part = &mut part[begin..];
            stream.fill(begin as u64, part);
            assert_eq!(part, &whole[begin..]);
        }
    }

    #[test]
    fn one_wrong_byte_is_found_where_it_is() {
        let (stream, mut scratch) = (ByteStream::new(1, 0), [0; 64]);
        let mut bytes = [0; 50];
        stream.fill(1_000_003, &mut bytes);
        assert_eq!(stream.first_wrong(1_000_003, &bytes, &mut scratch), None);
        bytes[17] ^= 4;
        assert_eq!(stream.first_wrong(1_000_003, &bytes, &mut scratch), Some(1_000_020));
        assert_ne!(ByteStream::new(1, 1).first_wrong(0, &bytes, &mut scratch), None);
    }
}
