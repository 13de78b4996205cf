//! Traces of runs on disk: compressed as each run ends, in the order of the runs.

use crate::batch::RunId;
use crate::outcome::Outcome;
use crate::results::trace_lines;
use crate::row;
use crate::scenario::Experiment;
use flate2::Compression;
use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::mem;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Writes the traces of an experiment's runs, gzip's JSON lines. What a run has noted is
/// compressed and given up when the run ends, on its own thread, and waits only for the runs before
/// it. A run notes at most two million points.
pub struct TraceWriter<'a, W> {
    name: &'a str,
    experiment: &'a Experiment,
    state: Mutex<State<W>>,
}

struct State<W> {
    out: W,
    /// The number of the run that is written next.
    next: usize,
    /// Compressed traces of later runs, by number.
    waiting: BTreeMap<usize, Vec<u8>>,
    result: io::Result<()>,
}

impl<'a, W: Write> TraceWriter<'a, W> {
    /// Writes the traces of this experiment to `out`; `name` is in each line.
    pub fn new(name: &'a str, experiment: &'a Experiment, out: W) -> Self {
        let state = State { out, next: 0, waiting: BTreeMap::new(), result: Ok(()) };
        Self { name, experiment, state: Mutex::new(state) }
    }

    /// Takes the trace out of the outcome of a run that has ended.
    pub fn take(&self, id: RunId, outcome: &mut Outcome) {
        let points = mem::take(&mut outcome.trace);
        let compressed = if points.is_empty() {
            Ok(Vec::new())
        } else {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
            trace_lines(self.name, self.experiment, id, &points)
                .try_for_each(|line| row::write(&mut encoder, &line))
                .and_then(|()| encoder.finish())
        };
        drop(points);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let number = id.point * self.experiment.runs as usize + id.repetition as usize;
        match compressed {
            Ok(compressed) => _ = state.waiting.insert(number, compressed),
            Err(error) => state.result = Err(error),
        }
        while let Some(next) = {
            let next = state.next;
            state.waiting.remove(&next)
        } {
            state.next += 1;
            if state.result.is_ok() {
                state.result = state.out.write_all(&next);
            }
        }
    }

    /// Returns what all has been written to.
    ///
    /// # Errors
    /// The first error of writing.
    pub fn finish(self) -> io::Result<W> {
        let State { mut out, result, .. } =
            self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        result.and_then(|()| out.flush())?;
        Ok(out)
    }
}

/// Opens a file of results, which is compressed if its name ends in `.gz`.
///
/// # Errors
/// Those of opening.
pub fn open_results(path: &Path) -> io::Result<Box<dyn BufRead>> {
    let file = BufReader::new(File::open(path)?);
    Ok(match path.extension() {
        Some(extension) if extension == "gz" => Box::new(BufReader::new(MultiGzDecoder::new(file))),
        _ => Box::new(file),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{TraceKind, TracePoint};
    use std::io::Read;

    const SCENARIO: &str = r#"
        title = "two runs"
        runs = 2
        time_limit = "1s"
        trace = true
        hosts = { a = { profile = "linux" }, b = { profile = "linux" } }
        links = { wire = { between = ["a", "b"], rate = "1mbit", delay = "1ms" } }
        flows = { file = { from = "a", to = "b" } }
    "#;

    #[test]
    fn traces_are_in_the_order_of_runs_whichever_ends_first() {
        let experiment = Experiment::parse("t".to_owned(), SCENARIO.to_owned(), &[]).unwrap();
        let written = |order: [u32; 2]| {
            let writer = TraceWriter::new("t", &experiment, Vec::new());
            for repetition in order {
                let kind = TraceKind::Data;
                let point = TracePoint { seconds: 0.5, offset: repetition.into(), kind };
                let mut outcome = Outcome { trace: vec![point; 1000], ..Outcome::default() };
                writer.take(experiment.run_id(0, repetition), &mut outcome);
                assert!(outcome.trace.is_empty());
            }
            writer.finish().unwrap()
        };
        let compressed = written([0, 1]);
        assert_eq!(compressed, written([1, 0]));
        let mut text = String::new();
        MultiGzDecoder::new(&compressed[..]).read_to_string(&mut text).unwrap();
        assert_eq!(text.lines().count(), 2000);
        assert!(text.len() > 50 * compressed.len(), "{} of {}", compressed.len(), text.len());
        let seeds: Vec<bool> = text.lines().map(|line| line.contains("\"seed\":2")).collect();
        assert!(seeds.is_sorted() && seeds[1000] && !seeds[999]);
    }
}
