//! Padding: what is under the encryption has one of few lengths.

use std::fmt;
use std::str::FromStr;

/// The lengths that datagrams with frames have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Padding {
    /// What is encrypted is a multiple of so many bytes, or as long as the path allows.
    Multiple(u16),
    /// Each datagram is as long as the path allows.
    Path,
}

/// The largest multiple.
const MAX_MULTIPLE: u16 = 1024;

impl Padding {
    /// The length of what holds `needed` bytes, where the path has room for `room` of them.
    pub(super) fn length(self, needed: usize, room: usize) -> usize {
        let wanted = match self {
            Self::Multiple(bytes) => needed.next_multiple_of(usize::from(bytes).max(1)),
            Self::Path => room,
        };
        wanted.min(room).max(needed)
    }
}

impl fmt::Display for Padding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Multiple(bytes) => write!(f, "{bytes}"),
            Self::Path => write!(f, "path"),
        }
    }
}

impl FromStr for Padding {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.parse()) {
            ("path", _) => Ok(Self::Path),
            (_, Ok(bytes @ 2..=MAX_MULTIPLE)) => Ok(Self::Multiple(bytes)),
            _ => Err(format!(
                "{text:?} is no padding; write 16 for multiples of 16 bytes, another number from 2 \
                 to {MAX_MULTIPLE}, or path for datagrams as long as the path allows"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn nothing_is_cut_and_nothing_is_too_long(
            needed in 0usize..3_000,
            room in 0usize..3_000,
            multiple in 2u16..=MAX_MULTIPLE,
        ) {
            for padding in [Padding::Multiple(multiple), Padding::Path] {
                let length = padding.length(needed, room);
                prop_assert!(length >= needed && length <= needed.max(room));
                prop_assert_eq!(padding.to_string().parse(), Ok(padding));
            }
            let length = Padding::Multiple(multiple).length(needed, room);
            let is_multiple = length.is_multiple_of(usize::from(multiple));
            prop_assert!(is_multiple || length == needed.max(room));
            prop_assert!(needed > room || Padding::Path.length(needed, room) == room);
        }
    }

    #[test]
    fn what_is_no_padding_is_refused() {
        for bad in ["", "0", "1", "1025", "-16", "full"] {
            let error = bad.parse::<Padding>().expect_err("no padding");
            assert!(error.contains("write 16"), "{error}");
        }
    }
}
