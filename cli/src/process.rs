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

/// An error with what caused it, each cause once: many errors name theirs themselves.
pub(crate) fn sentence(error: &anyhow::Error) -> String {
    let mut sentence = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !sentence.contains(&cause) {
            sentence = format!("{sentence}: {cause}");
        }
    }
    sentence
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

#[cfg(test)]
mod tests {
    use super::*;
    use airmend_sim::replay::ReplayError;

    #[test]
    fn a_cause_is_told_once() {
        let refused = || io::Error::from(io::ErrorKind::PermissionDenied);
        let file = anyhow::Error::new(refused()).context("x.csv cannot be written");
        assert_eq!(
            sentence(&file.context("no trace")),
            "no trace: x.csv cannot be written: permission denied"
        );
        // This error names its cause itself.
        let named = ReplayError::Unreadable(refused());
        assert_eq!(sentence(&named.into()), "cannot be read (permission denied)");
    }
}
