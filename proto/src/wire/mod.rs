//! Bytes to fields and back. Nothing here panics on input or allocates while parsing.

pub mod build;
pub mod checksum;
pub mod ip;
pub mod seq;
pub mod tcp;
