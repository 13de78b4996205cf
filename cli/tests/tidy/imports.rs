//! No two files of a crate import each other, directly or through others. The imports are read
//! from the sources: `use` declarations, and paths in the code that begin with `crate`, `super`,
//! `self`, a child module or an imported module. A path leads to the file that defines the item,
//! even if another file re-exports it. Modules under `#[cfg(test)]` are ignored.

use super::{Source, code_only, report, sources};
use std::collections::{BTreeMap, BTreeSet};

const CRATES: [&str; 4] = ["proto/src/", "sim/src/", "live/src/", "cli/src/"];

#[test]
fn no_files_import_each_other() {
    let sources = sources();
    let problems = CRATES.iter().flat_map(|root| {
        let circles = circles(&imports(&modules(root, &sources)));
        circles.iter().map(|files| sentence(files)).collect::<Vec<_>>()
    });
    report(&problems.collect::<Vec<_>>());
}

fn sentence(circle: &[&str]) -> String {
    format!("{} files import each other in a circle: {}", circle.len(), circle.join(", "))
}

/// The path of a module, or of an item, segment by segment.
type Path = Vec<String>;

/// One file of a crate.
struct Module<'a> {
    file: &'a str,
    /// The source without comments, literals, test modules and `use` declarations.
    code: String,
    uses: Vec<Use>,
}

/// A name that a `use` declaration brings into a module.
#[derive(Debug, PartialEq)]
struct Use {
    name: String,
    path: Path,
    is_public: bool,
}

type Modules<'a> = BTreeMap<Path, Module<'a>>;

fn modules<'a>(root: &str, sources: &'a [Source]) -> Modules<'a> {
    let mut modules = Modules::new();
    for source in sources.iter().filter(|s| s.is_rust() && !s.is_test()) {
        let Some(below) = source.path.strip_prefix(root) else { continue };
        let mut path: Path = below.trim_end_matches(".rs").split('/').map(String::from).collect();
        path.pop_if(|last| matches!(last.as_str(), "mod" | "lib" | "main"));
        let (code, uses) = split_uses(&without_test_modules(&code_only(&source.text)));
        modules.insert(path, Module { file: &source.path, code, uses });
    }
    modules
}

/// For each file the files that it imports from.
fn imports<'a>(modules: &Modules<'a>) -> BTreeMap<&'a str, BTreeSet<&'a str>> {
    let mut imports = BTreeMap::new();
    for (at, module) in modules {
        // A re-export is no import, and what is used of an imported module is seen in the code.
        let uses = module.uses.iter().filter(|u| !u.is_public || has_word(&module.code, &u.name));
        let paths = uses.map(|u| u.path.clone()).chain(paths_in(&module.code));
        let found = paths.filter_map(|path| resolve(modules, at, &path));
        let items = found.filter(|(_, is_module)| !is_module);
        let mut files: BTreeSet<&str> = items.map(|(home, _)| modules[&home].file).collect();
        files.remove(module.file);
        imports.insert(module.file, files);
    }
    imports
}

/// The module that defines what `path` names in the module `at`, and whether the path names the
/// module itself; none for what another crate defines.
fn resolve(modules: &Modules<'_>, at: &Path, path: &[String]) -> Option<(Path, bool)> {
    let (first, rest) = path.split_first()?;
    match first.as_str() {
        "crate" => walk(modules, Path::new(), rest),
        "self" => walk(modules, at.clone(), rest),
        "super" => walk(modules, at.clone(), path),
        _ => {
            let is_child = modules.contains_key(&below(at, first));
            let is_used = |u: &Use| u.name == *first && u.path.first() != Some(first);
            let is_known = is_child || modules.get(at)?.uses.iter().any(is_used);
            if is_known { walk(modules, at.clone(), path) } else { None }
        }
    }
}

/// Follows `path` from the module `here`.
fn walk(modules: &Modules<'_>, mut here: Path, path: &[String]) -> Option<(Path, bool)> {
    let Some((first, rest)) = path.split_first() else { return Some((here, true)) };
    if first == "super" {
        here.pop()?;
        return walk(modules, here, rest);
    }
    let child = below(&here, first);
    if modules.contains_key(&child) {
        return walk(modules, child, rest);
    }
    match modules.get(&here)?.uses.iter().find(|u| u.name == *first) {
        None => Some((here, false)),
        Some(used) => match resolve(modules, &here, &used.path)? {
            (module, true) => walk(modules, module, rest),
            item => Some(item),
        },
    }
}

fn below(module: &Path, name: &str) -> Path {
    module.iter().cloned().chain([name.to_owned()]).collect()
}

/// Each set of files that reach each other through imports.
fn circles<'a>(imports: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> Vec<Vec<&'a str>> {
    let reached = |from: &'a str| {
        let mut reached = BTreeSet::new();
        let mut left = vec![from];
        while let Some(file) = left.pop() {
            left.extend(imports[file].iter().filter(|&&next| reached.insert(next)));
        }
        reached
    };
    let reach: BTreeMap<&str, BTreeSet<&str>> =
        imports.keys().map(|&file| (file, reached(file))).collect();
    let circle = |file| {
        let both = |other: &&&str| reach[**other].contains(file);
        reach[file].iter().filter(both).copied().collect::<Vec<&str>>()
    };
    let all: BTreeSet<Vec<&str>> = imports.keys().map(|&file| circle(file)).collect();
    all.into_iter().filter(|circle| circle.len() > 1).collect()
}

fn without_test_modules(code: &str) -> String {
    let mut kept = String::new();
    let mut rest = code;
    while let Some((before, after)) = rest.split_once("#[cfg(test)]") {
        kept.push_str(before);
        let end = super::body_end(after).or_else(|| after.find(';')).map_or(after.len(), |e| e + 1);
        rest = &after[end..];
    }
    kept + rest
}

/// The code without its `use` declarations, and what they bring.
fn split_uses(code: &str) -> (String, Vec<Use>) {
    let (mut kept, mut uses) = (String::new(), Vec::new());
    let mut rest = code;
    while let Some(at) = rest
        .match_indices("use ")
        .map(|(at, _)| at)
        .find(|&at| !rest[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_'))
    {
        let end = rest[at..].find(';').map_or(rest.len(), |end| at + end);
        let line = rest[..at].rsplit('\n').next().unwrap_or("").trim_start();
        expand(&[], &rest[at + 4..end], line.starts_with("pub"), &mut uses);
        kept.push_str(&rest[..at]);
        rest = &rest[end..];
    }
    (kept + rest, uses)
}

/// Adds each name of one tree of a `use` declaration, as in `a::{b, c::{self, d as e}}`.
fn expand(prefix: &[String], tree: &str, is_public: bool, uses: &mut Vec<Use>) {
    let (mut depth, mut begin) = (0, 0);
    for (at, c) in tree.char_indices().chain([(tree.len(), ',')]) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                let branch = tree[begin..at].trim();
                begin = at + 1;
                let (head, nested) = match branch.split_once('{') {
                    Some((head, nested)) => (head, nested.strip_suffix('}')),
                    None => (branch, None),
                };
                let (path, alias) = match head.split_once(" as ") {
                    Some((path, alias)) => (path, Some(alias.trim())),
                    None => (head, None),
                };
                let segments = path.split("::").map(str::trim).filter(|s| !s.is_empty());
                let mut path: Path =
                    prefix.iter().cloned().chain(segments.map(String::from)).collect();
                if let Some(nested) = nested {
                    expand(&path, nested, is_public, uses);
                    continue;
                }
                path.pop_if(|last| last == "self");
                if let Some(last) = path.last().filter(|_| !branch.is_empty()) {
                    let name = alias.unwrap_or(last).to_owned();
                    uses.push(Use { name, path, is_public });
                }
            }
            _ => {}
        }
    }
}

/// Every path of more than one segment in code.
fn paths_in(code: &str) -> Vec<Path> {
    let in_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let words = code.split(|c| !in_path(c)).filter(|word| word.contains("::"));
    let segments = words.map(|word| word.split("::").map(String::from).collect::<Path>());
    segments.filter(|path| path.iter().all(|s| !s.is_empty() && !s.contains(':'))).collect()
}

fn has_word(code: &str, word: &str) -> bool {
    super::words(code).any(|other| other == word)
}

#[cfg(test)]
mod checkers {
    use super::*;

    fn circles_of(files: &[(&str, &str)]) -> String {
        let source = |(path, text): &(&str, &str)| Source {
            path: format!("live/src/{path}"),
            text: (*text).into(),
        };
        let sources: Vec<Source> = files.iter().map(source).collect();
        let modules = modules("live/src/", &sources);
        let circles = circles(&imports(&modules));
        let sentences: Vec<String> = circles.iter().map(|files| sentence(files)).collect();
        sentences.join("; ").replace("live/src/", "")
    }

    #[test]
    fn circles_are_found() {
        let two = "2 files import each other in a circle: ";
        let direct = [("a.rs", "use crate::b::{self, B};"), ("b.rs", "fn f() { super::a::g() }")];
        assert_eq!(circles_of(&direct), format!("{two}a.rs, b.rs"));
        let parent = [("a/mod.rs", "mod b;\nuse b::B;"), ("a/b.rs", "use super::Shared;")];
        assert_eq!(circles_of(&parent), format!("{two}a/b.rs, a/mod.rs"));
        let bare = [("a.rs", "mod b;\nfn f() { b::g() }"), ("a/b.rs", "use crate::a::Shared;")];
        assert_eq!(circles_of(&bare), format!("{two}a.rs, a/b.rs"));
        let long = [
            ("lib.rs", "mod a; mod b; mod c;"),
            ("a.rs", "use crate::b as other;\nfn f() { other::g() }"),
            ("b.rs", "use crate::{c::{C, D}};"),
            ("c.rs", "pub use super::a::A;\nfn f(_: A) {}"),
        ];
        assert_eq!(circles_of(&long), "3 files import each other in a circle: a.rs, b.rs, c.rs");
    }

    #[test]
    fn what_is_no_circle_passes() {
        let sibling = [
            ("a/mod.rs", "mod b;\nmod c;\npub use c::C;\nfn f() { b::g() }"),
            ("a/b.rs", "use super::C;"),
            ("a/c.rs", "pub struct C;"),
        ];
        assert_eq!(circles_of(&sibling), "");
        let test = [
            ("a.rs", "use crate::b::B;"),
            ("b.rs", "pub struct B;\n#[cfg(test)]\nmod tests {\n use crate::a::A;\n}"),
            ("c.rs", "use airmend_proto::a::A; // crate::b::B"),
        ];
        assert_eq!(circles_of(&test), "");
    }
}
