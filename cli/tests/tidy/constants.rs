//! The tables of constants in `docs/security.md` say what the code says. A row is
//! "| `NAME` | value | `file` | what it bounds |"; a value is a number, bytes (`64 KiB`), a time
//! (`50 ms`), or a rate (`20 a second, 5 at once`).

use super::{read, report, root};
use std::fs;

const PAGE: &str = "docs/security.md";
/// How names begin that are the kernel's.
const OF_THE_KERNEL: [&str; 5] = ["BPF_", "CAP_", "CLOCK_", "O_", "SO_"];

#[test]
fn constants_of_the_security_page_are_those_of_the_code() {
    let page = read(PAGE);
    let rows: Vec<Row<'_>> = page.lines().filter_map(Row::parse).collect();
    assert!(rows.len() >= 30, "{PAGE} has only {} rows of constants", rows.len());
    let source = |path: &str| fs::read_to_string(root().join(path)).ok();
    let mut problems: Vec<String> = rows.iter().filter_map(|row| row.problem(source)).collect();
    let named = |name: &str| rows.iter().any(|row| row.name == name);
    problems.extend(constants_in(&page).filter(|name| !named(name)).map(|name| {
        format!("{PAGE}: `{name}` is in no table of constants, so its value is not checked")
    }));
    problems.extend(page.lines().enumerate().flat_map(|(number, line)| {
        let unsaid = unsaid_in(line, &rows).into_iter();
        unsaid.map(move |(name, value)| {
            format!("{PAGE}:{}: {name} is {value}, which the row does not say", number + 1)
        })
    }));
    report(&problems);
}

/// Constants that a row names whose values it has not: each with its value. Several constants may
/// have a name; the row is about one of them.
fn unsaid_in<'a>(line: &str, constants: &[Row<'a>]) -> Vec<(&'a str, &'a str)> {
    let cells = line.strip_prefix('|').filter(|_| Row::parse(line).is_none()).unwrap_or_default();
    let words: Vec<_> = cells
        .split(|at: char| !at.is_alphanumeric() && !matches!(at, ',' | '.'))
        .map(|word| word.trim_matches([',', '.']).replace(',', ""))
        .collect();
    let says = |value: &str| {
        let number = value.split(' ').next().unwrap_or_default().replace(',', "");
        words.contains(&number)
    };
    constants_in(cells)
        .filter_map(|name| {
            let mut named = constants.iter().filter(|row| row.name == name).peekable();
            let first = (*named.peek()?).clone();
            (!named.any(|row| says(row.value))).then_some((first.name, first.value))
        })
        .collect()
}

/// Names in code spans that look like constants of this tree.
fn constants_in(page: &str) -> impl Iterator<Item = &str> {
    page.lines().flat_map(|line| line.split('`').skip(1).step_by(2)).filter(|span| {
        span.len() > 3
            && span.bytes().all(|byte| matches!(byte, b'A'..=b'Z' | b'0'..=b'9' | b'_'))
            && !OF_THE_KERNEL.iter().any(|prefix| span.starts_with(prefix))
    })
}

/// A constant as the page has it.
#[derive(Clone)]
struct Row<'a> {
    name: &'a str,
    value: &'a str,
    file: &'a str,
}

impl<'a> Row<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let mut cells = line.strip_prefix('|')?.split('|').map(str::trim);
        let code = |cell: &'a str| cell.strip_prefix('`')?.strip_suffix('`');
        let (name, value, file) = (code(cells.next()?)?, cells.next()?, code(cells.next()?)?);
        let is_constant = name.bytes().all(|byte| !byte.is_ascii_lowercase());
        (is_constant && file.ends_with(".rs")).then_some(Self { name, value, file })
    }

    fn problem(&self, source: impl Fn(&str) -> Option<String>) -> Option<String> {
        let Self { name, value, file } = self;
        let Some(text) = source(file) else { return Some(format!("{PAGE}: there is no {file}")) };
        let declared = format!("const {name}: ");
        let expression = text.split_once(&declared).and_then(|(_, rest)| rest.split_once("= "));
        let Some((expression, _)) = expression.and_then(|(_, rest)| rest.split_once(';')) else {
            return Some(format!("{PAGE}: {file} has no constant {name}"));
        };
        match (Value::of_page(value), Value::of_code(expression)) {
            (Some(page), Some(code)) if page == code => None,
            (Some(_), Some(_)) => {
                Some(format!("{PAGE}: {name} is {value}; {file} says {expression}"))
            }
            _ => Some(format!("{PAGE}: {name}: cannot compare `{value}` with `{expression}`")),
        }
    }
}

#[derive(Debug, PartialEq)]
enum Value {
    Number(u64),
    Micros(u64),
    Rate(u64, u64),
}

impl Value {
    /// `16,384`, `64 MiB`, `50 ms`, `20 a second, 5 at once`, each with words behind it or none.
    fn of_page(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let number: u64 = words.next()?.replace(',', "").parse().ok()?;
        Some(match words.next().unwrap_or_default() {
            "KiB" => Self::Number(number << 10),
            "MiB" => Self::Number(number << 20),
            "us" => Self::Micros(number),
            "ms" => Self::Micros(number * 1_000),
            "s" => Self::Micros(number * 1_000_000),
            "a" => {
                let burst = text.split_once("a second, ")?.1.strip_suffix(" at once")?;
                Self::Rate(number, burst.replace(',', "").parse().ok()?)
            }
            _ => Self::Number(number),
        })
    }

    /// A product, a shift, a `Duration`, or a `Rate`.
    fn of_code(expression: &str) -> Option<Self> {
        let argument =
            |call: &str| expression.strip_prefix(call)?.strip_prefix('(')?.strip_suffix(')');
        if let Some(rate) = argument("Rate::per_second") {
            let (rate, burst) = rate.split_once(", ")?;
            return Some(Self::Rate(number(rate)?, number(burst)?));
        }
        let units = [("micros", 1), ("millis", 1_000), ("secs", 1_000_000)];
        let time = units.into_iter().find_map(|(unit, micros)| {
            Some(number(argument(&format!("Duration::from_{unit}"))?)? * micros)
        });
        time.map(Self::Micros).or_else(|| number(expression).map(Self::Number))
    }
}

fn number(expression: &str) -> Option<u64> {
    if let Some((number_of, bits)) = expression.split_once(" << ") {
        return Some(number(number_of)? << number(bits)?);
    }
    expression.split(" * ").map(|factor| factor.replace('_', "").parse::<u64>().ok()).product()
}

#[test]
fn a_value_that_differs_is_told() {
    let code = "const TURN: Duration = Duration::from_millis(3);\nconst SIZE: usize = 64 << 10;\n\
                pub(super) const RATE: Rate = Rate::per_second(2_000, 5);\nconst TWO: u32 = A + 1;";
    let problem = |row: &str| {
        let row = Row::parse(row).expect("a row");
        row.problem(|path| (path == "a.rs").then(|| code.to_owned()))
    };
    for right in ["`TURN` | 3 ms", "`SIZE` | 64 KiB", "`SIZE` | 65,536 bytes"] {
        assert_eq!(problem(&format!("| {right} | `a.rs` |")), None);
    }
    assert_eq!(problem("| `RATE` | 2,000 a second, 5 at once | `a.rs` | it |"), None);
    for (wrong, told) in [
        ("`TURN` | 4 ms | `a.rs`", "from_millis(3)"),
        ("`RATE` | 2,000 a second, 6 at once | `a.rs`", "per_second"),
        ("`SIZE` | 64 KiB | `b.rs`", "no b.rs"),
        ("`NONE` | 1 | `a.rs`", "no constant NONE"),
        ("`TWO` | 2 | `a.rs`", "cannot compare"),
    ] {
        let said = problem(&format!("| {wrong} |")).expect(wrong);
        assert!(said.contains(told), "{said}");
    }
    let row = |line| Row::parse(line).expect("a row");
    let rows = [row("| `TURN` | 3 ms | `a.rs` |"), row("| `SIZE` | 2,048 bytes | `a.rs` |")];
    assert_eq!(unsaid_in("| what | 3 ms, of 2048 | `TURN`, `SIZE` |", &rows), []);
    assert_eq!(unsaid_in("| what | 30 ms | `TURN` |", &rows), [("TURN", "3 ms")]);
    assert_eq!(unsaid_in("`TURN` outside of a table", &rows), []);
    assert!(constants_in("a `TURN` and `turn`, `B`").eq(["TURN"]));
}
