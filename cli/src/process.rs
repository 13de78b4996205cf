//! Functions of all commands: usage errors, signals, and sentences on stderr.

use crate::log_lines;
use airmend_live::lab;
use anyhow::Context;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A command line that clap accepts and that is still wrong; the exit status is 2.
#[derive(Debug)]
pub(crate) struct BadUsage(pub(crate) String);

impl std::fmt::Display for BadUsage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadUsage {}

/// Prepares the process for the laboratory, before anything starts a thread: the kernel lets only
/// a process with one thread enter a user namespace. Returns
/// the flag of `stop_flag`.
pub(crate) fn enter_lab() -> anyhow::Result<Arc<AtomicBool>> {
    lab::enter_user_namespace()?;
    Ok(stop_flag()?)
}

/// Raised by the first SIGINT or SIGTERM; the second one ends the program at once.
pub(crate) fn stop_flag() -> io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        // In this order: the first signal finds the flag down, and only raises it.
        signal_hook::flag::register_conditional_shutdown(signal, 1, Arc::clone(&stop))?;
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}

/// One sentence with its cause; an error without one keeps its type.
pub(crate) fn with_cause(error: anyhow::Error) -> anyhow::Error {
    if error.chain().len() > 1 { anyhow::anyhow!("{error:#}") } else { error }
}

/// Prints a sentence on stderr, the last one of the program.
pub(crate) fn complain(sentence: &str) {
    log_lines::say(sentence);
    log_lines::finish();
}

/// All files in `directory` and below whose names have this extension, in the order of their names.
pub(crate) fn files_below(directory: &Path, extension: &str) -> anyhow::Result<Vec<PathBuf>> {
    let describe = || format!("{} cannot be listed", directory.display());
    let entries = std::fs::read_dir(directory).with_context(describe)?;
    let paths = entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<PathBuf>>>();
    let mut paths = paths.with_context(describe)?;
    paths.sort();
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            files.extend(files_below(&path, extension)?);
        } else if path.extension().is_some_and(|found| found == extension) {
            files.push(path);
        }
    }
    Ok(files)
}
