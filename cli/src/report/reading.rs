//! The conformance table, as the page reads it: what was measured of a line, and why it differs.

/// The table: a row for each thing that a paper states.
const TABLE: &str = include_str!("../../../docs/conformance.md");

/// The readings of all lines that `source` cites, such as `S0-61`, each with its number; in plain
/// words, without Markdown.
pub(super) fn readings(source: &str) -> Vec<(&str, String)> {
    let is_apart = |c: char| !c.is_ascii_alphanumeric() && c != '-';
    let cited = source.split(is_apart).filter(|word| is_id(word));
    cited.filter_map(|id| Some((id, reading(id)?))).collect()
}

fn is_id(word: &str) -> bool {
    matches!(word.as_bytes(), [b'S', paper, b'-', line @ ..]
        if paper.is_ascii_digit() && line.len() == 2 && line.iter().all(u8::is_ascii_digit))
}

/// The last cell of the row of an id, unless it is empty.
fn reading(id: &str) -> Option<String> {
    let begin = format!("| {id} |");
    let row = TABLE.lines().find(|line| line.starts_with(&begin))?;
    let cell = row.trim_end().strip_suffix('|')?.rsplit(" |").next()?.trim();
    let plain = without_links(&cell.replace('`', ""));
    (!plain.is_empty()).then_some(plain)
}

/// The text without the places that its links lead to.
fn without_links(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, link)) = rest.split_once("](") {
        let Some((_, after)) = link.split_once(')') else { break };
        match before.rsplit_once('[') {
            Some((start, words)) => plain.extend([start, words]),
            None => plain.push_str(before),
        }
        rest = after;
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_code_are_read_as_words() {
        assert_eq!(without_links("see [a page](x.md) and [more](y) ."), "see a page and more .");
        assert_eq!(without_links("a](b"), "a](b");
    }

    #[test]
    fn the_lines_that_a_source_cites_are_found() {
        let found = readings("snoop95, section 5; S0-61, S0-62, S9-99, XS0-61");
        assert_eq!(found.iter().map(|(id, _)| *id).collect::<Vec<_>>(), ["S0-61", "S0-62"]);
        assert!(found[0].1.contains("Measured"), "{found:?}");
    }
}
