//! A TCP endpoint as a model: both halves of one end of a connection, without a payload byte.
//!
//! Application data is only counted, and packets carry headers with their length on the wire. What
//! decides when a segment leaves is all here: window, congestion control, loss recovery, timers and
//! acknowledgments, each as a [`Profile`] says.
//!
//! Left out, because no experiment asks for it: urgent data, simultaneous open, resets sent,
//! ECN, keep-alive, and giving up after too many timeouts.
//!
//! ```
//! use airmend_proto::tcp::{Endpoint, Profile};
//! use airmend_proto::time::Instant;
//! use airmend_proto::wire::seq::SeqNumber;
//!
//! let (client, server) = (([10, 0, 0, 1], 5000).into(), ([10, 0, 1, 2], 80).into());
//! let now = Instant::ZERO;
//! let mut a = Endpoint::connect(Profile::linux(), client, server, SeqNumber(1));
//! let mut b = Endpoint::listen(Profile::linux(), server, SeqNumber(9));
//! a.write(10_000);
//! a.close();
//! // Whatever stands between them decides when a packet arrives; here, nothing does.
//! while let Some(packet) = a.poll_transmit(now) {
//!     b.handle_packet(now, &packet);
//!     while let Some(packet) = b.poll_transmit(now) {
//!         a.handle_packet(now, &packet);
//!     }
//! }
//! assert_eq!(b.delivered(), 10_000);
//! ```

mod buffer;
mod classic;
mod congestion;
mod endpoint;
mod linux;
mod outgoing;
mod pacing;
mod profile;
mod receiver;
mod rto;
mod sender;
mod settings;
mod state;
mod stats;
mod stream;

pub use endpoint::Endpoint;
pub use profile::{
    Acknowledging, BackoffReset, CongestionControl, Estimator, Growth, Profile, Recovery,
    Retransmission, SackRecovery,
};
pub use state::{Deadline, State, Timer};
pub use stats::Stats;
