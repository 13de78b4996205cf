//! Commands of the operator, when the interface is there and before it goes.

use anyhow::{Context, Result, bail};
use std::process::{Command, Stdio};

/// The commands of a link.
#[derive(Clone, Debug, Default)]
pub(super) struct Hooks {
    /// When the interface is set up.
    pub(super) up: Option<String>,
    /// Before the link ends.
    pub(super) down: Option<String>,
}

/// Runs a command, if there is one, and waits for its end. A shell reads it; the name of the
/// interface is in `AIRMEND_INTERFACE`.
///
/// # Errors
/// It cannot be run, or says that it failed.
pub(super) fn run(key: &str, command: Option<&str>, interface: &str) -> Result<()> {
    let Some(command) = command else { return Ok(()) };
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", command]).env("AIRMEND_INTERFACE", interface);
    let status = shell
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .with_context(|| format!("the command of `{key}` cannot be run"))?;
    if !status.success() {
        bail!("the command of `{key}` failed ({status}): {command:?}");
    }
    Ok(())
}
