//! Results on disk: JSON lines, and a mark that identifies their scenario.

use crate::row::{self, Line};
use airmend_sim::{Experiment, TraceWriter};
use anyhow::{Context, Result};
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// The files of one experiment.
pub(crate) struct Store {
    results: PathBuf,
    key: String,
}

impl Store {
    /// The files of `experiment` below `directory`.
    pub(crate) fn new(directory: &Path, name: &str, experiment: &Experiment) -> Result<Self> {
        let mut hasher = DefaultHasher::new();
        program()?.hash(&mut hasher);
        experiment.fingerprint.hash(&mut hasher);
        let results = directory.join(format!("{name}.jsonl"));
        Ok(Self { results, key: format!("{:016x}\n", hasher.finish()) })
    }

    /// The file of results.
    pub(crate) fn results(&self) -> &Path {
        &self.results
    }

    /// The results, if they are of this very scenario with these settings by this program.
    pub(crate) fn read(&self) -> Result<Option<String>> {
        let describe = |path: &Path| format!("{} cannot be read", path.display());
        let mark = self.mark();
        match fs::read_to_string(&mark) {
            Ok(key) if key == self.key => {}
            Ok(_) => return Ok(None),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).with_context(|| describe(&mark)),
        }
        fs::read_to_string(&self.results).map(Some).with_context(|| describe(&self.results))
    }

    /// Gives up old results.
    pub(crate) fn begin(&self) -> Result<()> {
        if let Some(directory) = self.results.parent() {
            let describe = || format!("{} cannot be made", directory.display());
            fs::create_dir_all(directory).with_context(describe)?;
        }
        match fs::remove_file(self.mark()) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(error).context("old results cannot be replaced")
            }
            _ => Ok(()),
        }
    }

    /// What writes the traces, if the runs of the experiment have any.
    pub(crate) fn trace<'a>(
        &self,
        name: &'a str,
        experiment: &'a Experiment,
    ) -> Result<Option<TraceWriter<'a, File>>> {
        if !experiment.has_trace() {
            return Ok(None);
        }
        let path = self.results.with_extension("trace.jsonl.gz");
        let describe = || format!("{} cannot be written", path.display());
        let file = File::create(&path).with_context(describe)?;
        Ok(Some(TraceWriter::new(name, experiment, file)))
    }

    /// Writes the results. They count once they are [finished](Self::finish).
    pub(crate) fn write(&self, lines: &[Line]) -> Result<()> {
        write_lines(&self.results, lines)
    }

    /// Marks the results with their scenario, settings and program.
    pub(crate) fn finish(&self) -> Result<()> {
        let mark = self.mark();
        fs::write(&mark, &self.key).with_context(|| format!("{} cannot be written", mark.display()))
    }

    fn mark(&self) -> PathBuf {
        self.results.with_extension("key")
    }
}

fn write_lines(path: &Path, lines: &[Line]) -> Result<()> {
    let describe = || format!("{} cannot be written", path.display());
    let mut file = std::io::BufWriter::new(fs::File::create(path).with_context(describe)?);
    for line in lines {
        row::write(&mut file, line).with_context(describe)?;
    }
    file.flush().with_context(describe)
}

/// A hash of the program: results of another build are not reused.
fn program() -> Result<u64> {
    let read = || fs::read(std::env::current_exe()?);
    let mut hasher = DefaultHasher::new();
    read().context("the program cannot read itself")?.hash(&mut hasher);
    Ok(hasher.finish())
}
