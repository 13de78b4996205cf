//! Prometheus' own judge of metrics and rules.

use crate::kit::Result;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Why it cannot judge here; `None` where it can.
pub(crate) fn lacks() -> Option<String> {
    let version = Command::new("promtool").arg("--version").output();
    version.err().map(|error| format!("promtool (Debian's package prometheus): {error}"))
}

/// It must have nothing against these metrics, in its own text format. All that the alerts of this
/// prefix are about must be among them.
pub(crate) fn check_metrics(text: &str, prefix: &str) -> Result {
    check(&["check", "metrics"], text)?;
    let alerts = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../packaging/alerts.yml");
    let alerts = std::fs::read_to_string(alerts)?;
    let is_other = |c: char| c != '_' && !c.is_ascii_alphanumeric();
    let is_link = |name: &&str| name.starts_with("airmend_link_");
    let names = alerts.split(is_other).filter(|word| word.starts_with("airmend_"));
    let names: Vec<_> = names.filter(|name| is_link(name) == is_link(&prefix)).collect();
    assert!(!names.is_empty(), "{prefix}");
    for name in names {
        let is_there = |line: &str| line.starts_with(&format!("{name}{{"));
        assert!(text.lines().any(is_there), "no {name} in\n{text}");
    }
    Ok(())
}

fn check(arguments: &[&str], input: &str) -> Result {
    let mut promtool = Command::new("promtool");
    promtool.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut promtool = promtool.spawn()?;
    promtool.stdin.take().ok_or("stdin is piped")?.write_all(input.as_bytes())?;
    let output = promtool.wait_with_output()?;
    let said =
        [output.stdout, output.stderr].map(|said| String::from_utf8_lossy(&said).into_owned());
    match output.status.success() && said.concat().is_empty() {
        true => Ok(()),
        false => Err(format!("promtool {arguments:?}: {}\n{input}", said.concat()).into()),
    }
}
