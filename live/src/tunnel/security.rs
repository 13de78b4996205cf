//! The choice between an encrypted and an open channel.

use super::carrier::Address;
use super::channel::Channel;
use super::noise::{Keys, Names, NoiseChannel, Rekey};
use super::plain::PlainChannel;
use std::time::Duration;

/// The protection of frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Security {
    /// Authenticated and encrypted.
    Noise(Keys, Rekey),
    /// Neither authenticated nor encrypted.
    Insecure,
}

/// Opens the channel, whose sessions get these names; with the address of a peer this end
/// initiates. `since_1970` is the time at `Instant::ZERO`.
pub(super) fn open(
    security: &Security,
    names: Names,
    peer: Option<Address>,
    since_1970: Duration,
) -> Box<dyn Channel> {
    match security {
        Security::Noise(keys, rekey) => {
            Box::new(NoiseChannel::new(keys.clone(), names, *rekey, peer, since_1970))
        }
        Security::Insecure => Box::new(PlainChannel::new(peer)),
    }
}
