//! Another configuration, while packets cross: the interface stays with its packets, addresses and
//! routes, so that no connection notices more than a gap.

use super::Tunnel;
use super::config::{Protocol, TunnelConfig};
use super::error::TunnelError;

impl Tunnel {
    /// From now on the tunnel is as `config` says. A peer that is in both, by its key, keeps its
    /// session; it begins anew, as after a restart of one end, if what crosses to it has changed or
    /// `is_agent_new`.
    ///
    /// # Errors
    /// The configuration needs another interface, or cannot be used on this machine. Nothing has
    /// changed then, but perhaps addresses of the interface.
    pub fn reload(
        &mut self,
        config: &TunnelConfig,
        is_agent_new: bool,
        protocol: &Protocol<'_>,
    ) -> Result<(), TunnelError> {
        if !config.device.is_same(&self.config.device) {
            return Err(TunnelError::OtherDevice(self.interface.name().to_owned()));
        }
        let is_bound = config.carrier == self.config.carrier;
        let carrier = if is_bound { None } else { Some(config.open_carrier()?) };
        self.interface.reload(&config.device)?;
        let is_new = is_agent_new || !config.crosses_alike(&self.config);
        self.config = config.clone();
        if let Some(carrier) = carrier {
            self.io.carrier = carrier;
        }
        let now = self.clock.now();
        self.peers.reload(now, &mut self.io, config, protocol, is_new);
        Ok(())
    }
}
