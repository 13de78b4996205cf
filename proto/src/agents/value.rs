//! Values of settings as text, as more than one agent reads them; errors name the setting.

use crate::units::{self, UnitError};
use alloc::format;
use alloc::string::String;
use core::time::Duration;

/// `true` or `false`.
pub(super) fn switch(name: &str, value: &str) -> Result<bool, String> {
    value.parse().map_err(|_| format!("{name} {value:?} must be true or false"))
}

/// A duration above zero, such as `40ms`: zero would make a timer that is always due.
pub(super) fn duration(name: &str, value: &str) -> Result<Duration, String> {
    let describe = |error: UnitError| format!("{name}: {error}");
    match units::parse_duration(value).map_err(describe)? {
        Duration::ZERO => Err(format!("{name} {value:?} must be more than 0, such as 40ms")),
        duration => Ok(duration),
    }
}
