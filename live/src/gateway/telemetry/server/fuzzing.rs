//! What fuzz targets call of the server, which this crate keeps to itself.

use super::http::{Refused, Target, parse};

/// What is to be done with the bytes of a request so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// To wait for more.
    Partial,
    /// To answer for this path.
    Path(String),
    /// To answer with this status.
    Refused(&'static str),
}

/// Parses the bytes of a request so far.
pub fn parse_request(bytes: &[u8]) -> Parsed {
    match parse(bytes) {
        Ok(None) => Parsed::Partial,
        Ok(Some(Target::Get { path, .. } | Target::Put(path))) => Parsed::Path(path),
        Err(Refused::Answer(response)) => Parsed::Refused(response.status),
        Err(Refused::Gone(error)) => panic!("parsing does no I/O: {error}"),
    }
}
