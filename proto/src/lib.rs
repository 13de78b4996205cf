//! The pure core of airmend: every protocol as a state machine that knows neither clock nor socket.
//!
//! Packets and the time go in; packets, deadlines and events come out. The same agent therefore
//! runs in virtual time, in the laboratory on real kernel TCP, and on a real gateway. The crate is
//! `no_std` so that the compiler, not a promise, keeps clocks, threads and sockets out.
//!
//! The whole loop around an agent and the queues in front of its ports, in any world:
//!
//! ```text
//! loop {
//!     take the least deadline of agent and links, and get there (jump, or sleep)
//!     for each packet that arrived:  forwarder.handle_packet(now, port, packet)
//!     drain(forwarder, now, ports, on_event)    // due timeouts, transmissions, events
//! }
//! ```
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod agent;
pub mod agents;
mod codel;
mod drr;
pub mod ecn;
pub mod event;
pub mod extreme;
pub mod forwarder;
pub mod invariants;
pub mod link;
pub mod named;
pub mod observer;
pub mod outcome;
pub mod packet;
pub mod port;
pub mod random;
pub mod ranges;
mod rare;
pub mod recording;
mod rlc;
mod rtt;
mod settings;
pub mod tcp;
pub mod time;
pub mod units;
mod windowed_max;
pub mod wire;
mod wired_path;

pub use agent::{Agent, Deadline, LinkSignal, Load, PathView, Restoration, Timer, Verdict};
pub use ecn::Ecn;
pub use event::Event;
pub use forwarder::{EgressLimits, Forwarder, Ports, PriorityClass, drain};
pub use packet::{LinkType, Packet};
pub use port::Port;
pub use time::Instant;
