//! All fuzz targets in one program, linked once: the environment variable `AIRMEND_FUZZ` says which
//! one runs. See `tools/fuzz`.
#![no_main]

use airmend_fuzz::{TARGETS, Target};
use libfuzzer_sys::fuzz_target;
use std::sync::OnceLock;

const VARIABLE: &str = "AIRMEND_FUZZ";

static TARGET: OnceLock<Target> = OnceLock::new();

fuzz_target!(|data: &[u8]| TARGET.get_or_init(chosen)(data));

/// What the environment variable names.
fn chosen() -> Target {
    let name = std::env::var(VARIABLE).unwrap_or_default();
    let found = TARGETS.iter().find(|(known, _)| *known == name);
    found.unwrap_or_else(|| panic!("{VARIABLE} must name a target, not {name:?}")).1
}
