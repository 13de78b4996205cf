//! A host on the backbone that has no key.

use super::backbone::Member;
use std::io;

/// It hears the group, and sends to it what it can make: what it has heard, and changes of that.
#[derive(Debug)]
pub(super) struct Intruder {
    pub(super) member: Member,
    /// The number of repeated messages; as many were changed.
    pub(super) repeated: u64,
}

impl Intruder {
    pub(super) fn new(member: Member) -> Self {
        Self { member, repeated: 0 }
    }

    /// Repeats each message that has arrived, as it is and with one bit changed.
    pub(super) fn repeat(&mut self) -> io::Result<()> {
        while let Some(message) = self.member.receive()? {
            let mut message = message.to_vec();
            self.member.send(&message);
            // Any byte but the version.
            let index = 1 + self.repeated as usize % (message.len() - 1).max(1);
            if let Some(byte) = message.get_mut(index) {
                *byte ^= 1;
            }
            self.member.send(&message);
            self.repeated += 1;
        }
        Ok(())
    }
}
