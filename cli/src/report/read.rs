//! Result files: JSON lines, taken as data. Lines that cannot be read are reported; all others are
//! kept.

use crate::plot::traces::Packet;
use crate::process::{BadUsage, files_below};
use crate::text;
use airmend_proto::outcome::TraceKind;
use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::fs;
use std::path::Path;

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
    /// Packets, each with the fields of its line.
    pub(super) trace: Vec<(Fields, Packet)>,
}

/// Reads every `*.jsonl` in `directory` and below.
pub(super) fn read(directory: &Path) -> Result<Results> {
    if !directory.is_dir() {
        let sentence = format!("{} is no directory of results", directory.display());
        return Err(BadUsage(sentence).into());
    }
    let files = files_below(directory, "jsonl")?;
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
        let bytes = fs::read(path).with_context(|| format!("{} cannot be read", path.display()))?;
        let name = path.strip_prefix(directory).unwrap_or(path).to_string_lossy();
        let stem = name.trim_end_matches(".jsonl").trim_end_matches(".trace").to_owned();
        let mut refused = Vec::new();
        for (number, line) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
            if line.trim_ascii().is_empty() {
                continue;
            }
            if let Err(why) = results.take(&stem, line) {
                refused.push(format!("{}:{number}: {why}; the line is left out", path.display()));
            }
        }
        results.refuse(path, refused);
    }
    Ok(results)
}

impl Results {
    fn take(&mut self, stem: &str, line: &[u8]) -> Result<(), String> {
        let fields: Fields = serde_json::from_slice(line).map_err(|error| {
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
            let trace = &mut self.experiment(stem, name).trace;
            trace.extend(packet.map(|packet| (fields, packet)));
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
