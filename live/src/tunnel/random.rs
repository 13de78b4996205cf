//! Random bytes for keys, sessions and probes.

use snow::resolvers::{CryptoResolver, RingResolver};

/// Fills `bytes` from the system's random source.
pub(crate) fn random(bytes: &mut [u8]) -> Result<(), ()> {
    let mut source = RingResolver.resolve_rng().ok_or(())?;
    source.try_fill_bytes(bytes).map_err(drop)
}
