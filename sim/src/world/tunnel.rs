//! The two ends of a link that are not neighbours: frames cross the network between them as UDP
//! packets.

use super::address;
use airmend_proto::Packet;

/// One end, as its station knows it.
pub(super) struct Tunnel {
    /// The nodes of this end and of the other one.
    pub(super) nodes: [u32; 2],
    /// The direction in which the other end is.
    pub(super) outbound: u32,
}

impl Tunnel {
    /// The frame in a packet to this end.
    pub(super) fn unwrap(&self, packet: &Packet) -> Option<Packet> {
        address::frame_to(self.nodes[0], packet)
    }

    /// The packet with a frame for the other end.
    pub(super) fn wrap(&self, frame: &Packet) -> Packet {
        address::tunnelled(self.nodes, frame)
    }
}
