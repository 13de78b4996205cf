//! What the tests of every crate share: tests that a machine may be unable to run, waiting for an
//! event instead of for a fixed time, and where figures of time may be judged.

pub mod bytes;

use libtest_mimic::{Arguments, Failed, Trial};
use std::error::Error;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// What a test, or a step of one, results in.
pub type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

/// What tells a hang from a slow machine: only a test that fails waits so long.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// `tools/kernel-guest` sets it in its guests.
const GUEST: &str = "AIRMEND_GUEST";

/// Whether figures of time are the program's own: in a guest whose clock counts instructions. On
/// any other machine they are those of its load as well: there they are printed and not judged.
#[must_use]
pub fn has_steady_clock() -> bool {
    std::env::var_os(GUEST).is_some()
}

/// Why a test cannot run that only a guest can.
#[must_use]
pub fn lacks_guest() -> Option<String> {
    (!has_steady_clock()).then(|| format!("{GUEST} is not set"))
}

/// The tests of a file with `harness = false`.
#[derive(Default)]
pub struct Suite {
    trials: Vec<Trial>,
    /// Why tests are ignored, and which.
    ignored: Vec<(String, Vec<&'static str>)>,
}

impl Suite {
    /// Adds these tests, each with its name. `lacks` is what this machine lacks for them; they are
    /// ignored then.
    #[must_use]
    pub fn tests<T: Outcome, F: FnOnce() -> T + Send + 'static>(
        mut self,
        lacks: Option<&str>,
        tests: impl IntoIterator<Item = (&'static str, F)>,
    ) -> Self {
        for (name, test) in tests {
            // The harness tells of an error at the end only, far from what the test printed.
            let outcome = move || {
                test().outcome().inspect_err(|error| {
                    eprintln!("{name}: {}", error.message().unwrap_or("no reason"));
                })
            };
            let trial = Trial::test(name, outcome);
            self.trials.push(trial.with_ignored_flag(lacks.is_some()));
            if let Some(lacks) = lacks {
                self.ignore(name, lacks);
            }
        }
        self
    }

    fn ignore(&mut self, name: &'static str, why: &str) {
        match self.ignored.iter_mut().find(|(reason, _)| reason == why) {
            Some((_, names)) => names.push(name),
            None => self.ignored.push((why.to_owned(), vec![name])),
        }
    }

    /// Runs what the command line selects, on so many threads if it does not say, and prints on
    /// stderr why tests are ignored.
    #[must_use]
    pub fn run(self, threads: Option<usize>) -> ExitCode {
        let mut arguments = Arguments::from_args();
        arguments.test_threads = arguments.test_threads.or(threads);
        for (reason, names) in &self.ignored {
            let reason: Vec<&str> = reason.lines().map(str::trim).collect();
            eprintln!("tests are ignored: {} ({})", reason.join("; "), names.join(", "));
        }
        libtest_mimic::run(&arguments, self.trials).exit_code()
    }
}

/// What a test returns: nothing if it panics when it fails, or a result.
pub trait Outcome {
    /// The same for the harness.
    ///
    /// # Errors
    /// The test failed.
    fn outcome(self) -> std::result::Result<(), Failed>;
}

impl Outcome for () {
    fn outcome(self) -> std::result::Result<(), Failed> {
        Ok(())
    }
}

impl Outcome for Result {
    fn outcome(self) -> std::result::Result<(), Failed> {
        self.map_err(|error| error.to_string().into())
    }
}

/// Tries until there is a value, or for as long as [`PATIENCE`] lasts. Attempts, some of which
/// start a program, take a fifth of the time.
///
/// # Errors
/// There is none: a sentence with `what`.
pub fn until<T>(what: &str, mut attempt: impl FnMut() -> Option<T>) -> Result<T> {
    let begin = Instant::now();
    while begin.elapsed() < PATIENCE {
        let tried = Instant::now();
        if let Some(value) = attempt() {
            return Ok(value);
        }
        let [shortest, longest] = [5, 200].map(Duration::from_millis);
        std::thread::sleep((4 * tried.elapsed()).clamp(shortest, longest));
    }
    Err(format!("{what} did not happen").into())
}
