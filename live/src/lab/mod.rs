//! The laboratory: `FH – wired link – BS – air link – MH` with real kernel TCP at both ends.
//!
//! From the bottom to the top: configuration, outcome and errors; `network`, the namespaces and
//! hosts; the emulated links; the loop of the base station with what it drives (`station`,
//! `data_path`, `mobile`, `inline_agent`, `record`), and that of several base stations (`handoff`);
//! `session`, which sets all of that up;
//! `measure`; and `run`.

mod air_queue;
mod air_trace;
mod check;
pub mod config;
pub mod control;
mod data_path;
mod error;
pub mod exec;
mod far_wired;
mod gateway;
pub mod handoff;
mod hop;
mod inline_agent;
mod links;
mod measure;
mod mobile;
mod modem;
mod network;
pub mod outcome;
mod record;
mod run;
mod session;
mod short;
mod station;
mod varying;

pub use error::LabError;
pub use gateway::GatewayCommand;
pub use measure::probe::{Probe, ProbeOutcome, probe};
pub use measure::transfer::Progress;
pub use network::namespace::{Namespace, enter_user_namespace};
pub use outcome::Delay;
pub use run::{AgentReport, run};
pub use session::{Agents, Forwarding};
