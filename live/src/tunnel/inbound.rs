//! What authentic datagrams hold: frames, whole, padded or in parts, and probes. Sans-I/O.

use super::message::Message;
use super::parts::Parts;
use airmend_proto::{Ecn, Instant};
use bytes::Bytes;

/// What has arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// A frame for the agent, and the ECN field that it arrived with.
    Frame(Bytes, Ecn),
    /// A probe, to be answered.
    Probe {
        /// Its number.
        number: u32,
    },
    /// The answer to a probe.
    Answer {
        /// The number of the probe.
        number: u32,
        /// Bytes of the datagram that the probe came in.
        length: u16,
    },
}

/// Takes apart what was decrypted.
#[derive(Debug)]
pub(super) struct Inbound {
    parts: Parts,
}

impl Inbound {
    /// Of a peer whose packets may take so many bytes in each direction.
    pub(super) fn new(cache_bytes: usize) -> Self {
        Self { parts: Parts::new(cache_bytes) }
    }

    /// From now on packets may take so many bytes.
    pub(super) fn limit_cache(&mut self, bytes: usize) {
        self.parts.limit_cache(bytes);
    }

    /// What these bytes complete; `None` for a part of more, and for what is cut or unknown.
    pub(super) fn take(&mut self, now: Instant, bytes: Bytes, ecn: Ecn) -> Option<Arrival> {
        let bytes = match Message::parse(&bytes) {
            Some(Message::Padded { bytes: inner }) => bytes.slice_ref(inner),
            _ => bytes,
        };
        if !Message::is_here(&bytes) {
            return (!bytes.is_empty()).then_some(Arrival::Frame(bytes, ecn));
        }
        match Message::parse(&bytes)? {
            Message::Probe { number } => Some(Arrival::Probe { number }),
            Message::Answer { number, length } => Some(Arrival::Answer { number, length }),
            Message::Part { number, part, of, bytes: inner } => {
                let whole = self.parts.push(now, number, (part, of), inner, ecn);
                whole.map(|(frame, ecn)| Arrival::Frame(frame, ecn))
            }
            // Padding is not padded.
            Message::Padded { .. } => None,
        }
    }

    /// Bytes of what has waited for its rest.
    pub(super) fn bytes(&self) -> usize {
        self.parts.bytes()
    }

    /// Forgets what has waited too long for the rest of it.
    pub(super) fn expire(&mut self, now: Instant) {
        self.parts.expire(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn take(inbound: &mut Inbound, message: Message<'_>, length: usize) -> Option<Arrival> {
        inbound.take(Instant::ZERO, message.bytes(length).into(), Ecn::Ect0)
    }

    #[test]
    fn what_is_padded_is_what_it_was() {
        let mut inbound = Inbound::new(usize::MAX);
        let frame = Message::Padded { bytes: b"a frame" };
        for length in [0, 11, 16, 1_400] {
            let arrived = take(&mut inbound, frame, length);
            assert_eq!(
                arrived,
                Some(Arrival::Frame(Bytes::from_static(b"a frame"), Ecn::Ect0)),
                "{length}"
            );
        }
        let part = Message::Part { number: 1, part: 0, of: 1, bytes: b"whole" }.bytes(0);
        let arrived = take(&mut inbound, Message::Padded { bytes: &part }, 64);
        assert_eq!(arrived, Some(Arrival::Frame(Bytes::from_static(b"whole"), Ecn::Ect0)));
        let twice = frame.bytes(40);
        assert_eq!(take(&mut inbound, Message::Padded { bytes: &twice }, 64), None);
        assert_eq!(take(&mut inbound, Message::Padded { bytes: &[] }, 64), None);
    }

    proptest! {
        #[test]
        fn nothing_from_outside_causes_a_panic(
            datagrams in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..40),
            kinds in prop::collection::vec(0xf0u8..0xf6, 40),
        ) {
            let mut inbound = Inbound::new(usize::MAX);
            for (mut bytes, kind) in datagrams.into_iter().zip(kinds) {
                if let Some(first) = bytes.first_mut() {
                    *first = kind;
                }
                inbound.take(Instant::ZERO, bytes.into(), Ecn::Ce);
            }
        }
    }
}
