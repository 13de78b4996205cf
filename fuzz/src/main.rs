//! All fuzz targets in one program, linked once: the environment variable `AIRMEND_FUZZ` says which
//! one runs. See `tools/fuzz`.
#![no_main]
#![allow(dead_code, unreachable_pub, reason = "of the files of other crates only some is used")]

#[path = "../../proto/tests/common/mod.rs"]
mod common;
mod input;
mod targets;
// The command line's own file, for the target `config`.
#[path = "../../cli/src/values.rs"]
mod values;

use libfuzzer_sys::fuzz_target;
use std::sync::OnceLock;

const VARIABLE: &str = "AIRMEND_FUZZ";

static TARGET: OnceLock<targets::Target> = OnceLock::new();

fuzz_target!(|data: &[u8]| TARGET.get_or_init(chosen)(data));

/// What the environment variable names.
fn chosen() -> targets::Target {
    let name = std::env::var(VARIABLE).unwrap_or_default();
    let found = targets::TARGETS.iter().find(|(known, _)| *known == name);
    found.unwrap_or_else(|| panic!("{VARIABLE} must name a target, not {name:?}")).1
}
