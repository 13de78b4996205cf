//! What the tunnels of both ends say to each other: probes of the path's MTU, answers, frames in
//! parts, and frames with padding.
//!
//! ```text
//! probe    0xf1 | number (4) | padding (0 ..)
//! answer   0xf2 | number (4) | length (2)              of the datagram that the probe came in
//! part     0xf3 | number (4) | part (1) | of (1) | ..   of a frame that is too long for the path
//! padded   0xf4 | length (2) | ..                       a frame or a part, and zeros behind it
//! ```
//!
//! They travel where frames do, sealed like them. No frame and no IP packet begins with the nibble
//! 15, so an end that knows nothing of messages drops them as malformed.

const PROBE: u8 = 0xf1;
const ANSWER: u8 = 0xf2;
const PART: u8 = 0xf3;
const PADDED: u8 = 0xf4;
/// Bytes before the frame in a padded one.
pub(super) const PADDED_HEADER: usize = 3;
/// Bytes before the frame's in a part.
pub(super) const PART_HEADER: usize = 7;

/// A message between tunnels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Message<'a> {
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
    /// A part of a frame.
    Part {
        /// The frame's.
        number: u32,
        /// Which part, from 0.
        part: u8,
        /// The number of parts.
        of: u8,
        /// The bytes of this part.
        bytes: &'a [u8],
    },
    /// A frame or a part of one, at most 65,535 bytes.
    Padded {
        /// Its bytes.
        bytes: &'a [u8],
    },
}

impl<'a> Message<'a> {
    /// Whether these bytes are a message of a tunnel, perhaps of a later version, and no frame.
    pub(super) fn is_here(bytes: &[u8]) -> bool {
        bytes.first().is_some_and(|first| first >> 4 == 0xf)
    }

    /// Reads a message; `None` if it is cut or unknown.
    pub(super) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        if *kind == PADDED {
            let (length, rest) = rest.split_first_chunk()?;
            let bytes = rest.get(..usize::from(u16::from_be_bytes(*length)))?;
            return Some(Self::Padded { bytes });
        }
        let (number, rest) = rest.split_first_chunk()?;
        let number = u32::from_be_bytes(*number);
        match (*kind, rest) {
            (PROBE, _) => Some(Self::Probe { number }),
            (ANSWER, &[high, low]) => {
                Some(Self::Answer { number, length: u16::from_be_bytes([high, low]) })
            }
            (PART, &[part, of, ref bytes @ ..]) if part < of => {
                Some(Self::Part { number, part, of, bytes })
            }
            _ => None,
        }
    }

    /// The message; a probe and what is padded are as long as `length` at least.
    pub(super) fn bytes(self, length: usize) -> Vec<u8> {
        match self {
            Self::Probe { number } => {
                let mut bytes = [&[PROBE][..], &number.to_be_bytes()].concat();
                bytes.resize(length.max(bytes.len()), 0);
                bytes
            }
            Self::Answer { number, length } => {
                [&[ANSWER][..], &number.to_be_bytes(), &length.to_be_bytes()].concat()
            }
            Self::Part { number, part, of, bytes } => {
                [&[PART][..], &number.to_be_bytes(), &[part, of], bytes].concat()
            }
            Self::Padded { bytes } => {
                let mut padded = Vec::with_capacity(length.max(PADDED_HEADER + bytes.len()));
                padded.push(PADDED);
                padded.extend_from_slice(&(bytes.len() as u16).to_be_bytes());
                padded.extend_from_slice(bytes);
                padded.resize(length.max(padded.len()), 0);
                padded
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_as_they_were_written() {
        for message in [
            Message::Probe { number: 7 },
            Message::Answer { number: u32::MAX, length: 1472 },
            Message::Part { number: 9, part: 1, of: 2, bytes: b"half" },
            Message::Padded { bytes: b"frame" },
        ] {
            let bytes = message.bytes(0);
            assert!(Message::is_here(&bytes));
            assert_eq!(Message::parse(&bytes), Some(message));
        }
        let padded = Message::Probe { number: 7 }.bytes(100);
        assert_eq!(
            (padded.len(), Message::parse(&padded)),
            (100, Some(Message::Probe { number: 7 }))
        );
    }

    #[test]
    fn what_is_cut_or_unknown_is_nothing() {
        let answer = Message::Answer { number: 1, length: 2 }.bytes(0);
        for cut in 0..answer.len() {
            assert_eq!(Message::parse(&answer[..cut]), None, "{cut}");
        }
        assert_eq!(Message::parse(&[&answer[..], &[0]].concat()), None);
        let part = |part, of| Message::Part { number: 1, part, of, bytes: &[] }.bytes(0);
        assert_eq!(part(0, 1).len(), PART_HEADER);
        assert_eq!(Message::parse(&part(2, 2)), None);
        assert_eq!(Message::parse(&part(0, 1)[..PART_HEADER - 1]), None);
        assert_eq!(Message::parse(&[0xf5; 20]), None);
        let padded = Message::Padded { bytes: b"frame" }.bytes(0);
        assert_eq!(padded.len(), PADDED_HEADER + 5);
        for cut in 0..padded.len() {
            assert_eq!(Message::parse(&padded[..cut]), None, "{cut}");
        }
        // TULIP, IPv4, IPv6.
        assert!([0x10, 0x45, 0x60].iter().all(|first| !Message::is_here(&[*first; 20])));
    }
}
