//! What a tunnel has counted, for its end and for SIGUSR1.

use super::Tunnel;
use super::carrier::Address;
use super::counters::Counters;
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
    pub peers: Vec<PeerReport>,
    /// The counters of all of them, and of what is nobody's.
    pub counters: Counters,
    /// The counters of all agents, by event.
    pub agent_counters: BTreeMap<&'static str, u64>,
}

/// The state and the counters of one other end.
#[derive(Clone, Debug)]
pub struct PeerReport {
    /// What people call it.
    pub title: String,
    /// Its address, once it is there.
    pub address: Option<Address>,
    /// The route to it leads into the TUN device, so that nothing reaches it.
    pub route_loop: bool,
    /// Seconds since the newest session began.
    pub handshake_seconds_ago: Option<f64>,
    /// Seconds since it was last heard.
    pub heard_seconds_ago: Option<f64>,
    /// Nothing has come from it for too long.
    pub is_silent: bool,
    /// Its counters.
    pub counters: Counters,
    /// The counters of its agent, by event.
    pub agent_counters: BTreeMap<&'static str, u64>,
}

impl Tunnel {
    /// The report of the tunnel so far.
    pub fn report(&mut self) -> TunnelReport {
        let now = self.clock.now();
        let ago = |at: Option<Instant>| at.map(|at| (now - at).as_secs_f64());
        let peers: Vec<_> = self
            .peers
            .iter()
            .map(|peer| PeerReport {
                title: peer.config.title(),
                address: peer.outbound.channel.peer(),
                route_loop: peer.is_loop,
                handshake_seconds_ago: ago(peer.outbound.channel.established()),
                heard_seconds_ago: ago(peer.liveness.heard()),
                is_silent: peer.liveness.is_lost(),
                counters: peer.counters(),
                agent_counters: peer.agent_counters.clone(),
            })
            .collect();
        let mut counters = self.peers.strangers.counters;
        counters.device_drops += self.io.device.drops();
        let mut agent_counters = BTreeMap::new();
        for peer in &peers {
            counters += peer.counters;
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
