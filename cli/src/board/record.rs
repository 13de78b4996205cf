//! Records of boards: a JSON line for each cell and agent.

use super::figures::Figures;
use crate::row;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Reads a record; an error names the line.
pub(crate) fn read(path: &Path) -> Result<Vec<Figures>> {
    let name = path.display();
    let text = fs::read_to_string(path).with_context(|| format!("{name} cannot be read"))?;
    let lines = text.lines().enumerate().map(|(at, line)| {
        serde_json::from_str(line)
            .with_context(|| format!("{name}:{} is no line of a board", at + 1))
    });
    lines.collect()
}

/// Writes a record.
pub(crate) fn write(path: &Path, lines: &[Figures]) -> Result<()> {
    let name = path.display();
    if let Some(directory) = path.parent() {
        let describe = || format!("the directory {} cannot be made", directory.display());
        fs::create_dir_all(directory).with_context(describe)?;
    }
    let describe = || format!("{name} cannot be written");
    let mut file = BufWriter::new(fs::File::create(path).with_context(describe)?);
    for line in lines {
        row::write(&mut file, line).with_context(describe)?;
    }
    file.flush().with_context(describe)
}

/// The record `old` with these lines in the place of those of the same cells. Of the families in
/// `whole`, which ran with all their cells, nothing else is left.
pub(crate) fn merge(old: Vec<Figures>, new: &[Figures], whole: &[String]) -> Vec<Figures> {
    let kept = old.into_iter().filter(|line| !whole.contains(&line.family));
    let all = kept.chain(new.iter().cloned()).map(|line| {
        let (family, agent, cell) = line.key();
        ((family.to_owned(), agent.to_owned(), cell.to_owned()), line)
    });
    all.collect::<BTreeMap<_, _>>().into_values().collect()
}
