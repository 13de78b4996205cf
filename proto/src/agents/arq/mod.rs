//! What link protocols share, each at both ends of the air: the runs of both ends, the egress queue
//! with its service classes, the pool of sent packets, the window of received ones with their
//! order, and what is measured of the link.
//!
//! A protocol adds its frames, its link ACKs, and how they show what is lost. Packets have sequence
//! numbers, transmissions have serial numbers; both belong to a pair of epochs.

mod ack_filter;
mod classes;
mod due;
mod epochs;
mod fair_queue;
pub(crate) mod fields;
mod fifo;
mod link_event;
mod malformed;
mod order;
mod pace;
mod pool;
mod queue;
mod queued;
mod rate_control;
mod resequencer;

pub(crate) use classes::View;
pub use classes::{Class, Rules};
pub(crate) use due::Due;
pub(crate) use epochs::Epochs;
pub(crate) use link_event::{LINK_COUNTERS, LinkEvent};
pub use malformed::Malformed;
pub use order::Order;
pub(crate) use pace::Pace;
pub(crate) use pool::{Delivery, Numbered, Pool, Transmission};
pub(crate) use queue::Queue;
pub(crate) use queued::Queued;
pub(crate) use rate_control::{RateControl, noticed_growth};
pub use resequencer::MAX_WINDOW;
pub(crate) use resequencer::{Resequencer, WIDEST_WINDOW};
