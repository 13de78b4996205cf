//! Half-duplex radios: two ends that share one channel and acquire it packet by packet.
//!
//! Before working on this module, read the FAMA-NCS paper [Fullmer and Garcia-Luna-Aceves,
//! SIGCOMM '97] and sections III and IV of the TULIP paper [tulip99].

mod channel;
mod params;
#[cfg(test)]
mod tests;

pub use channel::{Channel, MacCounters, Output};
pub use params::MacParams;
