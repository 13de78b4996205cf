//! Another configuration, while packets cross: the interface stays with its packets, addresses and
//! routes, so that no connection notices more than a gap.

use super::carrier::Carrier;
use super::config::TunnelConfig;
use super::error::TunnelError;
use super::inbound::Inbound;
use super::random::hash_seed;
use super::{Tunnel, forwarder};
use airmend_proto::Agent;
use airmend_proto::agents::LinkProtocol;

impl Tunnel {
    /// From now on the tunnel is as `config` says. What is between the ends begins anew, as after a
    /// restart of one end, if that has changed or `is_agent_new`; `agent` is then the new one, as
    /// in [`Tunnel::open`].
    ///
    /// # Errors
    /// The configuration needs another interface, or cannot be used on this machine. Nothing has
    /// changed then, but perhaps addresses of the interface.
    pub fn reload(
        &mut self,
        config: &TunnelConfig,
        is_agent_new: bool,
        agent: Box<dyn Agent + Send>,
        link: Option<&LinkProtocol>,
    ) -> Result<(), TunnelError> {
        if !config.device.is_same(&self.config.device) {
            return Err(TunnelError::OtherDevice(self.interface.name().to_owned()));
        }
        let is_link_new = is_agent_new || !config.crosses_alike(&self.config);
        let is_bound = config.carrier.binds_alike(&self.config.carrier);
        let carrier = if is_bound { None } else { Some(config.open_carrier()?) };
        self.interface.reload(&config.device)?;
        self.config = config.clone();
        if is_link_new {
            self.begin_anew(carrier, agent, link);
        }
        Ok(())
    }

    fn begin_anew(
        &mut self,
        carrier: Option<Box<dyn Carrier>>,
        agent: Box<dyn Agent + Send>,
        link: Option<&LinkProtocol>,
    ) {
        let mut channel = self.config.open_channel(self.since_1970);
        channel.resume(*self.outbound.channel.counters());
        let compressor = link.and_then(|link| link.compressor);
        let compressor = compressor.map(|new| new(self.config.compression, hash_seed()));
        self.outbound.begin_anew(carrier, channel, self.config.padding, compressor);
        self.forwarder = forwarder(agent, link);
        self.frame_overhead = link.map_or(0, |link| link.frame_overhead);
        self.configured = self.config.peer();
        self.name = self.config.name();
        self.path = None;
        self.inbound = Inbound::default();
        self.deadline = None;
        self.next_look = self.outbound.now;
    }
}
