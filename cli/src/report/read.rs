//! Result files: JSON lines, taken as data. Lines that cannot be read are reported; all others are
//! kept.

use crate::plot::traces::Packet;
use crate::process::{BadUsage, files_below};
use crate::text;
use airmend_proto::outcome::TraceKind;
use airmend_sim::open_results;
use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// The fields of one line.
pub(super) type Fields = Map<String, Value>;

/// All that a directory holds.
#[derive(Debug, Default)]
pub(super) struct Results {
    /// In the order of the files' names.
    pub(super) experiments: Vec<Experiment>,
    /// A sentence for each line that could not be read, with its file and its number.
    pub(super) problems: Vec<String>,
}

/// The lines of one experiment in one file; a trace is kept beside it.
#[derive(Debug, Default)]
pub(super) struct Experiment {
    /// The file, from the directory on and without its ending.
    pub(super) file: String,
    /// The name in its lines; lines of the laboratory have none.
    pub(super) name: Option<String>,
    /// One for each run.
    pub(super) runs: Vec<Fields>,
    /// One for each combination of settings.
    pub(super) summaries: Vec<Fields>,
    /// The packets of the first run of each combination of settings, with its other fields.
    pub(super) traces: Vec<(Fields, Vec<Packet>)>,
}

impl Experiment {
    /// The name, or the file.
    pub(super) fn title(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.file)
    }

    /// The packets of the run with these fields; `None` if it is not the first of its combination.
    fn trace(&mut self, run: Fields) -> Option<&mut Vec<Packet>> {
        if self.traces.first().is_some_and(|(first, _)| first.get("seed") != run.get("seed")) {
            return None;
        }
        // The packets of a run stand together.
        let place = self.traces.iter().rposition(|(known, _)| *known == run);
        let place = place.unwrap_or(self.traces.len());
        if place == self.traces.len() {
            self.traces.push((run, Vec::new()));
        }
        Some(&mut self.traces[place].1)
    }
}

/// Reads every `*.jsonl` and `*.jsonl.gz` in `directory` and below.
pub(super) fn read(directory: &Path) -> Result<Results> {
    if !directory.is_dir() {
        let sentence = format!("{} is no directory of results", directory.display());
        return Err(BadUsage(sentence).into());
    }
    let mut files = files_below(directory, "jsonl")?;
    let is_results = |path: &PathBuf| path.to_string_lossy().ends_with(".jsonl.gz");
    files.extend(files_below(directory, "gz")?.into_iter().filter(is_results));
    if files.is_empty() {
        let sentence = format!(
            "{} holds no results (*.jsonl): make some with airmend sim run or with airmend lab \
             compare --json",
            directory.display()
        );
        return Err(BadUsage(sentence).into());
    }
    let mut results = Results::default();
    for path in &files {
        let describe = || format!("{} cannot be read", path.display());
        let mut file = open_results(path).with_context(describe)?;
        let name = path.strip_prefix(directory).unwrap_or(path).to_string_lossy();
        let stem = name.trim_end_matches(".gz").trim_end_matches(".jsonl");
        let stem = stem.trim_end_matches(".trace").to_owned();
        let (mut refused, mut line) = (Vec::new(), Vec::new());
        for number in 1.. {
            line.clear();
            if file.read_until(b'\n', &mut line).with_context(describe)? == 0 {
                break;
            }
            if line.trim_ascii().is_empty() {
                continue;
            }
            if let Err(why) = results.take(&stem, &line) {
                refused.push(format!("{}:{number}: {why}; the line is left out", path.display()));
            }
        }
        results.refuse(path, refused);
    }
    Ok(results)
}

impl Results {
    fn take(&mut self, stem: &str, line: &[u8]) -> Result<(), String> {
        let mut fields: Fields = serde_json::from_slice(line).map_err(|error| {
            let kind =
                if error.is_eof() { "the line is cut off" } else { "this is no JSON object" };
            format!("{kind} (column {})", error.column())
        })?;
        in_range(&fields)?;
        let name = fields.get("experiment").and_then(Value::as_str).map(str::to_owned);
        if fields.get("summary") == Some(&Value::Bool(true)) {
            number_at_least_0(&fields, "runs")?;
            self.experiment(stem, name).summaries.push(fields);
        } else if fields.contains_key("kind") {
            let packet = packet(&fields)?;
            if let Some(packet) = packet {
                ["seconds", "offset", "kind"].iter().for_each(|name| _ = fields.remove(*name));
                if let Some(trace) = self.experiment(stem, name).trace(fields) {
                    trace.push(packet);
                }
            }
        } else {
            number_at_least_0(&fields, "goodput_bps")?;
            self.experiment(stem, name).runs.push(fields);
        }
        Ok(())
    }

    /// The experiment of this file and name, a new one if need be.
    fn experiment(&mut self, file: &str, name: Option<String>) -> &mut Experiment {
        let is_it = |known: &Experiment| known.file == file && known.name == name;
        let place = self.experiments.iter().position(is_it).unwrap_or(self.experiments.len());
        if place == self.experiments.len() {
            self.experiments.push(Experiment {
                file: file.to_owned(),
                name,
                ..Experiment::default()
            });
        }
        &mut self.experiments[place]
    }

    /// Keeps the first problems of a file by their words, and the others by their number.
    fn refuse(&mut self, path: &Path, mut refused: Vec<String>) {
        let more = refused.len().saturating_sub(WORDS);
        refused.truncate(WORDS);
        self.problems.append(&mut refused);
        if more > 0 {
            let lines = text::counted(more as u64, "further line");
            let sentence = format!("{}: {lines} could not be read either", path.display());
            self.problems.push(sentence);
        }
    }
}

/// No quantity of a network is so large or so small, and no axis could show it.
fn in_range(fields: &Fields) -> Result<(), String> {
    for (name, value) in fields.iter().filter(|(name, _)| *name != "seed") {
        if let Value::Object(inner) = value {
            in_range(inner)?;
        }
        let size = value.as_f64().unwrap_or(0.0).abs();
        if size > 1e15 || (size > 0.0 && size < 1e-15) {
            return Err(format!("{name} must be 0 or a number from 1e-15 to 1e15"));
        }
    }
    Ok(())
}

fn number_at_least_0(fields: &Fields, name: &str) -> Result<f64, String> {
    match fields.get(name).map(Value::as_f64) {
        Some(Some(number)) if number >= 0.0 => Ok(number),
        Some(_) => Err(format!("{name} must be a number of at least 0")),
        None => Err(format!("this is neither a run nor a summary nor a packet: no {name}")),
    }
}

/// A point of a trace; none of an ACK, which no picture of several runs has room for.
fn packet(fields: &Fields) -> Result<Option<Packet>, String> {
    let seconds = number_at_least_0(fields, "seconds")?;
    let offset = number_at_least_0(fields, "offset")?;
    let kind = fields.get("kind").unwrap_or(&Value::Null);
    let kind = TraceKind::deserialize(kind).map_err(|_| {
        "kind must be one of data, local_retransmit, sender_retransmit, ack, window, received, \
         timeout, cached"
            .to_owned()
    })?;
    Ok((kind != TraceKind::Ack).then_some(Packet { seconds, offset, kind }))
}

/// The number of problems of a file that are described one by one.
const WORDS: usize = 3;
