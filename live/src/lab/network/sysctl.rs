//! Kernel settings of a network namespace.

use crate::lab::error::LabError;
use std::fs;
use std::io;

/// As [`set`], for a setting without which there is no run.
pub(super) fn set_required(name: &'static str, value: u32) -> Result<(), LabError> {
    set(name, &value.to_string()).map_err(|source| LabError::Sysctl {
        name,
        value: value.to_string(),
        source,
    })
}

/// Writes a setting of the calling thread's network namespace, if it differs: in containers
/// `/proc/sys` is often read-only, and then a right value is good enough.
pub(super) fn set(name: &str, value: &str) -> io::Result<()> {
    let path = format!("/proc/sys/{}", name.replace('.', "/"));
    let current = fs::read_to_string(&path)?;
    if current.split_whitespace().eq(value.split_whitespace()) {
        return Ok(());
    }
    fs::write(path, value)
}
