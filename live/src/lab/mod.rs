//! The laboratory: `FH – wired link – BS – air link – MH` with real kernel TCP at both ends.

mod air_queue;
pub mod config;
mod counters;
mod error;
mod gateway;
mod hop;
mod iproute;
mod kernel;
mod links;
mod middle;
mod mobile;
mod namespace;
pub mod outcome;
mod pass_by;
mod ping;
mod probe;
mod record;
mod rounds;
mod run;
mod sender;
mod session;
mod station;
mod stream;
mod topology;
mod transfer;

pub use error::LabError;
pub use gateway::GatewayCommand;
pub use namespace::{Namespace, enter_user_namespace};
pub use probe::{Delay, Probe, ProbeOutcome, probe};
pub use run::{run, run_kernel, run_link};
pub use transfer::Progress;
