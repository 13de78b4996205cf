//! What fuzz targets call of the offloads, which this crate keeps to itself.

use super::offload::{self, Coalescer, HEADER_LEN};
use airmend_proto::{LinkType, Packet};
use std::io::IoSlice;

/// The packets that one read of the TUN device becomes; `None` if it is refused.
pub fn split(read: &[u8]) -> Option<Vec<Packet>> {
    let mut batch = Vec::new();
    offload::split(read, &mut batch).then_some(batch)
}

/// What is written to the TUN device for these packets.
pub fn join(packets: impl IntoIterator<Item = Packet>) -> Vec<Vec<u8>> {
    let (mut coalescer, mut written) = (Coalescer::default(), Vec::new());
    for packet in packets {
        if let Err(packet) = coalescer.push(packet) {
            written.extend(coalescer.flush(gather));
            assert!(coalescer.push(packet).is_ok(), "an empty run takes any packet");
        }
    }
    written.extend(coalescer.flush(gather));
    written
}

fn gather(slices: &[IoSlice<'_>]) -> Vec<u8> {
    slices.iter().flat_map(|slice| slice.to_vec()).collect()
}

/// The packet of a frame that a packet socket gave, its `virtio_net_hdr` first; `None` if the
/// header contradicts the frame.
pub fn read_frame(read: &[u8], vlan: Option<(u16, u16)>) -> Option<Packet> {
    let (header, frame) = read.split_first_chunk::<HEADER_LEN>()?;
    offload::parse_frame(LinkType::Ethernet, *header, vlan, frame.into())
}

/// The frames of wire size that a frame of a LAN becomes; `None` if it is refused.
pub fn split_frame(frame: Packet) -> Option<Vec<Packet>> {
    let mut batch = Vec::new();
    offload::split_frame(frame, &mut batch).then_some(batch)
}

/// What is written to a packet socket for a packet; `None` if that is a super-packet without TCP.
pub fn write_frame(packet: &Packet) -> Option<Vec<u8>> {
    let (header, bytes) = offload::build_frame(packet)?;
    Some([&header[..], bytes.as_deref().unwrap_or(packet.bytes())].concat())
}
