//! The configuration is read again while the loop works: in a thread, since the file may be a
//! pipe or on a file system that does not answer, and the loop must not wait for it.

use anyhow::{Result, anyhow, bail};
use signal_hook::consts::SIGHUP;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// A file that has not been read by then is given up.
const READ_WITHIN: Duration = Duration::from_secs(5);

/// Reads the configuration again at each SIGHUP.
pub(crate) struct Reloads<T> {
    read: Arc<Read<T>>,
    within: Duration,
    is_wanted: Arc<AtomicBool>,
    /// Whether the file that is in force sets anything.
    file_sets: bool,
    reading: Option<Reading<T>>,
}

/// Reads the configuration, and says whether its file sets anything.
type Read<T> = dyn Fn() -> Result<(T, bool)> + Send + Sync;

struct Reading<T> {
    thread: JoinHandle<Result<(T, bool)>>,
    began: Instant,
    is_given_up: bool,
}

impl<T: Send + 'static> Reloads<T> {
    /// Listens to SIGHUP, and then calls `read`; `file_sets` says whether the file in force sets
    /// anything.
    pub(crate) fn new(
        file_sets: bool,
        read: impl Fn() -> Result<(T, bool)> + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let is_wanted = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(SIGHUP, Arc::clone(&is_wanted))?;
        let read = Arc::new(read);
        Ok(Self { read, within: READ_WITHIN, is_wanted, file_sets, reading: None })
    }

    /// What was read, or why nothing was, once; it never waits.
    pub(crate) fn poll(&mut self) -> Option<Result<T>> {
        if let Some(reading) = self.reading.take_if(|reading| reading.thread.is_finished()) {
            let read = reading.thread.join().unwrap_or_else(|_| Err(anyhow!("reading it failed")));
            // Of one that was given up everything has been said.
            return (!reading.is_given_up).then(|| self.accept(read));
        }
        match &mut self.reading {
            Some(reading) if !reading.is_given_up && reading.began.elapsed() > self.within => {
                reading.is_given_up = true;
                let seconds = self.within.as_secs_f64();
                Some(Err(anyhow!("the configuration was not read within {seconds} s")))
            }
            Some(reading)
                if reading.is_given_up && self.is_wanted.swap(false, Ordering::Relaxed) =>
            {
                Some(Err(anyhow!("an earlier reading of the configuration has not ended yet")))
            }
            None if self.is_wanted.swap(false, Ordering::Relaxed) => self.begin().err().map(Err),
            _ => None,
        }
    }

    fn begin(&mut self) -> Result<()> {
        let read = Arc::clone(&self.read);
        let thread = thread::Builder::new().name("reload".to_owned()).spawn(move || read())?;
        self.reading = Some(Reading { thread, began: Instant::now(), is_given_up: false });
        Ok(())
    }

    /// A file without anything is one that is just being written, or that somebody has emptied or
    /// removed by mistake: it would take all rules away.
    fn accept(&mut self, read: Result<(T, bool)>) -> Result<T> {
        let (config, file_sets) = read?;
        if self.file_sets && !file_sets {
            bail!("the file sets nothing any more, or is gone: restart airmend if that is meant");
        }
        self.file_sets = file_sets;
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;
    use std::process::Command;

    /// The text of a file, as its configuration.
    fn reloads(file: &Path) -> Reloads<String> {
        let file = file.to_owned();
        let read = move || {
            let text = fs::read_to_string(&file)?;
            let sets = !text.is_empty();
            Ok((text, sets))
        };
        Reloads {
            read: Arc::new(read),
            within: Duration::from_millis(20),
            is_wanted: Arc::new(AtomicBool::new(true)),
            file_sets: false,
            reading: None,
        }
    }

    fn outcome(reloads: &mut Reloads<String>) -> Result<String> {
        loop {
            match reloads.poll() {
                Some(outcome) => return outcome,
                None => thread::sleep(Duration::from_millis(1)),
            }
        }
    }

    #[test]
    fn a_pipe_that_nobody_writes_to_is_given_up() {
        let pipe = std::env::temp_dir().join(format!("airmend-reload-{}", std::process::id()));
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let mut reloads = reloads(&pipe);
        let why = outcome(&mut reloads).unwrap_err().to_string();
        assert!(why.contains("not read within 0.02 s"), "{why}");
        reloads.is_wanted.store(true, Ordering::Relaxed);
        let why = outcome(&mut reloads).unwrap_err().to_string();
        assert!(why.contains("has not ended yet"), "{why}");
        // Somebody writes at last; then the next one is read.
        fs::write(&pipe, "").unwrap();
        while reloads.reading.is_some() {
            assert!(reloads.poll().is_none());
        }
        fs::remove_file(&pipe).unwrap();
        reloads.is_wanted.store(true, Ordering::Relaxed);
        assert!(outcome(&mut reloads).is_err(), "there is no file");
    }

    #[test]
    fn an_emptied_file_is_a_mistake() {
        let file = std::env::temp_dir().join(format!("airmend-emptied-{}", std::process::id()));
        let set = |text| fs::write(&file, text).unwrap();
        set("seven");
        let mut reloads = reloads(&file);
        reloads.within = Duration::from_secs(300);
        assert_eq!(outcome(&mut reloads).unwrap(), "seven");
        set("");
        reloads.is_wanted.store(true, Ordering::Relaxed);
        let why = outcome(&mut reloads).unwrap_err().to_string();
        assert!(why.contains("sets nothing any more"), "{why}");
        set("eight");
        reloads.is_wanted.store(true, Ordering::Relaxed);
        assert_eq!(outcome(&mut reloads).unwrap(), "eight");
        fs::remove_file(&file).unwrap();
    }
}
