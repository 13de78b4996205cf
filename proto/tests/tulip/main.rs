//! TULIP: two ends and a channel in virtual time, one end in packet scripts, and all that can
//! happen within small budgets.

mod bulk;
#[path = "../common/mod.rs"]
mod common;
mod hostile;
mod losses;
mod model;
#[path = "../script/notation.rs"]
mod notation;
mod pair;
mod properties;
mod script;
mod service;
