//! airmend in real time: the gateway beside a kernel that forwards, the link between two machines,
//! and the laboratory with its namespaces and its emulated radio hop.
#![deny(unsafe_code)]

pub mod bpf;
mod clock;
pub mod device;
pub mod gateway;
mod group_socket;
pub mod guard;
pub mod lab;
mod meter;
mod netlink;
mod output_file;
pub mod pcap;
mod qdisc;
pub mod rate;
mod route;
mod sock_diag;
#[allow(unsafe_code)]
mod sys;
pub mod tcp_model;
pub mod tunnel;
