//! The network of the laboratory: namespaces, interfaces, hosts, and a kernel that forwards.

pub(super) mod air_queue;
pub(super) mod counters;
pub(super) mod host;
pub(super) mod host_namespaces;
pub(super) mod host_process;
pub(super) mod interface;
mod iproute;
pub(super) mod kernel;
pub(super) mod namespace;
pub(super) mod outside;
mod sysctl;
pub(super) mod topology;
mod veth;
