//! Each row of the tables in `docs/security.md` names what holds it: tests that are there, or why
//! there is none.

use super::{read, report, root, sources};
use std::fs;

const PAGE: &str = "docs/security.md";
/// The last column of a table whose rows are held by tests.
const COLUMN: &str = "test";
/// Instead of a test, before the reason.
const NONE: &str = "none: ";
/// Of the row before; it may be followed by more.
const SAME: &str = "the same";

#[test]
fn bounds_of_the_security_page_are_held_by_tests() {
    let (page, tree) = (read(PAGE), Tree::read());
    let rows: Vec<_> = rows(&page).collect();
    assert!(rows.len() >= 80, "{PAGE} has only {} rows with a test", rows.len());
    let problems = rows
        .iter()
        .filter_map(|(line, cell)| Some(format!("{PAGE}:{line}: {}", tree.problem(cell)?)));
    report(&problems.collect::<Vec<_>>());
}

/// The last cell of each row of a table whose last column is of tests, and the row's line.
fn rows(page: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_held = false;
    let mut last_was_row = false;
    page.lines().enumerate().filter_map(move |(number, line)| {
        let cell = line.strip_prefix('|').and_then(|line| line.strip_suffix('|'));
        let Some(cell) = cell.and_then(|row| row.rsplit('|').next()).map(str::trim) else {
            (is_held, last_was_row) = (false, false);
            return None;
        };
        if !std::mem::replace(&mut last_was_row, true) {
            is_held = cell == COLUMN;
            return None;
        }
        (is_held && !cell.starts_with("---")).then_some((number + 1, cell))
    })
}

/// What tests there are.
struct Tree {
    /// All sources that may have tests, one behind the other.
    texts: String,
    paths: Vec<String>,
}

impl Tree {
    fn read() -> Self {
        let (mut texts, mut paths) = (String::new(), Vec::new());
        for source in sources() {
            if source.is_rust() {
                texts.push_str(&source.text);
            }
            paths.push(source.path);
        }
        for entry in fs::read_dir(root().join("python/tests")).into_iter().flatten().flatten() {
            texts.push_str(&fs::read_to_string(entry.path()).unwrap_or_default());
        }
        Self { texts, paths }
    }

    /// What is wrong with a cell.
    fn problem(&self, cell: &str) -> Option<String> {
        if let Some(reason) = cell.strip_prefix(NONE) {
            return reason.is_empty().then(|| "no reason why there is no test".to_owned());
        }
        let names: Vec<_> = cell.split('`').skip(1).step_by(2).collect();
        if names.is_empty() && !cell.starts_with(SAME) {
            return Some(format!("`{cell}` names no test, and no reason as \"{NONE}...\""));
        }
        let missing = names.into_iter().find(|name| !self.has(name));
        missing.map(|name| format!("there is no test `{name}`"))
    }

    /// A test, a file of tests or a fuzz target, by its name; of scripts `*` is any part of it.
    fn has(&self, name: &str) -> bool {
        let is_path = |path: &String| match name.split_once('*') {
            Some((before, after)) => {
                let file = path.rsplit('/').next().unwrap_or(path);
                let rest = file.strip_prefix(before);
                rest.is_some_and(|rest| rest.contains(after.trim_matches('*')))
            }
            None if name.contains('.') => path.ends_with(name) && self.is_of_tests(path),
            None => *path == format!("fuzz/src/targets/{name}.rs"),
        };
        let is_declared = || {
            [format!("fn {name}("), format!("def {name}("), format!("(\"{name}\",")]
                .iter()
                .any(|declared| self.texts.contains(declared))
        };
        self.paths.iter().any(is_path) || is_declared()
    }

    fn is_of_tests(&self, path: &str) -> bool {
        let text = || fs::read_to_string(root().join(path)).unwrap_or_default();
        path.ends_with(".script") || path.contains("tests") || text().contains("#[test]")
    }
}

#[test]
fn a_bound_that_nothing_holds_is_told() {
    let page = "| what | test |\n|---|---|\n| a | `one` |\n| b | |\n\n\
                | constant | value |\n|---|---|\n| c | 3 |\n";
    let found: Vec<_> = rows(page).collect();
    assert_eq!(found, [(3, "`one`"), (4, "")]);
    let tree = Tree {
        texts: "fn one() {}\ndef test_two(a):\n(\"three\", three)".to_owned(),
        paths: ["fuzz/src/targets/wire.rs", "a/tests/s/x_of_a_stranger_y.script"]
            .map(str::to_owned)
            .to_vec(),
    };
    let held = [
        "`one`",
        "`test_two`, `three`",
        "the same",
        "none: a type",
        "fuzz target `wire`",
        "`x_of_a_stranger_y.script`",
        "scripts `*_of_a_stranger_*`",
    ];
    for held in held {
        assert_eq!(tree.problem(held), None, "{held}");
    }
    for unheld in ["", "its tests", "`four`", "`one`, `four`", "none: ", "`z.script`", "`on`"] {
        assert!(tree.problem(unheld).is_some(), "{unheld}");
    }
}
