//! The socket at which a laboratory takes requests: a line from the client, a line or more from the
//! laboratory, and the end.

use std::fs::{self, DirBuilder};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// What a request or an answer may have at most.
const MAX_BYTES: u64 = 64 << 10;
/// Longer than the loop may take.
const PATIENCE: Duration = Duration::from_secs(12);
const EXTENSION: &str = "sock";

/// Where the laboratories of this user listen: to be asked before a user namespace is entered.
pub fn directory() -> PathBuf {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let runtime = runtime.filter(|path| path.is_dir()).unwrap_or_else(std::env::temp_dir);
    runtime.join(format!("airmend-lab-{}", nix::unistd::geteuid()))
}

/// The socket of the only laboratory that runs, or that of this process, or a sentence.
///
/// # Errors
/// There are none or several, or there is not the one that is meant.
pub fn the_only_one(directory: &Path, pid: Option<u32>) -> Result<PathBuf, String> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    let sockets = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let is_socket = |path: &PathBuf| path.extension().is_some_and(|found| found == EXTENSION);
    let mut running: Vec<_> = sockets
        .filter(is_socket)
        .filter(|path| UnixStream::connect(path).is_ok())
        .filter(|path| pid.is_none_or(|pid| number(path) == pid.to_string()))
        .collect();
    running.sort();
    match (&running[..], pid) {
        ([one], _) => Ok(one.clone()),
        ([], None) => {
            Err("no laboratory of this user runs: start one with `airmend lab exec`".to_owned())
        }
        ([], Some(pid)) => Err(format!("process {pid} is no laboratory of this user")),
        (several, _) => {
            let numbers: Vec<_> = several.iter().map(|path| number(path)).collect();
            let numbers = numbers.join(", ");
            Err(format!("several laboratories run: name one with --pid, of {numbers}"))
        }
    }
}

fn number(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// Sends a line, and reads the answer.
///
/// # Errors
/// There is no laboratory, or it does not answer.
pub fn request(path: &Path, line: &str) -> io::Result<String> {
    let mut stream = UnixStream::connect(path)?;
    patient(&stream)?;
    writeln!(stream, "{line}")?;
    let mut answer = String::new();
    stream.take(MAX_BYTES).read_to_string(&mut answer)?;
    Ok(answer)
}

fn patient(stream: &UnixStream) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))
}

/// A socket with a thread that answers; both end with this value.
#[derive(Debug)]
pub struct ControlSocket {
    path: PathBuf,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl ControlSocket {
    /// Listens in this directory, which only this user may enter. `answer` makes the answer to a
    /// line.
    ///
    /// # Errors
    /// The directory is another user's, or the socket cannot be made.
    pub fn start(
        directory: &Path,
        answer: impl FnMut(&str) -> String + Send + 'static,
    ) -> io::Result<Self> {
        match DirBuilder::new().mode(0o700).create(directory) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let found = fs::symlink_metadata(directory)?;
        if !found.is_dir() || found.uid() != nix::unistd::geteuid().as_raw() {
            return Err(ErrorKind::PermissionDenied.into());
        }
        let path = directory.join(std::process::id().to_string()).with_extension(EXTENSION);
        // A process of the same number has died.
        fs::remove_file(&path).ok();
        let listener = UnixListener::bind(&path)?;
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let thread = thread::Builder::new()
            .name("control".to_owned())
            .spawn(move || serve(&listener, &over, answer))?;
        Ok(Self { path, is_over, thread: Some(thread) })
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        // The thread waits for a client.
        UnixStream::connect(&self.path).ok();
        fs::remove_file(&self.path).ok();
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

/// Serves one client at a time, as they come.
fn serve(listener: &UnixListener, is_over: &AtomicBool, mut answer: impl FnMut(&str) -> String) {
    while let Ok((stream, _)) = listener.accept() {
        if is_over.load(Ordering::Relaxed) {
            return;
        }
        // A client that breaks off misses its answer.
        exchange(stream, &mut answer).ok();
    }
}

fn exchange(mut stream: UnixStream, answer: &mut impl FnMut(&str) -> String) -> io::Result<()> {
    patient(&stream)?;
    let mut line = String::new();
    BufReader::new((&stream).take(MAX_BYTES)).read_line(&mut line)?;
    if line.is_empty() {
        // Somebody only looked whether a laboratory is there.
        return Ok(());
    }
    stream.write_all(answer(line.trim_end()).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_laboratory_is_found_and_answers_until_it_ends() {
        let place = format!("airmend-control-{}", std::process::id());
        let directory = std::env::temp_dir().join(place);
        assert!(the_only_one(&directory, None).unwrap_err().contains("no laboratory"));
        let socket = ControlSocket::start(&directory, |line| format!("{line}!\n")).unwrap();
        let path = the_only_one(&directory, None).unwrap();
        assert_eq!(request(&path, "loss=5%").unwrap(), "loss=5%!\n");
        assert_eq!(the_only_one(&directory, Some(std::process::id())).unwrap(), path);
        assert!(the_only_one(&directory, Some(1)).unwrap_err().contains("process 1"));
        let second = UnixListener::bind(directory.join("7.sock")).unwrap();
        assert!(the_only_one(&directory, None).unwrap_err().contains("--pid"));
        drop(second);
        drop(socket);
        assert!(request(&path, "loss=5%").is_err());
        fs::remove_dir_all(&directory).unwrap();
    }
}
