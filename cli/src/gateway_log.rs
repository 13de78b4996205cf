//! The log of a gateway on stderr.

use crate::log_lines;
use airmend_live::gateway::{LogFormat, LogLevel};
use serde_json::json;
use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use tracing_subscriber::filter::LevelFilter;
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
        LogFormat::Json => |count| format!("{}\n", json!({ "level": "WARN", "lines_lost": count })),
        LogFormat::Text => log_lines::lost,
    };
    let stderr = log_lines::start(lost)?;
    let lines = fmt::layer().with_writer(move || stderr.clone());
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
