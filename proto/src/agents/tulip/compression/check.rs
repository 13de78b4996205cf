//! The check of what is not sent: CRC-16 (polynomial 0x1021, first value 0xffff) over the numbers
//! and headers as the receiver has put them together, as ROHC does (RFC 6846 §6.6).

const POLYNOMIAL: u16 = 0x1021;

/// What a byte adds that so many bytes follow: eight bytes are taken at once.
const TABLES: [[u16; 256]; 8] = {
    let mut tables = [[0; 256]; 8];
    let mut index = 0;
    while index < 256 {
        let mut crc = (index as u16) << 8;
        let mut place = 0;
        while place < 8 {
            let mut bit = 0;
            while bit < 8 {
                crc = if crc & 0x8000 == 0 { crc << 1 } else { crc << 1 ^ POLYNOMIAL };
                bit += 1;
            }
            tables[place][index] = crc;
            place += 1;
        }
        index += 1;
    }
    tables
};

/// The check of these bytes behind those with the check `crc`.
pub(super) fn more(crc: u16, bytes: &[u8]) -> u16 {
    let (eights, rest) = bytes.as_chunks::<8>();
    let crc = eights.iter().fold(crc, |crc, eight| {
        let [a, b] = crc.to_be_bytes();
        let eight = [
            eight[0] ^ a,
            eight[1] ^ b,
            eight[2],
            eight[3],
            eight[4],
            eight[5],
            eight[6],
            eight[7],
        ];
        let terms = eight.iter().rev().zip(&TABLES).map(|(byte, table)| table[usize::from(*byte)]);
        terms.fold(0, |sum, term| sum ^ term)
    });
    let next = |crc: u16, byte: &u8| crc << 8 ^ TABLES[0][usize::from((crc >> 8) as u8 ^ byte)];
    rest.iter().fold(crc, next)
}

/// The check of these words.
pub(super) fn of(words: [u32; 8]) -> u16 {
    let mut bytes = [0; 32];
    for (four, word) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(words) {
        *four = word.to_be_bytes();
    }
    more(0xffff, &bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_the_crc_that_others_compute() {
        // The check value of CRC-16/IBM-3740 ("CCITT-FALSE").
        assert_eq!(more(0xffff, b"123456789"), 0x29b1);
        let bytewise = |bytes: &[u8]| bytes.iter().fold(0xffff, |crc, byte| more(crc, &[*byte]));
        let bytes: [u8; 67] = core::array::from_fn(|at| (at * at) as u8);
        assert_eq!(more(0xffff, &bytes), bytewise(&bytes));
        assert_eq!(of([0x3132_3334; 8]), bytewise(&b"1234".repeat(8)));
    }
}
