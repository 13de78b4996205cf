//! `airmend status` and `airmend top` against the real server of a gateway, with a loop of its own.

use airmend_live::gateway::telemetry::Status;
use airmend_live::gateway::telemetry::server::{Server, ServerConfig};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

/// A directory that vanishes.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("airmend-status-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs `airmend` with these arguments while a gateway answers at `socket`.
fn with_gateway(socket: &Path, arguments: &[&str]) -> Output {
    let config = ServerConfig { socket: socket.to_owned(), metrics: None };
    let mut server = Server::start(&config).unwrap();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                if let Some(request) = server.poll() {
                    let interface = "wlan0".to_owned();
                    request.answer(Status { interface, flows: 3, ..Status::default() });
                }
                thread::sleep(Duration::from_millis(1));
            }
        });
        let output = airmend(arguments);
        done.store(true, Ordering::Release);
        output
    })
}

fn airmend(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_airmend"));
    command.args(arguments).stdin(Stdio::null()).output().expect("airmend runs")
}

/// One line that begins with the program's name, nothing on stdout, and this exit status.
fn sentence(output: &Output, status: i32) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(status), "{stderr}");
    assert!(output.stdout.is_empty(), "{stderr}");
    assert!(stderr.starts_with("airmend: ") && stderr.lines().count() == 1, "{stderr:?}");
    stderr
}

#[test]
fn a_running_gateway_is_described_in_words_and_as_json() {
    let directory = Directory::new();
    let socket = directory.0.join("a.sock");
    let path = socket.to_str().unwrap();
    let words = with_gateway(&socket, &["status", "--socket", path]);
    let words = String::from_utf8(words.stdout).unwrap();
    assert!(words.starts_with("wlan0: ") && words.contains("3 of at most 0"), "{words}");
    let json = with_gateway(&socket, &["status", "--json", "--socket", path]);
    let json = String::from_utf8(json.stdout).unwrap();
    assert_eq!(json.lines().count(), 1, "{json}");
    assert_eq!(serde_json::from_str::<Status>(&json).unwrap().flows, 3);
}

#[test]
fn without_a_gateway_there_is_a_sentence() {
    let directory = Directory::new();
    let socket = directory.0.join("a.sock");
    let path = socket.to_str().unwrap();
    let missing = sentence(&airmend(&["status", "--socket", path]), 1);
    assert!(missing.contains("does not exist") && missing.contains(path), "{missing}");
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    let dead = sentence(&airmend(&["status", "--json", "--socket", path]), 1);
    assert!(dead.contains("has died"), "{dead}");
    let both = sentence(&airmend(&["status", "wlan0", "--socket", path]), 2);
    assert!(both.contains("exclude each other"), "{both}");
    let unknown = sentence(&airmend(&["status", "no-such-if"]), 1);
    assert!(unknown.contains("/run/airmend/no-such-if/status.sock"), "{unknown}");
}

#[test]
fn a_loop_that_hangs_is_told_of() {
    let directory = Directory::new();
    let socket = directory.0.join("a.sock");
    let config = ServerConfig { socket: socket.clone(), metrics: None };
    let _server = Server::start(&config).unwrap();
    let hangs = sentence(&airmend(&["status", "--socket", socket.to_str().unwrap()]), 1);
    assert!(hangs.contains("stopped or hangs"), "{hangs}");
}

#[test]
fn top_needs_a_terminal() {
    let refused = sentence(&airmend(&["top", "--socket", "/nowhere"]), 2);
    assert!(refused.contains("airmend status --json"), "{refused}");
    let interval = sentence(&airmend(&["top", "--interval", "1ms"]), 2);
    assert!(interval.contains("100ms"), "{interval}");
}
