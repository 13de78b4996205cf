//! `airmend report`: results as one page and a picture for each experiment.

mod command;
mod figure;
mod page;
mod published;
mod quantity;
mod read;
mod reading;
mod section;

use anyhow::{Context, Result, bail};
use clap::Args;
use page::Part;
use section::Section;
use serde_json::Value;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// `airmend report`.
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Directory of results: JSON lines of airmend sim run, or of airmend lab compare --json.
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Directory of the page and its pictures.
    #[arg(long, value_name = "DIR", default_value = "out/report")]
    out: PathBuf,
}

/// Reads the results and writes `index.html` and the pictures.
pub(crate) fn report(args: &ReportArgs) -> Result<()> {
    let results = read::read(&args.directory)?;
    let mut parts: Vec<Part> = Vec::new();
    for experiment in &results.experiments {
        let known = published::known(experiment.title())?;
        let Some(section) = Section::new(experiment, known.along.as_ref()) else { continue };
        let lines = experiment.runs.iter().chain(&experiment.summaries);
        let seed = lines.filter_map(|line| line.get("seed").and_then(Value::as_u64)).min();
        let svg = figure::svg(&section, &known)?;
        let over_time = figure::over_time(&section, &known)?;
        let slug = slug(&section.name, &parts);
        parts.push(Part { section, known, svg, over_time, slug, seed });
    }
    for problem in &results.problems {
        crate::process::complain(problem);
    }
    if parts.is_empty() {
        bail!("{} holds no run and no summary that can be read", args.directory.display());
    }
    fs::create_dir_all(&args.out)
        .with_context(|| format!("{} cannot be made", args.out.display()))?;
    for part in &parts {
        for (name, svg) in part.pictures() {
            write(&args.out.join(name), svg)?;
        }
    }
    let index = args.out.join("index.html");
    write(&index, &page::page(&parts, &results.problems))?;
    writeln!(io::stdout().lock(), "{}", index.display())?;
    Ok(())
}

fn write(path: &Path, content: &str) -> Result<()> {
    fs::write(path, content).with_context(|| format!("{} cannot be written", path.display()))
}

/// A file name for an experiment that no part before it has.
fn slug(name: &str, parts: &[Part]) -> String {
    let slug = page::plain_name(name);
    let is_free = |slug: &String| parts.iter().all(|part| part.slug != *slug);
    let numbered = (2..).map(|number| format!("{slug}-{number}"));
    std::iter::once(slug.clone()).chain(numbered).find(is_free).unwrap_or(slug)
}
