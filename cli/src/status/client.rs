//! Asks a gateway's Unix socket for its status, and tells it of mobile hosts.

use super::find::DIRECTORY;
use airmend_live::gateway::Word;
use airmend_live::gateway::telemetry::Status;
use airmend_live::tunnel::LinkStatus;
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use nix::unistd::geteuid;
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A gateway whose loop hangs responds so after five seconds.
const PATIENCE: Duration = Duration::from_secs(8);
/// Far more than any status has.
const MAX_BYTES: u64 = 4 << 20;

/// Why there is no status, in one sentence.
#[derive(Debug)]
pub(crate) struct NoStatus {
    path: PathBuf,
    why: Why,
}

#[derive(Debug)]
enum Why {
    Connect(io::Error),
    /// A process of this user listens, who is neither root nor oneself.
    Stranger(u32),
    Exchange(io::Error),
    Refused(String),
    NotAStatus(String),
}

impl fmt::Display for NoStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match &self.why {
            Why::Connect(error) => match error.kind() {
                ErrorKind::NotFound => write!(
                    f,
                    "no gateway answers at {path}, which does not exist; start it with `airmend \
                     gateway IF`, or name its --socket"
                ),
                ErrorKind::ConnectionRefused => {
                    write!(f, "the gateway at {path} has died; start it again")
                }
                ErrorKind::PermissionDenied => {
                    write!(f, "this user may not ask at {path}; try it as root or in its group")
                }
                _ => write!(f, "cannot connect to {path}: {error}"),
            },
            Why::Stranger(user) => write!(
                f,
                "what listens at {path} is a process of user {user}, neither root's nor yours: \
                 name the --socket of a gateway"
            ),
            Why::Exchange(error) if is_timeout(error) => {
                write!(f, "the gateway at {path} does not answer; it is stopped or hangs")
            }
            Why::Exchange(error) => write!(f, "the gateway at {path} broke off: {error}"),
            Why::Refused(sentence) => write!(f, "{}", sentence.trim_end().trim_end_matches('.')),
            Why::NotAStatus(why) => {
                write!(f, "what answers at {path} is no gateway of this version: {why}")
            }
        }
    }
}

impl std::error::Error for NoStatus {}

/// The status of the gateway now.
pub(crate) fn ask(path: &Path) -> Result<Status, NoStatus> {
    request(path, "GET /status", status)
}

/// A status of either kind.
#[derive(Debug)]
pub(crate) enum Answer {
    Gateway(Box<Status>),
    Link(Box<LinkStatus>),
}

/// The status of the gateway or link now.
pub(crate) fn ask_any(path: &Path) -> Result<Answer, NoStatus> {
    request(path, "GET /status", |body| match serde_json::from_slice::<LinkStatus>(body) {
        Ok(found) if found.link => Ok(Answer::Link(Box::new(found))),
        _ => status(body).map(|found| Answer::Gateway(Box::new(found))),
    })
}

/// Tells the gateway what happens to a mobile host.
pub(crate) fn tell(path: &Path, word: &Word) -> Result<(), NoStatus> {
    request(path, &format!("PUT {}", word.path()), |_| Ok(()))
}

fn status(body: &[u8]) -> Result<Status, Why> {
    serde_json::from_slice(body).map_err(|error| Why::NotAStatus(error.to_string()))
}

fn request<T>(
    path: &Path,
    what: &str,
    read: impl Fn(&[u8]) -> Result<T, Why>,
) -> Result<T, NoStatus> {
    let because = |why| NoStatus { path: path.to_owned(), why };
    let stream = UnixStream::connect(path).map_err(|error| because(Why::Connect(error)))?;
    let peer = getsockopt(&stream, PeerCredentials);
    let user = peer.map_err(|error| because(Why::Connect(error.into())))?.uid();
    // A service has a user of its own, and only root makes its directory.
    if !(path.starts_with(DIRECTORY) || user == 0 || user == geteuid().as_raw()) {
        return Err(because(Why::Stranger(user)));
    }
    let answer = exchange(stream, what).map_err(|error| because(Why::Exchange(error)))?;
    body(&answer).and_then(read).map_err(because)
}

fn exchange(mut stream: UnixStream, what: &str) -> io::Result<Vec<u8>> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    write!(stream, "{what} HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.take(MAX_BYTES).read_to_end(&mut answer)?;
    Ok(answer)
}

/// The body of a response that grants the request.
fn body(answer: &[u8]) -> Result<&[u8], Why> {
    let mut fields = [httparse::EMPTY_HEADER; 64];
    let mut response = httparse::Response::new(&mut fields);
    let body = match response.parse(answer) {
        Ok(httparse::Status::Complete(header)) => answer.get(header..).unwrap_or_default(),
        Ok(httparse::Status::Partial) => {
            return Err(Why::Exchange(ErrorKind::UnexpectedEof.into()));
        }
        Err(error) => return Err(Why::NotAStatus(error.to_string())),
    };
    if response.code != Some(200) {
        return Err(Why::Refused(String::from_utf8_lossy(body).into_owned()));
    }
    Ok(body)
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_a_status_or_a_sentence() {
        let sentence = |answer: &[u8]| {
            let why = body(answer).and_then(status).unwrap_err();
            NoStatus { path: "/a.sock".into(), why }.to_string()
        };
        let right = body(b"HTTP/1.1 200 OK\r\n\r\n{\"flows\":3,\"new\":[]}").and_then(status);
        assert_eq!(right.unwrap().flows, 3);
        let busy = b"HTTP/1.1 503 Service Unavailable\r\n\r\nThe gateway hangs.\n";
        assert_eq!(sentence(busy), "The gateway hangs");
        assert!(sentence(b"HTTP/1.1 200 OK\r\n\r\nhello").contains("no gateway of this version"));
        assert!(sentence(b"SSH-2.0-OpenSSH\r\n").contains("no gateway of this version"));
        assert!(sentence(b"HTTP/1.1 200").contains("broke off"));
        assert!(sentence(b"").contains("broke off"));
    }
}
