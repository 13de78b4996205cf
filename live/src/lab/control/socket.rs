//! The socket at which a laboratory takes requests: a line from the client, a line or more from the
//! laboratory, and the end.

use crate::sys::{receive_files, send_files};
use nix::sys::socket::{Shutdown, getsockopt, shutdown, sockopt::PeerCredentials};
use nix::unistd::geteuid;
use std::fs::{self, DirBuilder, File};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// What a request or an answer may have at most.
const MAX_BYTES: u64 = 64 << 10;
/// Longer than the loop may take.
const PATIENCE: Duration = Duration::from_secs(12);
const EXTENSION: &str = "sock";

/// Where the laboratories of this user listen: to be asked before a user namespace is entered.
pub fn directory() -> PathBuf {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let runtime = runtime.filter(|path| path.is_dir()).unwrap_or_else(std::env::temp_dir);
    runtime.join(format!("airmend-lab-{}", geteuid()))
}

/// An answer: a line or more, and open files that the client gets as well.
#[derive(Debug, Default)]
pub struct Answer {
    /// What is said.
    pub text: String,
    /// What is given.
    pub files: Vec<File>,
}

impl From<String> for Answer {
    fn from(text: String) -> Self {
        Self { text, files: Vec::new() }
    }
}

/// The socket of the only laboratory that runs, or that of this process, or a sentence.
///
/// # Errors
/// There are none or several, or there is not the one that is meant, or the directory is not this
/// user's alone.
pub fn the_only_one(directory: &Path, pid: Option<u32>) -> Result<PathBuf, String> {
    match check(directory) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(format!(
                "{} is not a directory of this user alone, so that another user could answer \
                 there: remove it, or set TMPDIR to a directory that is yours",
                directory.display()
            ));
        }
        _ => {}
    }
    let entries = fs::read_dir(directory).into_iter().flatten();
    let sockets = entries.filter_map(|entry| Some(entry.ok()?.path()));
    choose(sockets.filter(|path| connect(path).is_ok()).collect(), pid)
}

/// The only one of these sockets of laboratories, or that of this process, or a sentence.
fn choose(mut running: Vec<PathBuf>, pid: Option<u32>) -> Result<PathBuf, String> {
    running.retain(|path| pid.is_none_or(|pid| number(path) == Some(pid)));
    running.sort();
    match (&running[..], pid) {
        ([one], _) => Ok(one.clone()),
        ([], None) => {
            Err("no laboratory of this user runs: start one with `airmend lab exec`".to_owned())
        }
        ([], Some(pid)) => Err(format!("process {pid} is no laboratory of this user")),
        (several, _) => {
            let numbers = several.iter().filter_map(|path| Some(number(path)?.to_string()));
            let numbers = numbers.collect::<Vec<_>>().join(", ");
            Err(format!("several laboratories run: name one with --pid, of {numbers}"))
        }
    }
}

/// Fails unless this is a directory that only this user may enter: otherwise the sockets in it may
/// be anybody's.
fn check(directory: &Path) -> io::Result<()> {
    let found = fs::symlink_metadata(directory)?;
    let is_own = found.is_dir() && found.uid() == geteuid().as_raw();
    match is_own && found.permissions().mode() & 0o077 == 0 {
        true => Ok(()),
        false => Err(ErrorKind::PermissionDenied.into()),
    }
}

/// The process whose laboratory has this socket.
fn number(path: &Path) -> Option<u32> {
    let name = path.file_name()?.to_str()?.strip_suffix(EXTENSION)?;
    name.strip_suffix('.')?.parse().ok()
}

/// Connects to a laboratory: a process of this user, which has the number that its socket says.
fn connect(path: &Path) -> io::Result<UnixStream> {
    let stream = UnixStream::connect(path)?;
    let peer = getsockopt(&stream, PeerCredentials)?;
    let is_process = number(path).is_some_and(|number| u32::try_from(peer.pid()) == Ok(number));
    match is_process && peer.uid() == geteuid().as_raw() {
        true => Ok(stream),
        false => Err(ErrorKind::PermissionDenied.into()),
    }
}

/// Sends a line, and reads the answer.
///
/// # Errors
/// There is no laboratory, or what is there is no process of this user, or it does not answer.
pub fn request(path: &Path, line: &str) -> io::Result<Answer> {
    let mut stream = connect(path)?;
    patient(&stream)?;
    writeln!(stream, "{line}")?;
    let mut bytes = vec![0; MAX_BYTES as usize];
    // What comes with files comes first.
    let (length, files) = receive_files(&stream, &mut bytes)?;
    bytes.truncate(length);
    stream.take(MAX_BYTES - length as u64).read_to_end(&mut bytes)?;
    let text = String::from_utf8(bytes).map_err(|_| ErrorKind::InvalidData)?;
    Ok(Answer { text, files })
}

fn patient(stream: &UnixStream) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))
}

/// A socket with a thread that answers; both end with this value.
#[derive(Debug)]
pub struct ControlSocket {
    path: PathBuf,
    listener: UnixListener,
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
        answer: impl FnMut(&str) -> Answer + Send + 'static,
    ) -> io::Result<Self> {
        match DirBuilder::new().mode(0o700).create(directory) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        check(directory)?;
        let path = directory.join(std::process::id().to_string()).with_extension(EXTENSION);
        // A process of the same number has died.
        fs::remove_file(&path).ok();
        let listener = UnixListener::bind(&path)?;
        let listening = listener.try_clone()?;
        let thread = thread::Builder::new()
            .name("control".to_owned())
            .spawn(move || serve(&listening, answer))?;
        Ok(Self { path, listener, thread: Some(thread) })
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        // Ends the thread's waiting, also where somebody has removed the socket's file.
        shutdown(self.listener.as_raw_fd(), Shutdown::Both).ok();
        fs::remove_file(&self.path).ok();
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

/// A client that is read until then, however slowly it writes.
struct Patient<'a> {
    stream: &'a UnixStream,
    until: Instant,
}

impl Read for Patient<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        self.stream.read(bytes)
    }
}

/// Serves one client at a time, as they come, until the socket is shut down.
fn serve(listener: &UnixListener, mut answer: impl FnMut(&str) -> Answer) {
    while let Ok((stream, _)) = listener.accept() {
        // A client that breaks off misses its answer.
        exchange(stream, &mut answer).ok();
    }
}

fn exchange(mut stream: UnixStream, answer: &mut impl FnMut(&str) -> Answer) -> io::Result<()> {
    patient(&stream)?;
    let mut line = String::new();
    let patient = Patient { stream: &stream, until: Instant::now() + PATIENCE };
    BufReader::new(patient.take(MAX_BYTES)).read_line(&mut line)?;
    if line.is_empty() {
        // Somebody only looked whether a laboratory is there.
        return Ok(());
    }
    let Answer { text, files } = answer(line.trim_end());
    let files: Vec<&File> = files.iter().collect();
    let sent = if files.is_empty() { 0 } else { send_files(&stream, text.as_bytes(), &files)? };
    stream.write_all(&text.as_bytes()[sent..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_laboratory_is_found_and_answers_until_it_ends() {
        let place = format!("airmend-control-{}", std::process::id());
        let directory = std::env::temp_dir().join(place);
        assert!(the_only_one(&directory, None).unwrap_err().contains("no laboratory"));
        let socket = ControlSocket::start(&directory, |line| format!("{line}!\n").into()).unwrap();
        let path = the_only_one(&directory, None).unwrap();
        assert_eq!(request(&path, "loss=5%").unwrap().text, "loss=5%!\n");
        assert_eq!(the_only_one(&directory, Some(std::process::id())).unwrap(), path);
        assert!(the_only_one(&directory, Some(1)).unwrap_err().contains("process 1"));
        let several = || vec![path.clone(), directory.join("7.sock")];
        assert!(choose(several(), None).unwrap_err().contains("--pid"));
        assert_eq!(choose(several(), Some(7)).unwrap(), directory.join("7.sock"));
        drop(socket);
        assert!(request(&path, "loss=5%").is_err());
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn a_socket_that_somebody_else_can_have_made_is_refused() {
        let place = format!("airmend-control-false-{}", std::process::id());
        let directory = std::env::temp_dir().join(place);
        let socket = ControlSocket::start(&directory, |_| String::new().into()).unwrap();
        let path = the_only_one(&directory, None).unwrap();
        // A living process, but not the one that answers.
        let other = path.with_file_name("1.sock");
        fs::rename(&path, &other).unwrap();
        assert!(the_only_one(&directory, None).unwrap_err().contains("no laboratory"));
        assert_eq!(request(&other, "places").unwrap_err().kind(), ErrorKind::PermissionDenied);
        fs::rename(&other, &path).unwrap();
        // Another user could have put the socket there, or can put another one in its place.
        for mode in [0o711, 0o770] {
            fs::set_permissions(&directory, fs::Permissions::from_mode(mode)).unwrap();
            let why = the_only_one(&directory, None).unwrap_err();
            assert!(why.contains("this user alone"), "{why}");
            assert!(ControlSocket::start(&directory, |_| String::new().into()).is_err());
        }
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o700)).unwrap();
        let link = directory.with_extension("link");
        std::os::unix::fs::symlink(&directory, &link).unwrap();
        assert!(the_only_one(&link, None).unwrap_err().contains("this user alone"));
        drop(socket);
        fs::remove_file(link).unwrap();
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn it_ends_when_somebody_has_removed_its_socket() {
        let name = format!("airmend-control-removed-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        let socket = ControlSocket::start(&directory, |_| String::new().into()).unwrap();
        fs::remove_dir_all(&directory).unwrap();
        drop(socket);
    }

    #[test]
    fn a_client_that_writes_slowly_is_given_up() {
        let (stream, mut client) = UnixStream::pair().unwrap();
        let until = Instant::now();
        client.write_all(b"s").unwrap();
        let mut late = Patient { stream: &stream, until };
        assert_eq!(late.read(&mut [0]).unwrap_err().kind(), ErrorKind::TimedOut);
        let mut early = Patient { stream: &stream, until: until + PATIENCE };
        assert_eq!(early.read(&mut [0]).unwrap(), 1);
        early.until = Instant::now() + Duration::from_millis(5);
        // Nothing comes: the rest of its time, not the time for each piece.
        assert_eq!(early.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
    }

    #[test]
    fn files_come_with_an_answer() {
        let directory = std::env::temp_dir().join(format!("airmend-files-{}", std::process::id()));
        let answer = |_: &str| Answer {
            text: "three\n".to_owned(),
            files: (0..3).map(|_| File::open("/proc/self/stat").unwrap()).collect(),
        };
        let socket = ControlSocket::start(&directory, answer).unwrap();
        let path = the_only_one(&directory, None).unwrap();
        let Answer { text, files } = request(&path, "place mh").unwrap();
        assert_eq!((text.as_str(), files.len()), ("three\n", 3));
        let own = std::process::id().to_string();
        for file in files {
            assert!(io::read_to_string(file).unwrap().starts_with(&own));
        }
        drop(socket);
        fs::remove_dir_all(&directory).unwrap();
    }
}
