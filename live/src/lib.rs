//! airmend in real time: ports, the namespace laboratory and its emulated radio hop.

pub mod lab;
