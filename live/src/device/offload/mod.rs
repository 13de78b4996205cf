//! Segmentation offload on TUN devices and packet sockets: one read or write moves up to 64 kB of
//! one TCP stream, or one read of one sender's UDP datagrams.
//!
//! The kernel hands over super-packets, each behind a `virtio_net_hdr` (Virtual I/O Device
//! specification §5.1.6). A lossy link wants frames of wire size, so they are split here, and what
//! leaves the link in order is put together again before the kernel takes it.

mod coalesce;
mod frame;
mod layout;
mod split;
#[cfg(test)]
mod tests;

pub(super) use coalesce::Coalescer;
pub(crate) use frame::{build_frame, parse_copy, parse_frame};
pub(super) use layout::HEADER_LEN;
pub(super) use split::{split, split_frame};
