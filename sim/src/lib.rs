//! airmend in virtual time: scenarios, sweeps and the world loop.

mod agenda;
mod batch;
mod outcome;
mod plan;
mod scenario;
mod setting;
mod world;

pub use batch::RunId;
pub use outcome::{Delay, LinkCounters, Outcome, SenderCounters, TraceKind, TracePoint};
pub use plan::Plan;
pub use scenario::{Experiment, Point, ScenarioError};
pub use setting::Setting;
pub use world::{RunError, run};
