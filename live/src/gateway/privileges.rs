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

/// Gives up every capability of this thread but CAP_NET_ADMIN, which changes queues.
///
/// # Errors
/// The kernel refuses, which it never should.
pub(super) fn keep_net_admin() -> Result<(), PrivilegeError> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::fs;
    use std::thread;

    const NET_ADMIN_NET_RAW_BPF: u64 = 1 << 12 | 1 << 13 | 1 << 39;

    /// The lines of this thread's status with its capabilities.
    fn status() -> BTreeMap<String, u64> {
        let text = fs::read_to_string("/proc/thread-self/status").unwrap();
        let fields = text.lines().filter_map(|line| line.split_once(":\t"));
        let wanted = fields.filter(|(name, _)| name.starts_with("Cap") || *name == "NoNewPrivs");
        wanted.map(|(name, value)| (name.into(), u64::from_str_radix(value, 16).unwrap())).collect()
    }

    fn expected(capabilities: u64) -> BTreeMap<String, u64> {
        let both = ["CapEff", "CapPrm"].map(|name| (name.to_owned(), capabilities));
        let none = ["CapInh", "CapBnd", "CapAmb"].map(|name| (name.to_owned(), 0));
        both.into_iter().chain(none).chain([("NoNewPrivs".to_owned(), 1)]).collect()
    }

    /// Runs the test in a thread of its own, which takes its rights with it..
    fn as_root(test: impl FnOnce() + Send + 'static) {
        let permitted = caps::read(None, CapSet::Permitted).unwrap();
        if !permitted.is_superset(&caps::read(None, CapSet::Bounding).unwrap())
            || NEEDED.iter().any(|(capability, _)| !permitted.contains(capability))
        {
            eprintln!("skipped: only root has capabilities to give up");
            return;
        }
        thread::spawn(test).join().unwrap();
    }

    #[test]
    fn three_capabilities_are_left_and_then_none() {
        as_root(|| {
            caps::set(None, CapSet::Inheritable, &caps::all()).ok();
            reduce().unwrap();
            assert_eq!(status(), expected(NET_ADMIN_NET_RAW_BPF));
            reduce().expect("the service begins with no more");
            assert_eq!(status(), expected(NET_ADMIN_NET_RAW_BPF));
            drop_all().unwrap();
            assert_eq!(status(), expected(0));
            thread::spawn(|| assert_eq!(status(), expected(0))).join().unwrap();
        });
    }

    #[test]
    fn what_is_missing_is_named_with_the_way_to_give_it() {
        for (capability, _) in NEEDED {
            as_root(move || {
                caps::drop(None, CapSet::Effective, capability).unwrap();
                caps::drop(None, CapSet::Permitted, capability).unwrap();
                let before = status();
                let why = reduce().unwrap_err().to_string();
                assert!(why.contains(&format!("lacks {capability},")), "{why}");
                assert!(why.contains("setcap cap_net_admin,cap_bpf,cap_net_raw+ep"), "{why}");
                assert_eq!(status(), before);
            });
        }
    }

    #[test]
    fn a_capability_that_is_permitted_is_made_effective() {
        as_root(|| {
            caps::clear(None, CapSet::Effective).unwrap();
            reduce().unwrap();
            assert_eq!(status(), expected(NET_ADMIN_NET_RAW_BPF));
        });
    }
}
