//! Pictures of runs, as SVG: one look for all of them.

pub(crate) mod cwnd;
pub(crate) mod goodput;
pub(crate) mod heat;
pub(crate) mod scale;
pub(crate) mod sequence;
pub(crate) mod steps;
pub(crate) mod traces;

mod look;
mod panel;
