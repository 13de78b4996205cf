//! Bytes to fields and back. Nothing here panics on input or allocates while parsing.

pub mod build;
mod bypass;
pub mod checksum;
pub mod dscp;
pub mod edit;
mod endpoint;
pub mod flow;
pub mod ip;
mod options;
pub mod seq;
pub mod tcp;

use bypass::Bypass;

/// The `N` bytes at `at`, if they were captured.
#[inline]
fn chunk<const N: usize>(bytes: &[u8], at: usize) -> Result<&[u8; N], Bypass> {
    bytes.get(at..).and_then(<[u8]>::first_chunk).ok_or(Bypass::Truncated)
}

#[cfg(test)]
mod tests;
