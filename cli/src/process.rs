//! What every command shares: bad usage, signals, and sentences on stderr.

use airmend_live::lab;
use std::io::{self, Write};
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

/// Prints a sentence on stderr.
pub(crate) fn complain(sentence: &str) {
    // A closed stderr cannot be reported.
    let _ = writeln!(io::stderr(), "airmend: {sentence}");
}
