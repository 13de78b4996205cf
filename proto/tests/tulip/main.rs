//! TULIP: two ends and a channel in virtual time, one end in packet scripts, and all that can
//! happen within small budgets.

mod bulk;
mod coding;
#[path = "../common/mod.rs"]
mod common;
mod ecn;
#[path = "../link/model.rs"]
mod exploration;
#[path = "../link/flood.rs"]
mod flood;
#[path = "../link/hostile.rs"]
mod hostile;
mod kit;
mod losses;
mod model;
#[path = "../script/notation.rs"]
mod notation;
#[path = "../link/pair.rs"]
mod pair;
#[path = "../link/losses.rs"]
mod patterns;
mod properties;
#[path = "../link/script.rs"]
mod script;
mod service;
mod stream;
#[path = "../link/bulk.rs"]
mod transfer;
