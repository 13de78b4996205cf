//! A queue of the gateway's own: the interface is shaped to a little less than the hop beyond it
//! carries, so that what must wait waits here, where repairs go first and drops are not mended.

mod control;
mod meter;
#[cfg(test)]
mod tests;
mod worker;

use super::arrival::Kind;
use super::config::{GatewayConfig, Shape};
use super::error::GatewayError;
use super::interface::Interface;
use super::telemetry::ShapeStatus;
use crate::qdisc::{self, FAST_CLASS, Leaf, MAX_RATE, Root};
use airmend_proto::{Instant, Packet};
use control::{Control, INTERVAL};
use meter::Meter;
use worker::Worker;

/// A change of the rate by less than this share is not worth a request to the kernel.
const STEP: f64 = 0.005;

/// The queue of one interface; it is removed with this value.
#[derive(Debug)]
pub(super) struct Shaper {
    worker: Worker,
    leaf: Leaf,
    auto: Option<Auto>,
    /// The priority of repairs; `None` where a filter finds them by their mark.
    pub(super) priority: Option<u32>,
}

/// What measures and decides.
#[derive(Debug, Default)]
struct Auto {
    meter: Meter,
    control: Control,
    /// The end of the last interval, and what had left until then.
    at: Option<Instant>,
    sent: u64,
    rate: Option<f64>,
}

impl Shaper {
    /// Removes the queue of a gateway that was killed, and sets one up if that is wanted.
    ///
    /// # Errors
    /// An administrator's queue stands there, or the kernel has no HTB.
    pub(super) fn open(
        config: &GatewayConfig,
        interface: &Interface,
    ) -> Result<Option<Self>, GatewayError> {
        let index = interface.index as u32;
        let failed = |source| GatewayError::Shape { name: interface.name.clone(), source };
        qdisc::remove(index).map_err(failed)?;
        let Some(shape) = config.shape else { return Ok(None) };
        if let Some(root) = Root::of(index).filter(|root| !root.is_default()) {
            let (name, kind) = (interface.name.clone(), root.kind);
            return Err(GatewayError::OtherQueue { name, kind });
        }
        let rate_bps = match shape {
            Shape::Auto => MAX_RATE,
            Shape::Rate(rate) => rate,
        };
        // The priority of a class would not be that of voice.
        let mark = interface.is_wireless().then_some(config.mark);
        let (leaf, has_filter) = qdisc::install(index, rate_bps, mark).map_err(failed)?;
        let worker = Worker::start(index, interface.name.clone(), leaf, rate_bps);
        if leaf == Leaf::Fifo {
            tracing::warn!(
                interface = interface.name,
                "this kernel has neither cake nor fq_codel: a FIFO of 30 ms queues all flows alike"
            );
        }
        tracing::info!(
            interface = interface.name,
            shape = %shape,
            queue = leaf.name(),
            "the queue is in this interface, by --shape"
        );
        Ok(Some(Self {
            worker: worker.map_err(failed)?,
            leaf,
            auto: (shape == Shape::Auto).then(Auto::default),
            priority: (!has_filter).then_some(FAST_CLASS),
        }))
    }

    /// A packet crossed the interface.
    pub(super) fn packet(&mut self, now: Instant, kind: Kind, packet: &Packet) {
        let Some(auto) = &mut self.auto else { return };
        match kind {
            Kind::Data | Kind::Repair => auto.meter.left(now, packet),
            Kind::Passed | Kind::Diverted => auto.meter.came(now, packet),
        }
    }

    /// Decides on the rate, if it is time.
    pub(super) fn turn(&mut self, now: Instant) {
        let Some(auto) = &mut self.auto else { return };
        let at = *auto.at.get_or_insert(now);
        let took = now.since(at);
        if took < INTERVAL {
            return;
        }
        auto.at = Some(now);
        let sent = self.worker.seen().sent;
        let left = sent.saturating_sub(std::mem::replace(&mut auto.sent, sent));
        let Some(rate) = auto.control.step(&auto.meter.take(took, left)) else {
            if auto.rate.take().is_some() {
                self.worker.set_rate(MAX_RATE);
            }
            return;
        };
        if auto.rate.is_none_or(|present| (rate / present - 1.0).abs() >= STEP) {
            auto.rate = Some(rate);
            self.worker.set_rate(rate as u64);
        }
    }

    /// What can be seen of it.
    pub(super) fn status(&self) -> ShapeStatus {
        let seen = self.worker.seen();
        ShapeStatus {
            is_auto: self.auto.is_some(),
            queue: self.leaf.name().to_owned(),
            rate_bps: seen.rate_bps.filter(|rate| *rate < MAX_RATE),
        }
    }
}
