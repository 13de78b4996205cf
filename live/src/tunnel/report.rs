//! What a tunnel has counted, for its end and for SIGUSR1.

use super::Tunnel;
use super::counters::Counters;
use super::status::PeerStatus;
use airmend_proto::Instant;
use std::collections::BTreeMap;

/// The state and the counters of a tunnel.
#[derive(Clone, Debug)]
pub struct TunnelReport {
    /// The TUN device, or the interface of the LAN.
    pub device: String,
    /// The MTU of the device.
    pub mtu: u32,
    /// The other ends.
    pub peers: Vec<PeerStatus>,
    /// The counters of all of them, and of what is nobody's.
    pub counters: Counters,
    /// The counters of all agents, by event.
    pub agent_counters: BTreeMap<&'static str, u64>,
}

impl Tunnel {
    /// The report of the tunnel so far.
    pub fn report(&mut self) -> TunnelReport {
        let now = self.clock.now();
        let peers = self.peers.iter().map(|peer| PeerStatus::of(peer, now)).collect();
        let mut counters = self.peers.strangers.counters;
        counters.device_drops += self.io.device.drops();
        let received = self.io.carrier.received();
        counters.socket_drops = received.map_or(0, |buffer| buffer.drops.into());
        let mut agent_counters = BTreeMap::new();
        for peer in self.peers.iter() {
            counters += peer.counters();
            for (name, count) in &peer.agent_counters {
                *agent_counters.entry(*name).or_insert(0) += count;
            }
        }
        let (device, mtu) = (self.interface.name().to_owned(), self.mtu());
        TunnelReport { device, mtu, peers, counters, agent_counters }
    }

    /// Counts what has crossed so far.
    pub(super) fn measure(&mut self, now: Instant) {
        for peer in self.peers.iter_mut() {
            let own = &peer.outbound.own;
            peer.meter.add(now, own.bytes_in, own.bytes_out);
        }
    }
}
