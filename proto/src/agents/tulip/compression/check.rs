//! The check of what is not sent: CRC-16 (polynomial 0x1021, first value 0xffff) over the numbers
//! and headers as the receiver has put them together, as ROHC does (RFC 6846 §6.6).

const POLYNOMIAL: u16 = 0x1021;

const TABLE: [u16; 256] = {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let mut crc = (index as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 == 0 { crc << 1 } else { crc << 1 ^ POLYNOMIAL };
            bit += 1;
        }
        table[index] = crc;
        index += 1;
    }
    table
};

/// The check of these bytes behind those with the check `crc`.
pub(super) fn more(crc: u16, bytes: &[u8]) -> u16 {
    bytes.iter().fold(crc, |crc, byte| crc << 8 ^ TABLE[usize::from((crc >> 8) as u8 ^ byte)])
}

/// The check of these words.
pub(super) fn of(words: &[u32]) -> u16 {
    words.iter().fold(0xffff, |crc, word| more(crc, &word.to_be_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_the_crc_that_others_compute() {
        // The check value of CRC-16/IBM-3740 ("CCITT-FALSE").
        assert_eq!(more(0xffff, b"123456789"), 0x29b1);
        assert_eq!(of(&[0x3132_3334, 0x3536_3738]), more(0xffff, b"12345678"));
    }
}
