//! Why the kernel's programs cannot be used, in sentences for operators.

use aya::EbpfError;
use aya::maps::MapError;
use aya::programs::{ProgramError, TcError};
use aya::util::KernelVersion;
use std::io::{self, ErrorKind};
use thiserror::Error;

/// The kernel's programs cannot be loaded or attached.
#[derive(Debug, Error)]
pub enum BpfError {
    /// The kernel has no BPF system call.
    #[error("this kernel has no BPF: the gateway needs CONFIG_BPF_SYSCALL and CONFIG_NET_CLS_BPF")]
    NoBpf,
    /// The process may not use BPF.
    #[error(
        "the kernel does not let this process use BPF: run it as root, with CAP_BPF and \
         CAP_NET_ADMIN, or as the service airmend@INTERFACE"
    )]
    NotAllowed,
    /// The kernel cannot attach programs to tcx.
    #[error("this kernel has no tcx, which came with Linux 6.6: use --attach clsact")]
    NoTcx,
    /// Nothing can be attached to the interface.
    #[error("{interface} takes no BPF program: {source}")]
    Attach {
        /// The interface.
        interface: String,
        /// The error of the kernel.
        source: io::Error,
    },
    /// The kernel does not give the process the memory for the maps (before Linux 5.11).
    #[error(
        "the limit of locked memory is too low for the gateway's BPF maps: raise it \
         (`ulimit -l unlimited`, or LimitMEMLOCK=infinity in the service)"
    )]
    LockedMemory,
    /// The verifier refused a program.
    #[error(
        "this kernel's verifier refused the gateway's program {program} ({reason}): please report \
         it with the output of `uname -r` and with what --log-level debug shows"
    )]
    Verifier {
        /// The program's name.
        program: &'static str,
        /// The last message of the verifier.
        reason: String,
    },
    /// The kernel refused something else.
    #[error("the kernel refused the gateway's BPF programs: {0}")]
    Refused(String),
    /// The object lacks what this version of the daemon needs.
    #[error("the BPF programs in this binary are not those of this version: build it again")]
    Missing,
}

impl BpfError {
    pub(super) fn load(error: EbpfError) -> Self {
        match error {
            EbpfError::MapError(error) => Self::map(&error),
            error => Self::from_error(&error),
        }
    }

    /// Before Linux 5.11 a lack of locked memory has the same number as a lack of rights.
    fn map(error: &MapError) -> Self {
        match Self::from_error(error) {
            Self::NotAllowed if has_capabilities() && is_before(5, 11) => Self::LockedMemory,
            other => other,
        }
    }

    /// The whole log of the verifier is long, and for debugging only.
    pub(super) fn program(program: &'static str, error: ProgramError) -> Self {
        match error {
            ProgramError::LoadError { io_error, verifier_log }
                if io_error.raw_os_error() != Some(libc::EPERM) =>
            {
                let log = verifier_log.to_string();
                tracing::debug!(program, %io_error, "the verifier's log:\n{log}");
                Self::Verifier { program, reason: reason(&log, &io_error) }
            }
            error => error.into(),
        }
    }

    pub(super) fn attach_tcx(interface: &str, error: ProgramError) -> Self {
        if is_before(6, 6) { Self::NoTcx } else { Self::attach(interface, error) }
    }

    pub(super) fn attach(interface: &str, error: ProgramError) -> Self {
        let source = match error {
            ProgramError::TcError(TcError::IoError(error)) => error,
            error => match io_error(&error) {
                Some(code) => io::Error::from_raw_os_error(code),
                None => return Self::Refused(error.to_string()),
            },
        };
        match source.kind() {
            ErrorKind::PermissionDenied => Self::NotAllowed,
            _ => Self::Attach { interface: interface.to_owned(), source },
        }
    }

    fn from_error(error: &(dyn std::error::Error + 'static)) -> Self {
        match io_error(error) {
            Some(code) => Self::of_io(&io::Error::from_raw_os_error(code), error.to_string()),
            None => Self::Refused(error.to_string()),
        }
    }

    fn of_io(source: &io::Error, said: String) -> Self {
        match source.raw_os_error() {
            Some(libc::EPERM) => Self::NotAllowed,
            Some(libc::ENOSYS) => Self::NoBpf,
            _ => Self::Refused(said),
        }
    }
}

impl From<MapError> for BpfError {
    fn from(error: MapError) -> Self {
        Self::from_error(&error)
    }
}

impl From<ProgramError> for BpfError {
    fn from(error: ProgramError) -> Self {
        Self::from_error(&error)
    }
}

fn is_before(major: u8, minor: u8) -> bool {
    KernelVersion::current().is_ok_and(|version| version < KernelVersion::new(major, minor, 0))
}

/// Whether the calling thread may use BPF as far as rights go.
fn has_capabilities() -> bool {
    let effective = caps::read(None, caps::CapSet::Effective);
    effective.is_ok_and(|effective| effective.contains(&caps::Capability::CAP_BPF))
}

/// The last line of a verifier's log before the statistics.
fn reason(log: &str, error: &io::Error) -> String {
    let mut lines = log.lines().map(str::trim).rev();
    let said = lines.find(|line| !line.is_empty() && !line.starts_with("processed "));
    said.map_or_else(|| error.to_string(), str::to_owned)
}

/// The system's error that lies at the bottom of another.
fn io_error(error: &(dyn std::error::Error + 'static)) -> Option<i32> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(code) = error.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error) {
            return Some(code);
        }
        next = error.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verifier_is_quoted_with_its_reason_only() {
        let error = io::Error::from_raw_os_error(libc::EACCES);
        let log = "0: (bf) r6 = r1\nattempt to corrupt spilled pointer on stack\n\
                   processed 137 insns (limit 1000000) max_states_per_insn 0\n\n";
        assert_eq!(reason(log, &error), "attempt to corrupt spilled pointer on stack");
        for empty in ["", "\n", "processed 1 insns (limit 1000000)\n"] {
            assert_eq!(reason(empty, &error), error.to_string());
        }
    }
}
