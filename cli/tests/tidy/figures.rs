//! Documents show the figures that are recorded (docs/figures.md).

use super::root;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

#[test]
fn documents_have_the_figures_of_their_sources() {
    let (is_right, words) = figures(&root(), &["--check"]);
    assert!(is_right, "{words}");
}

#[test]
fn what_no_source_says_is_found() {
    let tree = Tree::new("figures-typed");
    let page = tree.0.join("docs/typed.md");
    let written = "<!-- figures:ping -->\n| loss | plain |\n|---|---|\n| 1 % | 18.9 |\n";
    fs::write(&page, format!("{written}<!-- /figures -->\n")).unwrap();
    assert!(tree.check().contains("docs/typed.md:1: ping is not what its source says"));
    fs::write(&page, "| loss | plain |\n|---|---|\n| 1 % | 18.9 |\n").unwrap();
    assert!(tree.check().contains("docs/typed.md:1: a table of figures without a source"));
    fs::write(&page, "<!-- figures:pong -->1<!-- /figures -->\n").unwrap();
    assert!(tree.check().contains("docs/typed.md:1: no source has a figure 'pong'"));
    for said in ["had 18.9 Mb/s", "lost 0.4 %", "had 18 ± 2"] {
        fs::write(&page, format!("Some text.\nIt {said} there.\n")).unwrap();
        assert!(tree.check().contains("docs/typed.md:2: a figure without a source"), "{said}");
        fs::write(tree.0.join("docs/lab-notes/typed.md"), format!("It {said} there.\n")).unwrap();
        fs::write(&page, format!("It says `{said}`, at 20 Mb/s and 5 %.\n")).unwrap();
        assert_eq!(tree.check(), "");
    }
    fs::write(&page, "<!-- figures: none, a format -->\n| a | b |\n|---|---|\n| x | 1 |\n")
        .unwrap();
    assert_eq!(tree.check(), "");
}

/// Results are stale when they are old and what they come from has changed; a check passes then.
#[test]
fn documents_say_what_is_stale() {
    let tree = Tree::new("figures-stale");
    let recorded = tree.0.join("figures/recorded/wifi-retries.jsonl");
    let text = fs::read_to_string(&recorded).unwrap();
    let caption = |day: &str| {
        let at = text.find("\"date\":\"").expect("the line tells the date") + 8;
        fs::write(&recorded, format!("{}{day}{}", &text[..at], &text[at + 10..])).unwrap();
        assert_eq!(figures(&tree.0, &[]), (true, String::new()));
        let page = fs::read_to_string(tree.0.join("docs/wifi.md")).unwrap();
        page.lines().find(|line| line.starts_with("*[wifi-retries]")).unwrap().to_owned()
    };
    // The copy lacks the agents, so they differ.
    assert!(!caption("2126-01-01").contains("Stale"));
    let stale = caption("2001-01-01");
    assert!(stale.contains("*Stale: changed since: ") && stale.contains("agents/snoop"), "{stale}");
    assert_eq!(tree.check(), "");
}

/// Runs `python3 -m figures` in a tree; whether it went well, and what it said.
fn figures(tree: &Path, flags: &[&str]) -> (bool, String) {
    let done =
        Command::new("python3").args(["-m", "figures"]).args(flags).current_dir(tree).output();
    let done = done.expect("python3 runs");
    let said = [done.stdout, done.stderr].concat();
    (done.status.success(), String::from_utf8_lossy(&said).into_owned())
}

/// A copy of the documents and their figures, gone with the test.
struct Tree(PathBuf);

impl Tree {
    fn new(name: &str) -> Self {
        let tree = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::remove_dir_all(&tree).ok();
        for folder in [
            "",
            "docs",
            "docs/lab-notes",
            "figures",
            "figures/tables",
            "figures/recorded",
            "experiments/modern",
            "experiments/validation",
            "experiments/lack",
        ] {
            fs::create_dir_all(tree.join(folder)).unwrap();
            let files =
                fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path());
            for file in files.filter(|file| file.is_file()) {
                fs::copy(&file, tree.join(folder).join(file.file_name().unwrap())).unwrap();
            }
        }
        Self(tree)
    }

    fn check(&self) -> String {
        figures(&self.0, &["--check"]).1
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}
