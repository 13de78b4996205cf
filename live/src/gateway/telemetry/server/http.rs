//! As much HTTP/1.1 (RFC 9112) as a status needs: one request, one answer, and goodbye.

use super::listen::ClientStream;
use std::io::{self, ErrorKind, Read, Write};
use std::time::{Duration, Instant};

/// A request with all its fields; curl and Prometheus need a tenth of this.
const MAX_REQUEST_BYTES: usize = 8 << 10;
/// Fields of a request.
const MAX_FIELDS: usize = 64;
/// From the first byte of the request to the last one of the answer, without the time that the
/// gateway's loop needs for it.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(2);

/// An HTTP response.
#[derive(Debug)]
pub(super) struct Response {
    pub(super) status: &'static str,
    pub(super) media_type: &'static str,
    pub(super) body: String,
}

impl Response {
    pub(super) fn ok(media_type: &'static str, body: String) -> Self {
        Self { status: "200 OK", media_type, body }
    }

    /// A response of one sentence.
    pub(super) fn sentence(status: &'static str, sentence: &str) -> Self {
        Self { status, media_type: "text/plain; charset=utf-8", body: format!("{sentence}\n") }
    }

    fn bytes(&self) -> Vec<u8> {
        let Self { status, media_type, body } = self;
        let length = body.len();
        // A browser must neither guess what this is nor keep it.
        format!(
            "HTTP/1.1 {status}\r\nContent-Type: {media_type}\r\nContent-Length: {length}\r\n\
             Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n\
             Connection: close\r\n\r\n{body}"
        )
        .into_bytes()
    }
}

/// What a request is about: its path, without its query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Get {
        path: String,
        /// Whether the client takes OpenMetrics (RFC 9110 §12.5.1; weights are not compared).
        wants_open_metrics: bool,
    },
    Put(String),
}

/// Reads one request and sends the response of `answer` to it, if there is one.
pub(super) fn serve(
    stream: &mut ClientStream,
    answer: impl FnOnce(&Target) -> Option<Response>,
) -> io::Result<()> {
    let response = match read_target(stream, Instant::now() + CLIENT_TIMEOUT) {
        Ok(target) => answer(&target).ok_or(ErrorKind::ConnectionAborted)?,
        Err(Refused::Answer(response)) => response,
        Err(Refused::Gone(error)) => return Err(error),
    };
    write(stream, &response.bytes(), Instant::now() + CLIENT_TIMEOUT)
}

/// Responds that there are too many clients, if that does not block.
pub(super) fn refuse_without_waiting(stream: &mut ClientStream) {
    let sentence = "Too many clients ask at once; ask again in a second.";
    let response = Response::sentence("503 Service Unavailable", sentence);
    if stream.set_nonblocking().is_ok() {
        let _ = stream.write(&response.bytes());
    }
}

/// The reason why a request is refused.
pub(super) enum Refused {
    Answer(Response),
    Gone(io::Error),
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Self {
        Self::Gone(error)
    }
}

fn refused<T>(status: &'static str, sentence: &str) -> Result<T, Refused> {
    Err(Refused::Answer(Response::sentence(status, sentence)))
}

fn read_target(stream: &mut ClientStream, deadline: Instant) -> Result<Target, Refused> {
    let mut buffer = [0; MAX_REQUEST_BYTES];
    let mut len = 0;
    loop {
        if let Some(target) = parse(&buffer[..len])? {
            return Ok(target);
        }
        if len == buffer.len() {
            let status = "431 Request Header Fields Too Large";
            return refused(status, "The request is longer than 8 KiB.");
        }
        let Some(left) = time_left(deadline) else {
            return refused("408 Request Timeout", "The request did not end within 2 seconds.");
        };
        stream.set_timeout(left)?;
        match stream.read(&mut buffer[len..]) {
            Ok(0) => return Err(io::Error::from(ErrorKind::UnexpectedEof).into()),
            Ok(more) => len += more,
            Err(error) if is_retried(&error) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// The target of a whole request; `None` if there is more to come.
pub(super) fn parse(bytes: &[u8]) -> Result<Option<Target>, Refused> {
    let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
    let mut request = httparse::Request::new(&mut fields);
    match request.parse(bytes) {
        Ok(httparse::Status::Partial) => return Ok(None),
        Ok(httparse::Status::Complete(_)) => {}
        Err(httparse::Error::TooManyHeaders) => {
            let status = "431 Request Header Fields Too Large";
            return refused(status, "The request has more than 64 fields.");
        }
        Err(error) => {
            return refused("400 Bad Request", &format!("This is no HTTP request: {error}."));
        }
    }
    let path = request.path.unwrap_or("/");
    let path = path.split('?').next().unwrap_or(path).to_owned();
    let accepts = |field: &httparse::Header<'_>| {
        let value = String::from_utf8_lossy(field.value).to_ascii_lowercase();
        field.name.eq_ignore_ascii_case("accept") && value.contains("application/openmetrics-text")
    };
    Ok(Some(match request.method {
        Some("GET") => {
            let wants_open_metrics = request.headers.iter().any(accepts);
            Target::Get { path, wants_open_metrics }
        }
        Some("PUT") => Target::Put(path),
        _ => return refused("405 Method Not Allowed", "Only GET and PUT are answered here."),
    }))
}

fn write(stream: &mut ClientStream, mut bytes: &[u8], deadline: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        let left = time_left(deadline).ok_or(ErrorKind::TimedOut)?;
        stream.set_timeout(left)?;
        match stream.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(error) if is_retried(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// A timeout or a signal: the deadline decides.
fn is_retried(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

fn time_left(deadline: Instant) -> Option<Duration> {
    // The kernel counts timeouts in microseconds, and takes none for endless.
    let left = deadline.saturating_duration_since(Instant::now());
    (left >= Duration::from_micros(1)).then_some(left)
}
