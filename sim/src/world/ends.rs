//! The ends of links that are no neighbours find each other.

use super::World;
use super::tunnel::Tunnel;

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
