//! The log of a gateway on stderr.

use crate::log_lines::{self, LogLines};
use airmend_live::gateway::{LogFormat, LogLevel};
use airmend_live::rate::MessageLimit;
use airmend_proto::Instant;
use serde_json::json;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::sync::{Mutex, PoisonError};
use tracing::Metadata;
use tracing::callsite::Identifier;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Registry, fmt, registry, reload};

/// The log that has begun; its level can be changed.
pub(crate) struct Log(reload::Handle<LevelFilter, Registry>);

/// Messages of at least this level go to stderr from now on. Once in a process; later calls change
/// nothing.
///
/// # Errors
/// There can be no thread that writes them.
pub(crate) fn start_logging(format: LogFormat, level: LogLevel) -> anyhow::Result<Log> {
    let (filter, handle) = reload::Layer::new(filter(level));
    let lost = match format {
        LogFormat::Json => |count| json_line("lines were not written, nobody read them", count),
        LogFormat::Text => log_lines::lost,
    };
    let begun = std::time::Instant::now();
    let limited = Limited {
        lines: log_lines::start(lost)?,
        format,
        now: move || Instant::ZERO + begun.elapsed(),
        limits: Mutex::default(),
    };
    let lines = fmt::layer().with_writer(limited);
    let lines = match format {
        LogFormat::Json => lines.json().boxed(),
        LogFormat::Text if is_journal() => lines.with_target(false).without_time().boxed(),
        LogFormat::Text => lines.with_target(false).boxed(),
    };
    let _ = registry().with(filter).with(lines).try_init();
    Ok(Log(handle))
}

impl Log {
    /// Another level from now on.
    pub(crate) fn set_level(&self, level: LogLevel) {
        // It fails only where this log was not the first in the process.
        let _ = self.0.reload(filter(level));
    }
}

/// A line that says how many others are missing.
fn json_line(what: &str, count: u64) -> String {
    let mut timestamp = String::new();
    // Without a time the line still says what it must.
    let _ = SystemTime.format_time(&mut Writer::new(&mut timestamp));
    let fields = json!({ "message": what, "lines": count });
    let line = json!({
        "timestamp": timestamp, "level": "WARN", "fields": fields, "target": "airmend",
    });
    format!("{line}\n")
}

/// The lines of the log, of each message so many in a time.
struct Limited<C> {
    lines: LogLines,
    format: LogFormat,
    now: C,
    /// By the place in the program: they are finitely many.
    limits: Mutex<HashMap<Identifier, MessageLimit>>,
}

impl<C: Fn() -> Instant> MakeWriter<'_> for Limited<C> {
    type Writer = Line;

    fn make_writer(&self) -> Line {
        Line(Some(self.lines.clone()))
    }

    fn make_writer_for(&self, message: &Metadata<'_>) -> Line {
        let mut limits = self.limits.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(left_out) = limits.entry(message.callsite()).or_default().take((self.now)())
        else {
            return Line(None);
        };
        match (left_out, self.format) {
            (0, _) => {}
            (_, LogFormat::Json) => {
                self.lines.push(json_line("lines like the next one were left out", left_out));
            }
            (_, LogFormat::Text) => self
                .lines
                .push(format!("airmend: {left_out} lines like the next one were left out\n")),
        }
        self.make_writer()
    }
}

/// Takes one line, in one piece; without a place it is left out.
struct Line(Option<LogLines>);

impl Write for Line {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if let Some(lines) = &self.0 {
            lines.push(line);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn filter(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
    }
}

/// Whether the journal reads stderr, and so notes the time itself: systemd names the device and
/// inode of the stream that it gave to the service (systemd.exec(5)).
fn is_journal() -> bool {
    let Ok(stream) = std::env::var("JOURNAL_STREAM") else { return false };
    let stderr = io::stderr();
    if stderr.is_terminal() {
        return false;
    }
    let found = stderr.as_fd().try_clone_to_owned().map(File::from).and_then(|f| f.metadata());
    found.is_ok_and(|found| stream == format!("{}:{}", found.dev(), found.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::net::UnixStream;
    use std::sync::atomic::{AtomicU64, Ordering};
    use tracing::{info, warn};

    #[test]
    fn of_each_message_few_are_written() {
        static MILLIS: AtomicU64 = AtomicU64::new(0);
        let (mut reader, stream) = UnixStream::pair().unwrap();
        let lines = LogLines::new(stream, |_| unreachable!()).unwrap();
        let limited = Limited {
            lines: lines.clone(),
            format: LogFormat::Text,
            now: || Instant::from_millis(MILLIS.load(Ordering::Relaxed)),
            limits: Mutex::default(),
        };
        let layer = fmt::layer().without_time().with_ansi(false).with_writer(limited);
        tracing::subscriber::with_default(registry().with(layer), || {
            for second in 0..=60_u64 {
                MILLIS.store(1_000 * second, Ordering::Relaxed);
                warn!(second, "often");
            }
            info!("seldom");
        });
        lines.finish().unwrap();
        let mut bytes = [0; 1 << 16];
        let count = reader.read(&mut bytes).unwrap();
        let text = String::from_utf8_lossy(&bytes[..count]);
        let counted = |words: &str| text.lines().filter(|line| line.contains(words)).count();
        // Five at once, then one in ten seconds.
        assert_eq!((counted("often"), counted("seldom")), (5 + 6, 1), "{text}");
        assert_eq!(counted("lines like the next one were left out"), 6, "{text}");
        let left_out = text.lines().filter_map(|line| {
            line.strip_prefix("airmend: ")?.split(' ').next()?.parse::<usize>().ok()
        });
        assert_eq!(left_out.sum::<usize>(), 61 - 5 - 6, "{text}");
    }
}
