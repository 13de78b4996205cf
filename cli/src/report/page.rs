//! The page: one HTML file that needs nothing but itself.

use super::published::Reference;
use super::reading::readings;
use super::section::{Measure, Point, Section, plain};
use super::{command, figure};
use crate::text;
use std::collections::BTreeSet;
use std::fmt::Write;

/// The part of the page about one experiment.
pub(super) struct Part {
    pub(super) section: Section,
    pub(super) known: Reference,
    /// The picture, as it is also written to a file.
    pub(super) svg: String,
    /// Further pictures: what each shows, and the picture.
    pub(super) over_time: Vec<(String, String)>,
    /// The name of that file, without its ending.
    pub(super) slug: String,
    /// The seed of its first run.
    pub(super) seed: Option<u64>,
}

impl Part {
    /// All pictures, with the names of their files.
    pub(super) fn pictures(&self) -> impl Iterator<Item = (String, &str)> {
        let Self { svg, over_time, slug, .. } = self;
        let further = over_time
            .iter()
            .map(move |(name, svg)| (format!("{slug}-{}.svg", plain_name(name)), &**svg));
        std::iter::once((format!("{slug}.svg"), &**svg)).chain(further)
    }
}

/// A name of a file.
pub(super) fn plain_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
    name.chars().map(plain).collect()
}

/// The whole page.
pub(super) fn page(parts: &[Part], problems: &[String]) -> String {
    let mut html = format!("{HEAD}<style>{STYLE}</style>\n</head>\n<body>\n{TITLE}");
    if parts.len() > 1 {
        html.push_str("<nav><ol>\n");
        for Part { slug, known, .. } in parts {
            let title = escaped(&known.title);
            let _ = writeln!(html, "<li><a href=\"#{slug}\">{title}</a></li>");
        }
        html.push_str("</ol></nav>\n");
    }
    if !problems.is_empty() {
        html.push_str("<section class=\"problems\"><h2>Left out</h2>\n<ul>\n");
        for problem in problems {
            let _ = writeln!(html, "<li>{}</li>", escaped(problem));
        }
        html.push_str("</ul></section>\n");
    }
    for part in parts {
        experiment(&mut html, part);
    }
    let _ = write!(html, "<footer>airmend {}</footer>\n</body>\n</html>\n", VERSION);
    html
}

fn experiment(html: &mut String, part: &Part) {
    let Part { section, known, slug, seed, .. } = part;
    let title = escaped(&known.title);
    let _ = writeln!(html, "<section id=\"{slug}\">\n<h2>{title}</h2>");
    let _ = writeln!(html, "<p class=\"name\">{}</p>", escaped(&section.name));
    if !known.shows.is_empty() {
        let _ = writeln!(html, "<p>{}</p>", escaped(&known.shows));
    }
    let mut caption = escaped(&figure::subtitle(section));
    if let left_out @ 1.. = figure::left_out(section, known) {
        let _ = write!(caption, " · the table has {left_out} more series");
    }
    for (name, svg) in part.pictures() {
        let _ = writeln!(html, "<figure>{}", inline(svg, &title));
        let _ = writeln!(
            html,
            "<figcaption>{caption} · <a href=\"{name}\">{name}</a></figcaption></figure>"
        );
    }
    published(html, part);
    table(html, section);
    let command = escaped(&command::command(section, *seed));
    let _ = writeln!(html, "<p>Made by</p>\n<pre>{command}</pre>\n</section>");
}

/// The published results, each with what was measured in its place.
fn published(html: &mut String, Part { section, known, .. }: &Part) {
    if known.results.is_empty() {
        return;
    }
    html.push_str("<table>\n<thead><tr><th>published</th><th>source</th>");
    html.push_str("<th class=\"number\">measured here</th>");
    html.push_str("<th>found here, and why it differs</th></tr></thead>\n<tbody>\n");
    let mut told = BTreeSet::new();
    for result in &known.results {
        let measured = result.measured(section, known.packets).unwrap_or_default();
        // What several results share is told once.
        let readings = readings(&result.source);
        let readings = readings.iter().map(|(id, reading)| match told.insert(*id) {
            true => format!("{id}: {}", escaped(reading)),
            false => format!("{id}: as above"),
        });
        let _ = writeln!(
            html,
            "<tr><td>{}</td><td>{}</td><td class=\"number\">{measured}</td><td>{}</td></tr>",
            escaped(&result.finding),
            escaped(&result.source),
            readings.collect::<Vec<_>>().join("<br>")
        );
    }
    html.push_str("</tbody></table>\n");
}

fn table(html: &mut String, section: &Section) {
    let swept: Vec<&String> = section.by.iter().chain(section.along.as_ref()).collect();
    let measures: BTreeSet<&String> =
        section.points.iter().flat_map(|point| point.measures.keys()).collect();
    let any = |has: fn(&Point) -> bool| section.points.iter().any(has);
    let has_bound = any(|point| point.bound_bps.is_some());
    let has_delay = any(|point| point.delay.is_some());
    html.push_str("<div class=\"results\"><table>\n<thead><tr>");
    for name in &swept {
        let _ = write!(html, "<th>{}</th>", escaped(&name.replace('_', " ")));
    }
    let mut columns = vec!["goodput (Mb/s)".to_owned(), "runs".to_owned()];
    columns.extend(has_bound.then(|| "of bound".to_owned()));
    let has_timeouts = !measures.iter().any(|name| *name == "timeouts");
    columns.extend(has_timeouts.then(|| "timeouts".to_owned()));
    columns.extend(has_delay.then(|| "delay (ms)".to_owned()));
    columns.extend(measures.iter().map(|name| name.replace('_', " ")));
    for name in &columns {
        let _ = write!(html, "<th class=\"number\">{}</th>", escaped(name));
    }
    html.push_str("</tr></thead>\n<tbody>\n");
    for point in &section.points {
        html.push_str("<tr>");
        for name in &swept {
            let value = match (name.as_str(), point.value(name).as_f64()) {
                ("ber", Some(ber)) => text::bit_errors(ber),
                ("loss", Some(loss)) => text::percent(loss),
                _ => plain(&point.value(name)),
            };
            let _ = write!(html, "<td>{}</td>", escaped(&value));
        }
        let mut cells = vec![spread(point.goodput, 1e-6), runs(point)];
        let share = point.bound_bps.filter(|bound| *bound > 0.0);
        let share = share.map(|bound| text::percent(point.goodput.mean / bound));
        cells.extend(has_bound.then(|| share.unwrap_or_else(none)));
        let timeouts = point.timeouts.map(|mean| format!("{mean:.1}"));
        cells.extend(has_timeouts.then(|| timeouts.unwrap_or_else(none)));
        cells.extend(has_delay.then(|| point.delay.map_or_else(none, |delay| spread(delay, 1.0))));
        let measure = |name: &&String| point.measures.get(*name);
        cells.extend(measures.iter().map(|name| {
            measure(name).map_or_else(none, |m| ((m.mean * 100.0).round() / 100.0).to_string())
        }));
        for cell in &cells {
            let _ = write!(html, "<td class=\"number\">{}</td>", escaped(cell));
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody></table></div>\n");
}

/// Mean ± standard deviation, with the decimals of the mean.
fn spread(Measure { mean, sd }: Measure, factor: f64) -> String {
    let mean = text::significant(mean * factor);
    let decimals = mean.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    match sd {
        Some(sd) => format!("{mean} ± {:.decimals$}", sd * factor),
        None => mean,
    }
}

fn runs(point: &Point) -> String {
    if point.completed == point.runs {
        return point.runs.to_string();
    }
    format!("{}, {} incomplete", point.runs, point.runs - point.completed.min(point.runs))
}

fn none() -> String {
    "–".to_owned()
}

/// A picture within the page: its name space is the page's, and its size the column's.
fn inline(svg: &str, title: &str) -> String {
    let label = format!("<svg role=\"img\" aria-label=\"{title}\" ");
    let body = svg.trim().replacen(" xmlns=\"http://www.w3.org/2000/svg\"", "", 1);
    body.replacen("<svg ", &label, 1)
}

fn escaped(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            c => html.push(c),
        }
    }
    html
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

const HEAD: &str = "<!DOCTYPE html>
<html lang=\"en\">
<head>
<meta charset=\"utf-8\">
<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">
<title>airmend: results</title>
";

const TITLE: &str = "<h1>Results</h1>
<p>Goodput is application payload in bits per second, as mean ± standard deviation of the runs. \
The bound is what no scheme can pass on the same links: each attempt to send a frame takes its \
time on the air.</p>
";

const STYLE: &str = include_str!("style.css");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_from_files_cannot_become_markup() {
        assert_eq!(escaped("<b>\"a\" & b"), "&lt;b&gt;&quot;a&quot; &amp; b");
    }
}
