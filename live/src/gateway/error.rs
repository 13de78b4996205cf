//! Why a gateway cannot run, in sentences for operators.

use crate::bpf::BpfError;
use crate::tunnel::KeyError;
use std::io;
use std::net::SocketAddrV4;
use std::path::PathBuf;
use thiserror::Error;

/// A gateway cannot begin, or cannot go on.
#[derive(Debug, Error)]
pub enum GatewayError {
    /// The key of the stations cannot be used.
    #[error("handoff: {0}")]
    HandoffKey(KeyError),
    /// No interface leads to the other stations.
    #[error(
        "handoff: there is no route to {group} ({source}); name the interface to the other \
        stations with interface=IF"
    )]
    HandoffRoute {
        /// The group of the stations.
        group: SocketAddrV4,
        /// The error of the kernel.
        source: io::Error,
    },
    /// The interface to the other stations lacks what names this one.
    #[error(
        "handoff: the interface {interface} to the other stations is not there or has no IPv4 \
        address, by which they would know this one"
    )]
    HandoffAddress {
        /// The name of the interface.
        interface: String,
    },
    /// The group cannot be joined.
    #[error("handoff: {group} cannot be joined on {interface}: {source}")]
    HandoffGroup {
        /// The group of the stations.
        group: SocketAddrV4,
        /// The interface to the other stations.
        interface: String,
        /// The error of the kernel.
        source: io::Error,
    },
    /// No interface has the name.
    #[error("there is no interface {name}: `ip link` lists those there are")]
    NoInterface {
        /// The name.
        name: String,
    },
    /// The kernel does not return the kind of the interface.
    #[error("the interface {name} cannot be used: {source}")]
    Interface {
        /// The name of the interface.
        name: String,
        /// The error of the kernel.
        source: io::Error,
    },
    /// Packets on the loopback interface cross no air.
    #[error("{name} is the loopback interface: name the interface towards the mobile hosts")]
    Loopback {
        /// The name of the interface.
        name: String,
    },
    /// The interface carries something else.
    #[error(
        "{name} carries neither Ethernet frames nor IP packets (its link type is {kind}): the \
         gateway mends TCP on those only"
    )]
    LinkType {
        /// The name of the interface.
        name: String,
        /// `ARPHRD_…`.
        kind: u16,
    },
    /// The interface has been removed.
    #[error(
        "the interface {name} has vanished: it was removed or moved to another network namespace; \
         start the gateway again when it is back, or at its new place"
    )]
    Gone {
        /// The name of the interface.
        name: String,
    },
    /// `--shape` would destroy a queue that somebody has set up.
    #[error(
        "{name} has a queue of kind {kind} that this program has not set up, and --shape would \
         replace it: remove it (`tc qdisc del dev {name} root`), or leave --shape out"
    )]
    OtherQueue {
        /// The interface's name.
        name: String,
        /// The kind of the queue.
        kind: String,
    },
    /// The gateway's own queue cannot be set up.
    #[error(
        "the queue of {name} cannot be set up or removed ({source}): --shape needs CAP_NET_ADMIN \
         and a kernel with HTB (CONFIG_NET_SCH_HTB)"
    )]
    Shape {
        /// The interface's name.
        name: String,
        /// The error of the kernel.
        source: io::Error,
    },
    /// Another gateway is at work.
    #[error(
        "another airmend gateway mends {name} already: `airmend status {name}` shows it, and only \
         one can"
    )]
    Occupied {
        /// The interface's name.
        name: String,
    },
    /// The reinjection device cannot be created.
    #[error(
        "no reinjection device (TAP) can be created ({0}): the gateway needs /dev/net/tun \
         (`modprobe tun`) and CAP_NET_ADMIN"
    )]
    Reinjection(#[source] io::Error),
    /// The reinjection device is down: packets redirected to it would be lost.
    #[error(
        "the reinjection device {name} was set down, renamed or removed: start the gateway again, \
         and keep other programs off the device"
    )]
    ReinjectionDown {
        /// The name of the interface.
        name: String,
    },
    /// A packet socket cannot be opened.
    #[error(
        "no packet socket can be opened ({0}): the gateway needs CAP_NET_RAW and CAP_NET_ADMIN"
    )]
    Socket(#[source] io::Error),
    /// The BPF programs cannot be used.
    #[error(transparent)]
    Bpf(#[from] BpfError),
    /// An agent that needs a partner.
    #[error("{0} needs an agent at the mobile too: `airmend link` runs both; choose snoop here")]
    LinkAgent(&'static str),
    /// Privileges cannot be given up, or are not there.
    #[error(transparent)]
    Privileges(#[from] super::privileges::PrivilegeError),
    /// A reload cannot raise the priority of repairs.
    #[error(
        "this priority of repairs needs privileges, which the gateway has given up after its \
        set-up: restart it, or start it with keep-privileges to change the priority by a reload"
    )]
    PriorityNeedsPrivileges,
    /// A recording cannot be written.
    #[error("the recording {} cannot be written: {source}", path.display())]
    Recording {
        /// The path.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A system call failed.
    #[error("{doing} failed: {source}")]
    Io {
        /// The operation that failed.
        doing: &'static str,
        /// The error of the kernel.
        source: io::Error,
    },
}

impl GatewayError {
    /// For `map_err`.
    pub(super) fn io(doing: &'static str) -> impl Fn(io::Error) -> Self {
        move |source| Self::Io { doing, source }
    }
}
