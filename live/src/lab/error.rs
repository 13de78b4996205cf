//! The errors of a laboratory run: each is one sentence with a remedy.

use airmend_proto::invariants::Violation;
use std::io;
use std::path::PathBuf;

/// Why a laboratory run failed.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The kernel gives this user no user namespace.
    #[error(
        "the kernel refuses a user namespace to this user ({0}): run as root, or allow it with \
         `sysctl kernel.unprivileged_userns_clone=1`, \
         `sysctl kernel.apparmor_restrict_unprivileged_userns=0` or \
         `sysctl user.max_user_namespaces=10000`, whichever this kernel has"
    )]
    UserNamespace(#[source] io::Error),
    /// `enter_user_namespace` came too late.
    #[error(
        "a user namespace can only be entered by a process with one thread: \
         enter it at the very start of the program"
    )]
    Threaded,
    /// No network namespace.
    #[error("cannot create a network namespace ({0}): run as root, or allow user namespaces")]
    NetworkNamespace(#[source] io::Error),
    /// A program is missing.
    #[error("the program `{program}` is missing: install it (`apt-get install {package}`)")]
    NoProgram {
        /// The program.
        program: &'static str,
        /// The package of Debian that has it.
        package: &'static str,
    },
    /// iproute2 refused a command.
    #[error("iproute2 could not set up the laboratory's interfaces: {0}")]
    Interfaces(String),
    /// The kernel has no such queue.
    #[error(
        "the air interface cannot have the queue {queue} ({said}): load its module, such as \
         `modprobe sch_{queue}`, or write --air-queue fast-band"
    )]
    AirQueue {
        /// The name of the queueing discipline.
        queue: &'static str,
        /// The message of `tc`.
        said: String,
    },
    /// The kernel has no such queue for a modem.
    #[error(
        "the modem cannot have the queue {queue} ({said}): load its module, such as \
         `modprobe sch_{queue}`, or write --far-queue with a number of frames"
    )]
    FarQueue {
        /// The name of the queueing discipline.
        queue: &'static str,
        /// The message of `tc`.
        said: String,
    },
    /// A kernel setting could not be made.
    #[error("cannot set {name} to {value} ({source}): is /proc/sys mounted writable?")]
    Sysctl {
        /// As `sysctl` names it.
        name: &'static str,
        /// The refused value.
        value: String,
        /// The error of the kernel.
        #[source]
        source: io::Error,
    },
    /// IPv6 is switched off, or the kernel has none.
    #[error("IPv6 is off {0}: leave --ipv6 out, or switch IPv6 on")]
    NoIpv6(&'static str),
    /// A port could not be opened.
    #[error("cannot open a packet socket on the veth pair ({0})")]
    PacketDevice(#[source] io::Error),
    /// TUN is missing or forbidden.
    #[error(
        "cannot open /dev/net/tun ({0}): run `modprobe tun`, give this user access to it, \
         or use the veth port, which needs no device"
    )]
    Tun(#[source] io::Error),
    /// The kernel lacks the congestion control.
    #[error("the kernel has no congestion control {wanted}; it has: {available}")]
    CongestionControl {
        /// The congestion control that was asked for.
        wanted: &'static str,
        /// The congestion controls of the kernel.
        available: String,
    },
    /// A gateway attaches BPF programs, which no user namespace lets it do.
    #[error("the gateway attaches BPF programs, which needs root: run this as root")]
    GatewayNeedsRoot,
    /// The gateway did not start, or did not run to the end.
    #[error("the gateway {what}: {said}")]
    Gateway {
        /// The failure.
        what: &'static str,
        /// The last line on stderr, or the error of the kernel.
        said: String,
    },
    /// Without the path of the running program there is no gateway.
    #[error("cannot find this very program to run as a gateway ({0}): is /proc mounted?")]
    OwnProgram(#[source] io::Error),
    /// A program of the user does not start on a host.
    #[error("cannot start {program} on a host of the laboratory: {source}")]
    Program {
        /// The program.
        program: String,
        /// The error of the kernel.
        #[source]
        source: io::Error,
    },
    /// No key for the stations of a handoff.
    #[error("the system's random source gives no bytes for a key: is /dev/urandom readable?")]
    NoRandomBytes,
    /// A value that cannot be run.
    #[error("{0}")]
    Config(&'static str),
    /// A socket call failed.
    #[error("{what} failed: {source}")]
    Socket {
        /// The call.
        what: &'static str,
        /// The error of the kernel.
        #[source]
        source: io::Error,
    },
    /// A byte arrived that differs from the one that was sent.
    #[error("flow {flow}: the byte at offset {offset} is not the one that was sent")]
    WrongByte {
        /// The number of the flow, from 0.
        flow: u32,
        /// The offset in the stream, in bytes.
        offset: u64,
    },
    /// A flow ended early although the run was not stopped.
    #[error("flow {flow} ended after {received} of {expected} bytes: {reason}")]
    Short {
        /// The number of the flow, from 0.
        flow: u32,
        /// Bytes that arrived.
        received: u64,
        /// Bytes that were sent.
        expected: u64,
        /// The reason that the receiver found.
        reason: String,
    },
    /// The agent broke a rule that holds for every agent.
    #[error("the agent broke a rule: {0}")]
    Violation(#[from] Violation),
    /// The recording could not be written.
    #[error("cannot write the recording {path}: {source}")]
    Recording {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
}

impl LabError {
    /// For `map_err`: this call failed.
    pub(crate) fn socket<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> Self {
        move |error| Self::Socket { what, source: error.into() }
    }
}
