//! Random bytes for keys, sessions and probes.

use crate::clock;
use snow::resolvers::{CryptoResolver, RingResolver};

/// Fills `bytes` from the system's random source.
pub(crate) fn random(bytes: &mut [u8]) -> Result<(), ()> {
    let mut source = RingResolver.resolve_rng().ok_or(())?;
    source.try_fill_bytes(bytes).map_err(drop)
}

/// A number that no sender can guess, so that none can make flows collide.
pub(crate) fn hash_seed() -> u64 {
    let mut bytes = [0; 8];
    // Without it the clock is the best that there is.
    random(&mut bytes)
        .map_or_else(|()| clock::realtime().as_nanos() as u64, |()| u64::from_ne_bytes(bytes))
}
