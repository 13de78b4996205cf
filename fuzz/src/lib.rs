//! Fuzz targets: functions that take any bytes, and panic where a promise is broken.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::duplicate_mod,
    reason = "files of other crates: of some only a part is used, and two agents have one in common"
)]

#[path = "../../proto/tests/common/mod.rs"]
mod common;
mod input;
mod targets;
// The command line's own files, for the target `config`.
#[path = "../../cli/src/config_file.rs"]
mod config_file;
#[path = "../../cli/src/values.rs"]
mod values;

pub use targets::{TARGETS, Target, kernel_lacks};
