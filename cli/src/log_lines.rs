//! Lines that a loop writes which carries packets: a thread writes them to stderr or stdout. Where
//! nobody reads, the loop goes on, and what there is no place for is counted and told later.

use airmend_live::gateway::privileges::{PrivilegeError, drop_all};
use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

/// Lines that wait for whoever reads.
const MAX_LINES: usize = 256;
/// How long the end of a program waits for them.
const PATIENCE: Duration = Duration::from_secs(2);

/// The lines of stderr, in a program with a loop.
static STDERR: OnceLock<LogLines> = OnceLock::new();

/// From now on [`say`] waits for nobody. To be called once. `lost` makes the line that says how
/// many were not written.
///
/// # Errors
/// There can be no thread, or it keeps capabilities.
pub(crate) fn start(lost: fn(u64) -> String) -> anyhow::Result<LogLines> {
    let lines = LogLines::new(io::stderr(), lost)?;
    Ok(STDERR.get_or_init(|| lines).clone())
}

/// Prints a sentence on stderr.
pub(crate) fn say(sentence: &str) {
    let line = format!("airmend: {sentence}\n");
    match STDERR.get() {
        Some(lines) => lines.push(line),
        // A closed stderr cannot be reported.
        None => drop(io::stderr().write_all(line.as_bytes())),
    }
}

/// Waits until what was said is written, but not for ever.
pub(crate) fn finish() {
    // A closed stderr cannot be reported.
    let _ = STDERR.get().map(LogLines::finish);
}

/// Waits for them when it is dropped, by a panic too.
pub(crate) struct End;

impl Drop for End {
    fn drop(&mut self) {
        finish();
    }
}

/// How many lines were not written, for people.
pub(crate) fn lost(count: u64) -> String {
    format!("airmend: {count} lines were not written here, since nobody read them\n")
}

/// Where lines are put.
#[derive(Clone)]
pub(crate) struct LogLines(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    lines: VecDeque<Vec<u8>>,
    /// Lines that found no place.
    lost: u64,
    is_writing: bool,
    /// Why the last ones were not written.
    failure: Option<io::Error>,
}

impl LogLines {
    /// Lines for this stream; `lost` makes the line that says how many were not written.
    ///
    /// # Errors
    /// There can be no thread, or it keeps capabilities.
    pub(crate) fn new(
        stream: impl Write + Send + 'static,
        lost: fn(u64) -> String,
    ) -> anyhow::Result<Self> {
        let shared = Shared { state: Mutex::default(), changed: Condvar::new() };
        let lines = Self(Arc::new(shared));
        let shared = Arc::clone(&lines.0);
        let (tell, told) = mpsc::sync_channel(1);
        thread::Builder::new().name("log".into()).spawn(move || {
            // It needs none, and has those of the thread that starts it.
            let dropped: Result<(), PrivilegeError> = drop_all();
            let may_write = dropped.is_ok();
            if tell.send(dropped).is_ok() && may_write {
                shared.write(stream, lost);
            }
        })?;
        told.recv()??;
        Ok(lines)
    }

    /// Puts one line or more, with their ends.
    pub(crate) fn push(&self, lines: impl Into<Vec<u8>>) {
        let mut state = self.0.state();
        match state.lines.len() < MAX_LINES {
            true => state.lines.push_back(lines.into()),
            false => state.lost += 1,
        }
        self.0.changed.notify_all();
    }

    /// Waits until everything is written, but not for ever.
    ///
    /// # Errors
    /// The last lines could not be written.
    pub(crate) fn finish(&self) -> io::Result<()> {
        let is_pending =
            |state: &mut State| !state.lines.is_empty() || state.lost > 0 || state.is_writing;
        let waited = self.0.changed.wait_timeout_while(self.0.state(), PATIENCE, is_pending);
        waited.unwrap_or_else(PoisonError::into_inner).0.failure.take().map_or(Ok(()), Err)
    }
}

impl Shared {
    /// A panic elsewhere changes nothing here.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, mut stream: impl Write, lost: fn(u64) -> String) {
        let is_idle = |state: &mut State| state.lines.is_empty() && state.lost == 0;
        loop {
            let waited = self.changed.wait_while(self.state(), is_idle);
            let mut state = waited.unwrap_or_else(PoisonError::into_inner);
            // Those that were lost came after those that waited.
            let next = state.lines.pop_front();
            let next = next.unwrap_or_else(|| lost(std::mem::take(&mut state.lost)).into_bytes());
            state.is_writing = true;
            drop(state);
            let written = stream.write_all(&next).and_then(|()| stream.flush());
            let mut state = self.state();
            (state.is_writing, state.failure) = (false, written.err());
            drop(state);
            self.changed.notify_all();
        }
    }
}

/// Each call is a line or more, as `tracing_subscriber` writes them.
impl Write for LogLines {
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        self.push(lines);
        Ok(lines.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::Shutdown;
    use std::os::unix::net::UnixStream;

    /// Nobody reads at first: no call waits, and later there is what had a place, and how much had
    /// none.
    #[test]
    fn a_stream_that_nobody_reads_holds_nobody_up() {
        let (mut reader, writer) = UnixStream::pair().expect("a pair of sockets");
        let lost = |count| format!("{count} lost\n");
        let log = LogLines::new(writer, lost).expect("a thread");
        let long = format!("{}\n", "x".repeat(10_000));
        for _ in 0..10_000 {
            log.push(long.clone());
        }
        let mut read = String::new();
        let mut buffer = vec![0; 1 << 16];
        while !read.ends_with("lost\n") {
            let count = reader.read(&mut buffer).expect("a line");
            read.push_str(&String::from_utf8_lossy(&buffer[..count]));
        }
        let whole = read.lines().filter(|line| line.len() == 10_000).count() as u64;
        let told: Vec<u64> =
            read.lines().filter_map(|line| line.strip_suffix(" lost")?.parse().ok()).collect();
        assert!(whole >= MAX_LINES as u64, "{whole}");
        assert_eq!((whole + told.iter().sum::<u64>(), told.len()), (10_000, 1));
        log.push("the last one\n");
        log.finish().expect("it is written");
        let count = reader.read(&mut buffer).expect("a line");
        assert_eq!(&buffer[..count], b"the last one\n");
        // Closed it could live on in a process that another test starts, until that executes.
        reader.shutdown(Shutdown::Both).expect("it was open");
        log.push("nobody is there any more\n");
        assert!(log.finish().is_err());
    }
}
