//! airmend in real time: ports, the namespace laboratory and its emulated radio hop.
#![deny(unsafe_code)]

mod clock;
pub mod gateway;
pub mod guard;
pub mod lab;
pub mod pcap;
pub mod port;
pub mod steer;
#[allow(unsafe_code)]
mod sys;
pub mod tunnel;
