//! Pictures of runs, as SVG: one look for all of them.

pub(crate) mod cwnd;
pub(crate) mod goodput;
pub(crate) mod sequence;

mod look;
mod panel;
