//! A program beside the test, whose lines are read.

use crate::kit::{self, Result, until};
use airmend_live::lab::Namespace;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

/// Killed when the test is over.
pub(super) struct Process {
    process: kit::Process,
    said: Arc<Mutex<Vec<String>>>,
    listening: Option<JoinHandle<()>>,
}

impl Process {
    pub(super) fn start(namespace: &Namespace, command: &mut Command) -> Result<Self> {
        let name = command.get_program().to_string_lossy().into_owned();
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let started = namespace.spawn(command);
        let child = started.map_err(|error| format!("cannot start {name}: {error}"))?;
        let mut process = kit::Process(child);
        let stdout = BufReader::new(process.0.stdout.take().ok_or("stdout is piped")?);
        let said = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&said);
        let listening = thread::spawn(move || {
            for line in stdout.lines().map_while(std::result::Result::ok) {
                heard.lock().unwrap_or_else(PoisonError::into_inner).push(line);
            }
        });
        Ok(Self { process, said, listening: Some(listening) })
    }

    /// Waits until it has said these words so many times; the error is everything that it said.
    pub(super) fn says(&self, words: &str, times: usize) -> Result {
        let said = || self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let count = || said().iter().filter(|line| line.contains(words)).count();
        until(words, || (count() >= times).then_some(()))
            .map_err(|error| format!("{error}: {:#?}", said()).into())
    }

    pub(super) fn end(&mut self) {
        // It fails only where it has ended and was waited for.
        self.process.kill().ok();
        self.listening.take().map(JoinHandle::join);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}
