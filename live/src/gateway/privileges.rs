//! What the gateway may do: three capabilities while it sets itself up, and then none.
//!
//! Capabilities belong to threads, and a new thread has those of the one that starts it. So call
//! [`reduce`] before there is a second thread, and [`drop_all`] in each.

use caps::errors::CapsError;
use caps::{CapSet, Capability, CapsHashSet};
use std::fmt;

/// The capabilities that set-up needs, each with its purpose.
const NEEDED: [(Capability, &str); 3] = [
    (Capability::CAP_NET_ADMIN, "attach to the interface"),
    (Capability::CAP_BPF, "load the BPF programs that select its packets"),
    (Capability::CAP_NET_RAW, "hear and send packets on it"),
];

/// Why the gateway may not do what it must, or may still do what it should not.
#[derive(Debug)]
pub enum PrivilegeError {
    /// A capability is missing.
    Lacks {
        /// The name of the capability.
        capability: Capability,
        /// The purpose of the capability.
        to: &'static str,
    },
    /// The kernel did not take a capability away.
    Kernel(String),
}

impl fmt::Display for PrivilegeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lacks { capability, to } => write!(
                f,
                "this user lacks {capability}, which the gateway needs to {to}: run it as root, as \
                 the service airmend@IF, or after \
                 `setcap cap_net_admin,cap_bpf,cap_net_raw+ep $(which airmend)`"
            ),
            Self::Kernel(why) => write!(f, "cannot give up capabilities: {why}"),
        }
    }
}

impl std::error::Error for PrivilegeError {}

impl From<CapsError> for PrivilegeError {
    fn from(error: CapsError) -> Self {
        Self::Kernel(error.to_string())
    }
}

/// Gives up everything that this thread may do beyond the three capabilities that set-up needs, and
/// the right to gain anything by starting a program.
///
/// # Errors
/// A capability is missing; nothing has changed then.
pub fn reduce() -> Result<(), PrivilegeError> {
    let permitted = caps::read(None, CapSet::Permitted)?;
    let missing = NEEDED.into_iter().find(|(capability, _)| !permitted.contains(capability));
    if let Some((capability, to)) = missing {
        return Err(PrivilegeError::Lacks { capability, to });
    }
    crate::bpf::lift_memory_lock_limit();
    nix::sys::prctl::set_no_new_privs()
        .map_err(|error| PrivilegeError::Kernel(error.desc().to_owned()))?;
    // The service may not empty the bounding set, but has one of these three only; and nobody who
    // may gain no privileges can gain one that is still in it.
    if permitted.contains(&Capability::CAP_SETPCAP) {
        caps::set(None, CapSet::Effective, &permitted)?;
        for capability in caps::read(None, CapSet::Bounding)? {
            caps::drop(None, CapSet::Bounding, capability)?;
        }
    }
    keep(&NEEDED.into_iter().map(|(capability, _)| capability).collect())
}

/// Gives up every capability of this thread. What it has opened stays open: maps of programs can be
/// read and written, and packets sent with the mark and priority that their socket has.
///
/// # Errors
/// The kernel refuses, which it never should.
pub fn drop_all() -> Result<(), PrivilegeError> {
    keep(&CapsHashSet::new())
}

/// Gives up every capability of this thread but CAP_NET_ADMIN, which changes queues, MTUs,
/// addresses and routes.
///
/// # Errors
/// The kernel refuses, which it never should.
pub fn keep_net_admin() -> Result<(), PrivilegeError> {
    keep(&CapsHashSet::from([Capability::CAP_NET_ADMIN]))
}

/// An effective capability must be permitted, and an ambient one also inheritable.
fn keep(capabilities: &CapsHashSet) -> Result<(), PrivilegeError> {
    caps::clear(None, CapSet::Ambient)?;
    caps::clear(None, CapSet::Inheritable)?;
    caps::set(None, CapSet::Effective, capabilities)?;
    caps::set(None, CapSet::Permitted, capabilities)?;
    Ok(())
}
