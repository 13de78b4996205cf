//! Radios that share one channel and send one at a time: floor acquisition (FAMA-NCS), and the
//! distributed coordination function of 802.11 (DCF).
//!
//! Before working on FAMA-NCS, read its paper [Fullmer and Garcia-Luna-Aceves, SIGCOMM '97] and
//! sections III and IV of the TULIP paper [tulip99]; before working on DCF, Bianchi's analysis
//! [IEEE JSAC 18(3), 2000], against which its throughput is tested.

mod dcf;
mod fama_ncs;
mod params;
#[cfg(test)]
mod tests;

pub use dcf::{Dcf, DcfParams, Phy};
pub use fama_ncs::{FamaNcs, MacCounters};
pub use params::MacParams;
