//! What packets show of a hop and of its flows to whoever sees them at its near end and touches
//! nothing.

mod flow;
mod rate_probe;
mod recorder;

pub use flow::{FlowCounts, FlowObserver, first_byte};
pub use recorder::HopRecorder;
