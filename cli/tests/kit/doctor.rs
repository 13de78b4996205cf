//! What `airmend doctor` says of this machine.

use std::process::Command;

/// What is missing to "run the laboratory" or "run the gateway"; `None` where nothing is.
pub(crate) fn lacks(what: &str) -> Option<String> {
    let output = Command::new(env!("CARGO_BIN_EXE_airmend")).arg("doctor").output();
    let said = String::from_utf8(output.expect("airmend runs").stdout).expect("it is text");
    assert!(said.contains(what), "the doctor said: {said}");
    let missing = said.lines().filter(|line| line.trim_start().starts_with("missing"));
    (!said.contains(&format!("can {what}"))).then(|| missing.collect::<Vec<_>>().join("\n"))
}
