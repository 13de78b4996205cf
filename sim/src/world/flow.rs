//! A flow: what carries its data, and its progress.

use super::Medium;
use super::connection::Connection;
use super::datagrams::{self, Datagrams};
use super::delivery::Delivery;
use crate::plan::{Plan, Traffic};
use airmend_proto::Instant;

/// A flow in a run.
pub(super) struct Flow {
    pub(super) transport: Transport,
    /// The directions into which the ends send.
    pub(super) outbound: [u32; 2],
    pub(super) start: Instant,
    pub(super) done: Option<Instant>,
    pub(super) delivery: Delivery,
}

/// What carries the data of a flow.
pub(super) enum Transport {
    Tcp(Box<Connection>),
    Datagrams(Datagrams),
}

impl Flow {
    pub(super) fn new(plan: &Plan, number: u32, seed: u64) -> Self {
        let flow = &plan.flows[number as usize];
        let start = Instant::ZERO + flow.start;
        let transport = match flow.traffic {
            Traffic::Datagrams { size, rate_bps } => {
                Transport::Datagrams(Datagrams::new(number, flow.hosts, start, size, rate_bps))
            }
            _ => Transport::Tcp(Box::new(Connection::new(plan, number, start, seed))),
        };
        Self { transport, outbound: [0; 2], start, done: None, delivery: Delivery::new(start) }
    }

    /// Whether its amount of data is limited.
    pub(super) fn is_finite(&self) -> bool {
        self.connection().is_some_and(|connection| connection.application.is_finite())
    }

    /// When it acts next.
    pub(super) fn deadline(&self, now: Instant, medium: &Medium) -> Option<Instant> {
        match &self.transport {
            Transport::Tcp(connection) => connection.deadline(),
            Transport::Datagrams(datagrams) if datagrams.is_saturating() => {
                // Only a link that loses them without delay can take more than at once.
                match medium.can_send(now, self.outbound[0]) {
                    true => Some(now + datagrams::PAUSE),
                    false => medium.free_at(self.outbound[0]),
                }
            }
            Transport::Datagrams(datagrams) => datagrams.deadline(),
        }
    }

    /// Its TCP connection, if it has one.
    pub(super) fn connection(&self) -> Option<&Connection> {
        match &self.transport {
            Transport::Tcp(connection) => Some(connection),
            Transport::Datagrams(_) => None,
        }
    }

    /// Bytes of applications that arrived, of TCP in order and both ways.
    pub(super) fn received(&self) -> u64 {
        match &self.transport {
            Transport::Tcp(connection) => connection.received(),
            Transport::Datagrams(datagrams) => datagrams.delivered(),
        }
    }

    /// Delays of packets or exchanges.
    pub(super) fn delays_ms(&self) -> &[f64] {
        match &self.transport {
            Transport::Tcp(connection) => connection.delays_ms(),
            Transport::Datagrams(datagrams) => datagrams.delays_ms(),
        }
    }
}
