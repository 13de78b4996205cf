//! The hosts at both ends of the path.

use super::namespace::Namespace;
use std::net::IpAddr;

/// One host.
#[derive(Debug)]
pub(crate) struct Host {
    /// The network namespace of the host.
    pub(crate) namespace: Namespace,
    /// The address of the host.
    pub(crate) address: IpAddr,
}

/// Two hosts that talk with each other.
#[derive(Debug)]
pub(crate) struct Pair {
    /// The fixed host.
    pub(crate) fixed: Host,
    /// The mobile host.
    pub(crate) mobile: Host,
}
