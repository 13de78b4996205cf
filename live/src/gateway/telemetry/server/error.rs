//! Why the telemetry server cannot start, in sentences for operators.

use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// The telemetry server cannot start.
#[derive(Debug, Error)]
pub enum ServerError {
    /// Something else answers there.
    #[error(
        "a gateway that runs already answers at {0}; stop it, or give this one another \
         --socket"
    )]
    Taken(PathBuf),
    /// A file is in the way.
    #[error("{0} exists and is no socket; remove it, or give another path for the socket")]
    NoSocket(PathBuf),
    /// The path or the address cannot be used.
    #[error("cannot listen at {address}: {source}")]
    Listen {
        /// The address or the path.
        address: String,
        /// The error of the kernel.
        source: io::Error,
    },
    /// No thread or descriptor.
    #[error("cannot start the thread that answers status requests: {0}")]
    Thread(io::Error),
}
