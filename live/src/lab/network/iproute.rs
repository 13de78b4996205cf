//! iproute2's programs and `nft`, run in the calling thread's network namespace.

use crate::lab::error::LabError;
use std::io::Write;
use std::process::{Command, Stdio};

/// Runs `ip -batch` with these commands.
pub(super) fn ip(commands: &str) -> Result<(), LabError> {
    run("ip", &["-batch", "-"], commands).map(drop)
}

/// Runs `tc -batch` with these commands.
pub(super) fn tc(commands: &str) -> Result<(), LabError> {
    run("tc", &["-batch", "-"], commands).map(drop)
}

/// Runs `program` to its end and returns what it printed.
pub(super) fn run(
    program: &'static str,
    arguments: &[&str],
    input: &str,
) -> Result<String, LabError> {
    // Ordinary users often lack the sbin directories in their PATH.
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let child = Command::new("/usr/bin/env")
        .env("PATH", path)
        .arg(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let failed = |said: String| LabError::Interfaces(format!("{program}: {said}"));
    let mut child = child.map_err(|error| failed(error.to_string()))?;
    if let Some(mut stdin) = child.stdin.take() {
        // If it has ended early, its own message has the reason.
        stdin.write_all(input.as_bytes()).ok();
    }
    let output = child.wait_with_output().map_err(|error| failed(error.to_string()))?;
    match output.status.code() {
        Some(0) => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        Some(127) => {
            let package = if program == "nft" { "nftables" } else { "iproute2" };
            Err(LabError::NoProgram { program, package })
        }
        _ => {
            let said = String::from_utf8_lossy(&output.stderr);
            let said = said.lines().collect::<Vec<_>>().join("; ");
            Err(failed(format!("{said} ({})", output.status)))
        }
    }
}
