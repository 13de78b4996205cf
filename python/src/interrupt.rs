//! Long work without the global interpreter lock, which Ctrl-C ends.

use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// How often Python is asked for signals.
const INTERVAL: Duration = Duration::from_millis(50);

/// Does `work` in a thread of its own, without the interpreter lock. A signal whose handler raises
/// an exception, as Ctrl-C does, sets the flag that `work` is given, and is returned.
pub(crate) fn interruptible<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&AtomicBool) -> T + Send,
) -> PyResult<T> {
    let stop = AtomicBool::new(false);
    py.detach(|| {
        thread::scope(|scope| {
            let (alive, ended) = channel::<()>();
            let stop = &stop;
            let worker = scope.spawn(move || {
                let result = work(stop);
                drop(alive);
                result
            });
            let mut signal = Ok(());
            while ended.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                if signal.is_ok() {
                    signal = Python::attach(|py| py.check_signals());
                    stop.store(signal.is_err(), Ordering::Relaxed);
                }
            }
            let result = worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            signal.map(|()| result)
        })
    })
}
