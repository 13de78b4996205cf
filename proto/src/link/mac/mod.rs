//! Half-duplex radios: stations that share one channel and acquire it packet by packet.
//!
//! Before working on this module, read the FAMA-NCS paper [Fullmer and Garcia-Luna-Aceves,
//! SIGCOMM '97] and sections III and IV of the TULIP paper [tulip99].

mod fama_ncs;
mod params;
#[cfg(test)]
mod tests;

pub use fama_ncs::{FamaNcs, MacCounters};
pub use params::MacParams;
