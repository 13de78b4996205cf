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
    let mut trials = vec![
        Trial::test("a_wrong_line_is_named", a_wrong_line_is_named),
        Trial::test("each_decision_has_a_script", each_decision_has_a_script),
    ];
    for folder in entries(&root) {
        let agent = file_name(&folder);
        for file in entries(&folder) {
            let name = format!("{agent}/{}", file_name(&file));
            let agent = agent.clone();
            trials.push(Trial::test(name, move || play(&agent, &file)));
        }
    }
    assert!(trials.len() > 1, "no scripts under {}", root.display());
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// Of each decision of `snoop`, one script says that it was made.
fn each_decision_has_a_script() -> Result<(), Failed> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let source = fs::read_to_string(root.join("src/agents/snoop/decision.rs"))?;
    let folders = ["tests/scripts/snoop", "tests/scripts/snoop-nosuppress"];
    let scripts = folders.iter().flat_map(|folder| entries(&root.join(folder)));
    let scripts: String = scripts.filter_map(|file| fs::read_to_string(file).ok()).collect();
    let names = source.split('"').filter(|text| {
        let prefixes = ["left_", "masked_", "shown_"];
        prefixes.iter().any(|prefix| text.starts_with(prefix))
    });
    let missing: Vec<_> = names
        .filter(|name| {
            let made = |line: &str| {
                let count = line.split_once(&format!("event {name} ")).map(|(_, count)| count);
                count.is_some_and(|count| count.trim() != "0")
            };
            !scripts.lines().any(made)
        })
        .collect();
    if missing.is_empty() { Ok(()) } else { Err(format!("no script has {missing:?}").into()) }
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

/// Every refusal begins with the number of the line, here the second, and quotes what is wrong.
fn a_wrong_line_is_named() -> Result<(), Failed> {
    let wrong = [
        ("+0 air > . 1:1001(100) ack 1", "1:1001(100)"),
        ("+0 air > . 1:101(100)", "`.`"),
        ("+0 air > X 1:101(100)", "`X`"),
        ("+0 ether > . 1:101(100) ack 1", "`ether`"),
        ("+0 air < . 1:1(0) ack 1 <mss>", "`mss`"),
        ("+0 air < udp", "`udp`"),
        ("+soon silence", "`soon`"),
        ("+0 quiet", "`quiet`"),
        ("+.1~+.2 silence", "that leaves only"),
        ("+0 air < edits 1:1(0) ack 1", "`e`"),
        ("set persist_timeout 1s", "after the first timed line"),
    ];
    for (line, quoted) in wrong {
        let error = Script::parse(&format!("+0 silence\n{line}\n")).err().unwrap_or_default();
        if !error.starts_with("2: ") || !error.contains(quoted) {
            return Err(format!("`{line}` is refused with {error:?}").into());
        }
    }
    Ok(())
}
