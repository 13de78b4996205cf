//! A missing TUN device ends in one sentence. Root may open the device, so the program runs as
//! nobody where the tests run as root; the test is ignored where the device can be opened.

use airmend_testkit::Suite;
use nix::unistd::Uid;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

const NOBODY: u32 = 65_534;
const DEVICE: &str = "/dev/net/tun";

fn main() -> ExitCode {
    let test: fn() = a_missing_tun_device_fails_with_one_sentence;
    let tests = [("a_missing_tun_device_fails_with_one_sentence", test)];
    Suite::default().tests(lacks().as_deref(), tests).run(None)
}

/// Runs as a user who may not open the device.
fn as_ordinary_user(program: &str) -> Command {
    let mut command = Command::new(program);
    if Uid::effective().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

fn lacks() -> Option<String> {
    let mut help = as_ordinary_user(env!("CARGO_BIN_EXE_airmend"));
    if let Err(error) = help.arg("--version").output() {
        return Some(format!("nobody cannot run what this user has built: {error}"));
    }
    let mut test = as_ordinary_user("test");
    let can_open = test.args(["-r", DEVICE, "-a", "-w", DEVICE]).status();
    can_open.is_ok_and(|status| status.success()).then(|| format!("this user may open {DEVICE}"))
}

fn a_missing_tun_device_fails_with_one_sentence() {
    let mut command = as_ordinary_user(env!("CARGO_BIN_EXE_airmend"));
    let output = command.args(["lab", "run", "--port", "tun", "--bytes", "1kB"]).output();
    let output = output.expect("airmend runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{stderr}");
    assert!(stderr.starts_with("airmend: ") && stderr.lines().count() == 1, "{stderr:?}");
    assert!(stderr.contains(DEVICE) || stderr.contains("user namespace"), "{stderr:?}");
}
