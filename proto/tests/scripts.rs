//! Runs `scripts/<agent>/<behaviour>.script`: one test per file, named after it.

mod common;
mod script;

use libtest_mimic::{Arguments, Failed, Trial};
use script::{Script, run};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let mut trials = Vec::new();
    for folder in entries(&root) {
        let agent = file_name(&folder);
        for file in entries(&folder) {
            let name = format!("{agent}/{}", file_name(&file));
            let agent = agent.clone();
            trials.push(Trial::test(name, move || play(&agent, &file)));
        }
    }
    assert!(!trials.is_empty(), "no scripts under {}", root.display());
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn play(agent: &str, file: &Path) -> Result<(), Failed> {
    let text = fs::read_to_string(file)?;
    let place = |error: String| Failed::from(format!("{}:{error}", file.display()));
    let script = Script::parse(&text).map_err(place)?;
    let agent = common::agents::create(agent, &script.settings, script.limits)
        .map_err(|error| Failed::from(format!("{}: {error}", file.display())))?;
    run::run(&script, agent).map_err(place)
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("a readable folder").path()).collect();
    paths.sort();
    paths
}

fn file_name(path: &Path) -> String {
    path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned())
}
