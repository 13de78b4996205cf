//! What the tunnels of both ends say to each other about the path: probes of its MTU, and answers.
//!
//! ```text
//! probe    0xf1 | number (4) | padding (0 ..)
//! answer   0xf2 | number (4) | length (2)       of the datagram that the probe came in
//! ```
//!
//! They travel where frames do, sealed like them. No frame and no IP packet begins with the nibble
//! 15, so an end that knows nothing of probes drops them as malformed.

const PROBE: u8 = 0xf1;
const ANSWER: u8 = 0xf2;
const PROBE_LEN: usize = 5;

/// A message between tunnels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// Asks for an answer.
    Probe {
        /// Chosen by the sender.
        number: u32,
    },
    /// Says that a probe has arrived.
    Answer {
        /// The probe's.
        number: u32,
        /// Bytes of the datagram that it came in.
        length: u16,
    },
}

impl Message {
    /// Whether these bytes are a message of a tunnel, perhaps of a later version, and no frame.
    pub(super) fn is_here(bytes: &[u8]) -> bool {
        bytes.first().is_some_and(|first| first >> 4 == 0xf)
    }

    /// Reads a message; `None` if it is cut or unknown.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        let (number, rest) = rest.split_first_chunk()?;
        let number = u32::from_be_bytes(*number);
        match *kind {
            PROBE => Some(Self::Probe { number }),
            ANSWER => {
                let length = u16::from_be_bytes(rest.try_into().ok()?);
                Some(Self::Answer { number, length })
            }
            _ => None,
        }
    }

    /// The message; a probe is padded to `length`.
    pub(super) fn bytes(self, length: usize) -> Vec<u8> {
        match self {
            Self::Probe { number } => {
                let mut bytes = [&[PROBE][..], &number.to_be_bytes()].concat();
                bytes.resize(length.max(PROBE_LEN), 0);
                bytes
            }
            Self::Answer { number, length } => {
                [&[ANSWER][..], &number.to_be_bytes(), &length.to_be_bytes()].concat()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_as_they_were_written() {
        for message in
            [Message::Probe { number: 7 }, Message::Answer { number: u32::MAX, length: 1472 }]
        {
            let bytes = message.bytes(100);
            assert!(Message::is_here(&bytes));
            assert_eq!(Message::parse(&bytes), Some(message));
        }
        assert_eq!(Message::Probe { number: 7 }.bytes(100).len(), 100);
        assert_eq!(Message::Probe { number: 7 }.bytes(0).len(), PROBE_LEN);
    }

    #[test]
    fn what_is_cut_or_unknown_is_nothing() {
        let answer = Message::Answer { number: 1, length: 2 }.bytes(0);
        for cut in 0..answer.len() {
            assert_eq!(Message::parse(&answer[..cut]), None, "{cut}");
        }
        assert_eq!(Message::parse(&[&answer[..], &[0]].concat()), None);
        assert_eq!(Message::parse(&[0xf3; 20]), None);
        // TULIP, IPv4, IPv6.
        assert!([0x10, 0x45, 0x60].iter().all(|first| !Message::is_here(&[*first; 20])));
    }
}
