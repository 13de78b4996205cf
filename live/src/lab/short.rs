//! Short flows beside the others: their size, and the pause between two of them.

use airmend_proto::units::{parse_duration, parse_size};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Transfers one after another, each over a connection of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Short {
    /// What each of them carries.
    pub bytes: u64,
    /// From the end of one to the `connect` of the next, at least.
    pub pause: Duration,
}

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{:?}", self.bytes, self.pause)
    }
}

impl FromStr for Short {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.split(',').map(str::trim);
        let bytes = parts.next().and_then(|bytes| parse_size(bytes).ok());
        let pause = parts.next().and_then(|pause| parse_duration(pause).ok());
        match (bytes, pause, parts.next()) {
            (Some(bytes @ 1..), Some(pause), None) => Ok(Self { bytes, pause }),
            _ => Err(format!(
                "{text:?} are no short flows; write the bytes of each, more than 0, and the pause \
                 between two, such as 10kB,50ms"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_written_as_they_are_read() {
        let short = Short { bytes: 10_000, pause: Duration::from_millis(50) };
        assert_eq!("10kB, 50ms".parse(), Ok(short));
        assert_eq!(short.to_string().parse(), Ok(short));
        for wrong in ["", "10kB", "0,50ms", "50ms,10kB", "10kB,50ms,1", "10kB,-1ms"] {
            assert!(wrong.parse::<Short>().is_err_and(|why| why.contains("10kB,50ms")), "{wrong}");
        }
    }
}
