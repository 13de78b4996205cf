//! The two ends of a link that are not neighbours: frames cross the network between them as UDP
//! packets.

use super::{World, address};
use airmend_proto::Packet;

/// One end, as its station knows it.
pub(super) struct Tunnel {
    /// The nodes of this end and of the other one.
    nodes: [u32; 2],
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

impl World<'_> {
    /// The ends of links learn the ways to each other, and the routers between them to both.
    pub(super) fn start_tunnels(&mut self) {
        for (number, station) in (0..).zip(&self.plan.stations) {
            let Some(peer) = station.peer else { continue };
            let [from, to] = [number, peer].map(|station| self.plan.hosts + station);
            let route = self.graph.routes_to(to).route(from, to).unwrap_or_default();
            let Some(&outbound) = route.first() else { continue };
            let tunnel = Tunnel { nodes: [from, to], outbound };
            self.stations[number as usize].tunnel = Some(tunnel);
            for pair in route.windows(2) {
                let node = self.plan.directions[pair[0] as usize].to;
                if let Some(router) = self.plan.station(node) {
                    self.stations[router as usize].learn(to, pair[1]);
                }
            }
        }
    }
}
