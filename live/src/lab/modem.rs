//! A modem between the base station and the air: a fast hop to a kernel of its own, in whose
//! interface the queue for the air stands.

use super::config::LabConfig;
use super::error::LabError;
use super::hop::{End, HopMedium};
use super::network::kernel::{Kernel, air_queue_drops};
use super::network::namespace::Namespace;
use crate::device::Device;
use airmend_proto::link::{ErrorModel, FRAME_LIMIT, FullDuplex, LinkParams, Pair};

/// The number that names the hop's random streams, which nothing draws from.
const STREAM: u32 = 2;

/// What goes down passes it; what comes up over the air reaches the base station directly, since no
/// queue of a modem stands there.
pub(crate) struct Modem {
    /// The hop from the base station to the modem.
    pub(crate) hop: HopMedium,
    /// The loop's device behind the modem's interface to the base station.
    pub(crate) near: Box<dyn Device>,
    /// The loop's device behind the modem's interface to the air.
    pub(crate) far: Box<dyn Device>,
    /// The namespace of the modem's kernel.
    namespace: Namespace,
}

impl Modem {
    pub(crate) fn new(config: &LabConfig, kernel: Kernel) -> Self {
        let hop = config.station_hop();
        let params = LinkParams {
            rate_bps: hop.rate_bps,
            delay: hop.delay,
            queue_frames: FRAME_LIMIT,
            lookahead: hop.lookahead(),
        };
        let ends = [End::Station, End::Host].map(|end| end as usize);
        let pair = Pair::new(ends, [hop.delay; 2], [ErrorModel::None; 2], config.seed, STREAM);
        let medium = FullDuplex::new([params; 2], vec![pair]);
        let Kernel { namespace, wired: near, air: far } = kernel;
        Self { hop: HopMedium::new(Box::new(medium), false), near, far, namespace }
    }

    /// Frames that the modem's queue has dropped.
    pub(crate) fn queue_drops(&self) -> Result<u64, LabError> {
        self.namespace.run(air_queue_drops)
    }

    /// Packets lost between the modem's kernel and the loop.
    pub(crate) fn port_drops(&mut self) -> u64 {
        self.near.drops() + self.far.drops()
    }
}
