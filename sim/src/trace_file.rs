//! Files of hops that vary, read whole: traces as CSV, and Mahimahi's.

use airmend_proto::link::trace::{MAX_BYTES, Opportunities, Trace, TraceError, parse_trace};
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

/// Reads a trace as CSV.
///
/// # Errors
/// One sentence with the name of the file.
pub fn read_trace(path: &Path) -> Result<Trace, String> {
    parse(path, &read_text(path)?, parse_trace)
}

/// Reads a packet-delivery trace of Mahimahi.
///
/// # Errors
/// One sentence with the name of the file.
pub fn read_opportunities(path: &Path) -> Result<Opportunities, String> {
    parse(path, &read_text(path)?, Opportunities::parse)
}

/// What a text says, that of a file.
pub(crate) fn parse<T>(
    path: &Path,
    text: &str,
    read: impl Fn(&str) -> Result<T, TraceError>,
) -> Result<T, String> {
    read(text).map_err(|why| format!("{}: {why}", path.display()))
}

/// The text of a file of bounded size.
pub(crate) fn read_text(path: &Path) -> Result<String, String> {
    let refuse =
        |why: &dyn ToString| format!("{} cannot be read: {}", path.display(), why.to_string());
    // Opening a pipe would wait for who writes it.
    let kind = fs::metadata(path).map_err(|error| refuse(&error))?;
    if !kind.is_file() {
        return Err(refuse(&"it is no file"));
    }
    let mut text = String::new();
    let file = File::open(path).map_err(|error| refuse(&error))?;
    let read = file.take(MAX_BYTES + 1).read_to_string(&mut text);
    match read {
        Ok(read) if read as u64 > MAX_BYTES => {
            Err(refuse(&format!("it has more than {} MiB", MAX_BYTES >> 20)))
        }
        Ok(_) => Ok(text),
        Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
            Err(refuse(&"it is no text"))
        }
        Err(error) => Err(refuse(&error)),
    }
}
