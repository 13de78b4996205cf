//! What another user of this machine answers is not believed: root's commands that ask a Unix
//! socket do nothing that such an answer says.

use airmend_testkit::Suite;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::{env, fs};

const NOBODY: u32 = 65_534;
/// Listens at a path, with its own number for PID, and answers everything with the last argument.
const STRANGER: &str = "\
import os, socket, sys
path = sys.argv[1].replace('PID', str(os.getpid()))
os.makedirs(os.path.dirname(path), 0o755, exist_ok=True)
s = socket.socket(socket.AF_UNIX)
s.bind(path)
os.chmod(path, 0o666)
s.listen()
print('ready', flush=True)
while True:
    c, _ = s.accept()
    try: c.recv(4096) and c.sendall(sys.argv[2].encode())
    except OSError: pass
    c.close()
";

fn main() -> ExitCode {
    let is_root = nix::unistd::geteuid().is_root();
    let has_python = Command::new("python3").arg("--version").output().is_ok();
    let lacks = match (is_root, has_python) {
        (false, _) => Some("only root can be another user"),
        (true, false) => Some("python3 is not there"),
        (true, true) => None,
    };
    let tests: [(&str, fn()); 2] =
        [("a_false_laboratory", a_false_laboratory), ("a_false_gateway", a_false_gateway)];
    Suite::default().tests(lacks, tests).run(None)
}

/// The stranger makes the directory of root's laboratories before root does, and answers with
/// root's own network and no mounts.
fn a_false_laboratory() {
    let place = Place::new("laboratory");
    let directory = place.0.join("airmend-lab-0");
    let own = "{\"namespace\":\"/proc/self/ns/net\",\"files\":[]}";
    let _stranger = Stranger::start(&directory.join("PID.sock"), &format!("[{own},{own}]"));
    let marker = place.0.join("marker");
    let touch = format!("touch {}", marker.display());
    let asked: [&[&str]; 3] =
        [&["shell", "--", "sh", "-c", &touch], &["set", "loss=5%"], &["watch"]];
    for words in asked {
        place.refused(&[&["lab"], words].concat(), 2, "not a directory of this user alone");
    }
    // As if the directory were root's: the socket is still the stranger's.
    chown(&directory, Some(0), Some(0)).expect("root");
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o700)).expect("root");
    for words in asked {
        place.refused(&[&["lab"], words].concat(), 2, "no laboratory of this user runs");
    }
    assert!(!marker.exists(), "a command ran where a stranger said");
}

fn a_false_gateway() {
    let place = Place::new("gateway");
    let socket = place.0.join("status.sock");
    let answer = "HTTP/1.1 200 OK\r\n\r\n{\"interface\":\"wlan0\",\"flows\":3}";
    let _stranger = Stranger::start(&socket, answer);
    let socket = socket.to_str().expect("UTF-8");
    let asked: [&[&str]; 2] =
        [&["status", "--socket"], &["handoff", "receding", "10.0.0.2", "--socket"]];
    for words in asked {
        let words = [words, &[socket]].concat();
        place.refused(&words, 1, "a process of user 65534, neither root's nor yours");
    }
}

/// A directory like that of temporary files, which vanishes.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let place = env::temp_dir().join(format!("airmend-stranger-{}-{name}", std::process::id()));
        fs::create_dir_all(&place).expect("a directory");
        fs::set_permissions(&place, fs::Permissions::from_mode(0o1777)).expect("a directory");
        Self(place)
    }

    /// The command fails with one sentence that has these words.
    fn refused(&self, words: &[&str], status: i32, sentence: &str) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_airmend"));
        command.args(words).env("XDG_RUNTIME_DIR", &self.0).stdin(Stdio::null());
        let output = command.output().expect("airmend runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{words:?}: {said}");
        assert!(said.contains(sentence) && said.lines().count() == 1, "{words:?}: {said}");
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

/// A process of another user.
struct Stranger(Child);

impl Stranger {
    fn start(socket: &Path, answer: &str) -> Self {
        let mut command = Command::new("python3");
        command.args(["-c", STRANGER]).arg(socket).arg(answer).uid(NOBODY).gid(NOBODY);
        let mut child =
            command.current_dir("/").stdout(Stdio::piped()).spawn().expect("python3 runs");
        let out = child.stdout.take().expect("a pipe");
        let stranger = Self(child);
        BufReader::new(out).read_line(&mut String::new()).expect("it is ready");
        stranger
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}
