//! The laboratory: `FH – wired link – BS – air link – MH` with real kernel TCP at both ends.

pub mod config;
pub mod outcome;
