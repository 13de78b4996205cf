//! The tree keeps its own rules: small files and functions, no unfinished work, no files that
//! import each other, and a ledger of paper citations (`docs/conformance.md`) that agrees with the
//! code. Each checker is also tested on text that it must refuse.

mod constants;
mod figures;
mod held;
mod imports;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const FILE_LINES: usize = 500;
const TEST_FILE_LINES: usize = 700;
const FUNCTION_LINES: usize = 70;
const COLUMNS: usize = 100;
const UNSAFE_DIRECTORY: &str = "live/src/sys/";
const LEDGER: &str = "docs/conformance.md";
const PAPERS: &str = "docs/papers.md";

#[test]
fn sources_keep_the_style() {
    let mut problems = Vec::new();
    for source in sources() {
        check_style(&source, &mut problems);
    }
    report(&problems);
}

#[test]
fn citations_and_the_ledger_agree() {
    let ledger = read(LEDGER);
    let rows = ledger_rows(&ledger);
    assert!(rows.len() >= 30, "{LEDGER} has only {} rows: was its table renamed?", rows.len());
    let papers = read(PAPERS);
    let keys = citation_keys(&papers);
    assert!(!keys.is_empty(), "{PAPERS} names no citation key in the form | `key` |");

    let mut problems = Vec::new();
    for source in sources() {
        check_citations(&source, &rows, &keys, &mut problems);
    }
    for row in &rows {
        check_row(row, read_ledger_path, &mut problems);
    }
    report(&problems);
}

/// One file of the tree, by its path from the root.
struct Source {
    path: String,
    text: String,
}

impl Source {
    fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    fn is_test(&self) -> bool {
        self.path.ends_with("/tests.rs") || self.path.contains("/tests/")
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// A file that the ledger names: from the root, or from one of the two folders it is mostly about.
fn read_ledger_path(path: &str) -> Option<String> {
    ["", "proto/src/agents", "proto/tests/scripts"]
        .iter()
        .find_map(|folder| fs::read_to_string(root().join(folder).join(path)).ok())
}

/// Every source file that git tracks; without git (an unpacked archive), every one there is.
fn sources() -> Vec<Source> {
    let listed = Command::new("git").args(["ls-files"]).current_dir(root()).output();
    let mut paths: Vec<String> = match listed {
        Ok(output) if output.status.success() && !output.stdout.is_empty() => {
            String::from_utf8_lossy(&output.stdout).lines().map(String::from).collect()
        }
        _ => {
            let mut found = Vec::new();
            walk(&root(), "", &mut found);
            found
        }
    };
    paths.retain(|path| is_source(path) && root().join(path).is_file());
    assert!(paths.len() >= 20, "found only {} source files: was the tree moved?", paths.len());
    paths.into_iter().map(|path| Source { text: read(&path), path }).collect()
}

fn is_source(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    match name.rsplit_once('.') {
        Some((_, extension)) => matches!(extension, "rs" | "c" | "h" | "sh" | "script"),
        None => name == "Makefile" || path.starts_with("tools/") || path.starts_with(".ci/"),
    }
}

fn walk(directory: &Path, prefix: &str, found: &mut Vec<String>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.path().is_file() {
            found.push(path);
        } else if !matches!(path.as_str(), ".git" | "target" | "out") {
            walk(&entry.path(), &format!("{path}/"), found);
        }
    }
}

fn report(problems: &[String]) {
    assert!(problems.is_empty(), "{} to tidy:\n{}", problems.len(), problems.join("\n"));
}

fn check_style(source: &Source, problems: &mut Vec<String>) {
    let Source { path, text } = source;
    let limit = if source.is_test() { TEST_FILE_LINES } else { FILE_LINES };
    let lines = text.lines().count();
    if lines > limit {
        problems.push(format!("{path}:{lines}: a file has at most {limit} lines: split it"));
    }
    for (number, line) in (1..).zip(text.lines()) {
        let columns = line.chars().count();
        if columns > COLUMNS && !line.contains("://") {
            problems.push(format!("{path}:{number}: {columns} columns; at most {COLUMNS}"));
        }
        if source.is_rust() && line.contains('\t') {
            problems.push(format!("{path}:{number}: a tab; Rust is indented with spaces"));
        }
        // Split, so that this line does not find itself.
        for mark in [concat!("FIX", "ME"), concat!("X", "XX")] {
            if words(line).any(|word| word == mark) {
                problems.push(format!("{path}:{number}: {mark}: finish it or file an issue"));
            }
        }
    }
    if source.is_rust() {
        check_rust(path, &code_only(text), problems);
    }
}

/// `code` is Rust without comments and literals.
fn check_rust(path: &str, code: &str, problems: &mut Vec<String>) {
    for (number, line) in (1..).zip(code.lines()) {
        for unfinished in ["todo!", "unimplemented!", "dbg!", "#[ignore"] {
            if line.contains(unfinished) {
                problems.push(format!("{path}:{number}: {unfinished} does not belong in the tree"));
            }
        }
        if !path.starts_with(UNSAFE_DIRECTORY) && words(line).any(|word| word == "unsafe") {
            problems.push(format!("{path}:{number}: unsafe code lives in {UNSAFE_DIRECTORY} only"));
        }
    }
    for (line, length) in functions(code) {
        if length > FUNCTION_LINES {
            problems.push(format!(
                "{path}:{line}: a function of {length} lines; at most {FUNCTION_LINES}: split it"
            ));
        }
    }
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_alphanumeric() && c != '_')
}

/// Rust with comments and the contents of literals blanked, line by line the same.
fn code_only(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let blank = blank_length(rest, code.chars().next_back());
        if blank == 0 {
            code.push(first);
            rest = &rest[first.len_utf8()..];
        } else {
            code.push(' ');
            code.extend(rest[..blank].chars().filter(|&c| c == '\n'));
            rest = &rest[blank..];
        }
    }
    code
}

/// How many bytes at the start of `rest` are one comment or one literal.
fn blank_length(rest: &str, previous: Option<char>) -> usize {
    let until = |end: &str, from: usize| {
        rest[from..].find(end).map_or(rest.len(), |at| from + at + end.len())
    };
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    if rest.starts_with("/*") {
        return until("*/", 2);
    }
    let in_word = previous.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let raw = rest.trim_start_matches('b').strip_prefix('r').filter(|_| !in_word);
    if let Some(raw) = raw {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        if raw[hashes..].starts_with('"') {
            return until(
                &format!("\"{}", "#".repeat(hashes)),
                rest.len() - raw.len() + hashes + 1,
            );
        }
    }
    match rest.as_bytes() {
        [b'"', ..] => quoted_length(rest, b'"'),
        // A lifetime has no closing quote right after its first character.
        [b'\'', b'\\', ..] => quoted_length(rest, b'\''),
        [b'\'', ..] if rest.chars().nth(2) == Some('\'') => quoted_length(rest, b'\''),
        _ => 0,
    }
}

fn quoted_length(rest: &str, quote: u8) -> usize {
    let mut escaped = false;
    for (at, byte) in rest.bytes().enumerate().skip(1) {
        if byte == quote && !escaped {
            return at + 1;
        }
        escaped = byte == b'\\' && !escaped;
    }
    rest.len()
}

/// The first line and the number of lines of each function with a body.
fn functions(code: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        let starts_word = !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let named = code[at + 3..].starts_with(|c: char| c.is_alphabetic() || c == '_');
        if let (true, true, Some(end)) = (starts_word, named, body_end(&code[at..])) {
            let first = code[..at].matches('\n').count() + 1;
            found.push((first, code[at..at + end].matches('\n').count() + 1));
        }
    }
    found
}

/// Where the braces of the function that `code` starts with are closed; none for a declaration.
fn body_end(code: &str) -> Option<usize> {
    let (mut braces, mut brackets) = (0, 0);
    for (at, byte) in code.bytes().enumerate() {
        match byte {
            b'(' | b'[' => brackets += 1,
            b')' | b']' => brackets -= 1,
            b'{' => braces += 1,
            b'}' => braces -= 1,
            b';' if braces == 0 && brackets == 0 => return None,
            _ => continue,
        }
        if byte == b'}' && braces == 0 && brackets == 0 {
            return Some(at);
        }
    }
    None
}

/// One line of the ledger: | id | what | where | test | reading |.
struct Row {
    line: usize,
    id: String,
    place: String,
    test: String,
}

fn ledger_rows(ledger: &str) -> Vec<Row> {
    (1..)
        .zip(ledger.lines())
        .filter_map(|(line, text)| {
            let cells: Vec<&str> = text.split('|').map(str::trim).collect();
            match cells[..] {
                ["", id, _, place, test, _, ""] if paper_ids(id) == [id] => {
                    Some(Row { line, id: id.into(), place: place.into(), test: test.into() })
                }
                _ => None,
            }
        })
        .collect()
}

/// Requirement ids such as S0-12 of the papers, or C-7 of today's TCP, in a text, in order.
fn paper_ids(text: &str) -> Vec<&str> {
    let in_id = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    text.split(|c| !in_id(c))
        .filter(|word| match word.as_bytes() {
            [b'S', b'0'..=b'3', b'-', rest @ ..] => {
                (2..=3).contains(&rest.len()) && rest.last().is_some_and(u8::is_ascii_digit)
            }
            [b'C', b'-', rest @ ..] => {
                (1..=2).contains(&rest.len()) && rest.iter().all(u8::is_ascii_digit)
            }
            _ => false,
        })
        .collect()
}

/// The keys of `docs/papers.md`: the first cell of each row, in back quotes.
fn citation_keys(papers: &str) -> BTreeSet<&str> {
    papers.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect()
}

fn check_citations(
    source: &Source,
    rows: &[Row],
    keys: &BTreeSet<&str>,
    problems: &mut Vec<String>,
) {
    let path = &source.path;
    if path == "cli/tests/tidy/main.rs" {
        return;
    }
    for (number, line) in (1..).zip(source.text.lines()) {
        for id in paper_ids(line) {
            if !rows.iter().any(|row| row.id == id) {
                problems.push(format!("{path}:{number}: {id} has no row in {LEDGER}"));
            }
        }
        for (at, _) in line.match_indices(" §") {
            let Some((_, key)) = line[..at].rsplit_once('[') else { continue };
            let is_key = key.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
            if is_key && !keys.contains(key) {
                problems.push(format!("{path}:{number}: [{key}] is not a key of {PAPERS}"));
            }
        }
    }
}

/// A row claims an implementation when it names a file; then it also names a test that cites it.
fn check_row(row: &Row, read: impl Fn(&str) -> Option<String>, problems: &mut Vec<String>) {
    let Row { line, id, place, test } = row;
    if place.is_empty() {
        problems.push(format!("{LEDGER}:{line}: {id} says neither where nor why not yet"));
    }
    let (places, tests) = (quoted(place), quoted(test));
    if !places.is_empty() && tests.is_empty() {
        problems.push(format!("{LEDGER}:{line}: {id} is implemented but names no test"));
    }
    for path in places.into_iter().chain(tests.iter().copied()) {
        let cites = match read(path) {
            None => {
                problems.push(format!("{LEDGER}:{line}: {id} names {path}, which is no file"));
                continue;
            }
            Some(text) => paper_ids(&text).contains(&id.as_str()),
        };
        if !cites && tests.contains(&path) {
            problems
                .push(format!("{LEDGER}:{line}: {path} is a test of {id} but does not cite it"));
        }
    }
}

/// The parts of a cell in back quotes.
fn quoted(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

#[cfg(test)]
mod checkers {
    use super::*;

    fn style_problems(path: &str, text: &str) -> Vec<String> {
        let mut problems = Vec::new();
        check_style(&Source { path: path.into(), text: text.into() }, &mut problems);
        problems
    }

    #[track_caller]
    fn assert_refused(path: &str, text: &str, message: &str) {
        let problems = style_problems(path, text);
        assert!(problems.iter().any(|p| p.contains(message)), "{text:.60}: {problems:?}");
    }

    #[test]
    fn style_refuses_what_it_must() {
        let body = |lines: usize| format!("fn f() {{\n{}}}\n", "    work();\n".repeat(lines - 2));
        assert_refused("a.rs", &body(71), "a.rs:1: a function of 71 lines");
        assert_refused("a.rs", &"// long\n".repeat(501), "a.rs:501: a file");
        assert_refused("a/tests.rs", &"// long\n".repeat(701), "tests.rs:701: a file");
        assert_refused("a.rs", &"x".repeat(101), "a.rs:1: 101 columns");
        assert_refused("a.rs", "\n\tx", "a.rs:2: a tab");
        assert_refused("a.c", concat!("// FIX", "ME: later"), "a.c:1");
        assert_refused("a.rs", "fn f() {\n    todo!()\n}", "a.rs:2: todo!");
        assert_refused("a.rs", "#[ignore = \"slow\"]", "#[ignore");
        assert_refused("a.rs", "let x = unsafe { y() };", "a.rs:1: unsafe");
        assert_refused("a.rs", "let quote = '\"'; unsafe { y() }", "unsafe");
    }

    #[test]
    fn style_accepts_what_it_must() {
        let body = format!("fn f() {{\n{}}}\n", "    work();\n".repeat(68));
        for text in [
            &body,
            &format!("// https://{}", "x".repeat(100)),
            "#![forbid(unsafe_code)] // no unsafe here",
            "let s = \"unsafe { \\\" todo!\"; let r = r#\"a \" dbg!\"#;",
            "trait T { fn f(&self, key: [u8; 4]); }",
        ] {
            assert_eq!(style_problems("a.rs", text), [""; 0], "{text:.60}");
        }
        assert_eq!(style_problems("live/src/sys/mod.rs", "unsafe { read() }"), [""; 0]);
        assert_eq!(style_problems("a/tests.rs", &"// long\n".repeat(700)), [""; 0]);
    }

    #[test]
    fn functions_are_measured_without_literals_and_comments() {
        let code = "fn a<'x>() {\n  let c = '{';\n  // {\n  \"{\n{\";\n}\nfn b() {}\n";
        assert_eq!(functions(&code_only(code)), [(1, 6), (7, 1)]);
        assert_eq!(functions("fn f(x: [u8; 2]) -> [u8; 2];\nfn g() {\n}"), [(2, 2)]);
        assert_eq!(functions("type F = fn (u8); mod fn_ {}"), []);
    }

    #[test]
    fn a_citation_needs_a_key_and_a_row() {
        let rows = ledger_rows("| S0-01 | what | `a.rs` | `t.rs` | |\n| S0-02 | what |\n");
        assert_eq!(rows.len(), 1, "a row has five cells");
        let keys = citation_keys("| `snoop95` | Balakrishnan |\n");
        let problems = |text: &str| {
            let mut problems = Vec::new();
            let source = Source { path: "a.rs".into(), text: text.into() };
            check_citations(&source, &rows, &keys, &mut problems);
            problems
        };
        assert_eq!(problems("// S0-01 [snoop95 §3.1] RFC 6675 §2, [see RFC 1 §2]"), [""; 0]);
        assert_eq!(problems("// [C-7]"), ["a.rs:1: C-7 has no row in docs/conformance.md"]);
        assert_eq!(problems("// C-x, AC-7, C-123 and C-"), [""; 0]);
        assert_eq!(problems("\n// S0-02"), ["a.rs:2: S0-02 has no row in docs/conformance.md"]);
        assert_eq!(problems("// [snop95 §3]"), ["a.rs:1: [snop95] is not a key of docs/papers.md"]);
    }

    #[test]
    fn a_row_that_claims_must_prove() {
        let refused = |row: &str| {
            let mut problems = Vec::new();
            let read = |path: &str| (path == "t.rs").then(|| "// S0-01, XS0-02, S0-033".into());
            for row in ledger_rows(row) {
                check_row(&row, read, &mut problems);
            }
            problems.join("; ")
        };
        assert_eq!(refused("| S0-01 | w | `t.rs` | `t.rs` | |"), "");
        assert_eq!(refused("| S0-02 | w | not yet | | |"), "");
        assert!(refused("| S0-02 | w | | | |").contains("neither where"));
        assert!(refused("| S0-01 | w | `t.rs` | | |").contains("names no test"));
        assert!(refused("| S0-01 | w | `gone.rs` | `t.rs` | |").contains("no file"));
        assert!(refused("| S0-02 | w | `t.rs` | `t.rs` | |").contains("does not cite it"));
    }
}
