//! Why the kernel's programs cannot be used, in sentences for operators.

use aya::EbpfError;
use aya::maps::MapError;
use aya::programs::{ProgramError, TcError};
use std::io::{self, ErrorKind};
use thiserror::Error;

/// The kernel's programs cannot be loaded or attached.
#[derive(Debug, Error)]
pub enum SteerError {
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
        /// What the kernel said.
        source: io::Error,
    },
    /// The kernel refused a program.
    #[error("the kernel refused the gateway's BPF programs: {0}")]
    Refused(String),
    /// The object lacks what this version of the daemon needs.
    #[error("the BPF programs in this binary are not those of this version: build it anew")]
    Missing,
}

impl SteerError {
    pub(super) fn load(error: EbpfError) -> Self {
        match error {
            EbpfError::MapError(error) => error.into(),
            error => Self::from_error(&error),
        }
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
            // EACCES is what the verifier says.
            Some(libc::EPERM) => Self::NotAllowed,
            Some(libc::ENOSYS) => Self::NoBpf,
            _ => Self::Refused(said),
        }
    }
}

impl From<MapError> for SteerError {
    fn from(error: MapError) -> Self {
        Self::from_error(&error)
    }
}

impl From<ProgramError> for SteerError {
    fn from(error: ProgramError) -> Self {
        Self::from_error(&error)
    }
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
