//! Links that vary as files say: the keys `trace` and `mahimahi` of a link.

use super::error::Fault;
use super::spec::LinkSpec;
use super::way_files::WayFiles;
use crate::trace_file::{parse, read_text};
use airmend_proto::link::trace::{Opportunities, Trace, TraceError, WayTrace, parse_trace};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use toml::Spanned;

/// The files of traces that a scenario names, each read once.
#[derive(Debug, Default)]
pub struct TraceFiles {
    source: Source,
    traces: BTreeMap<String, Trace>,
    opportunities: BTreeMap<String, Opportunities>,
    texts: BTreeMap<String, String>,
}

/// Where the texts of files come from.
#[derive(Debug)]
enum Source {
    /// The directory of the scenario.
    Directory(PathBuf),
    /// These texts, by the names that the scenario has for them.
    Texts(BTreeMap<String, String>),
}

impl Default for Source {
    fn default() -> Self {
        Self::Texts(BTreeMap::new())
    }
}

impl TraceFiles {
    /// Those that the scenario file `path` names.
    pub fn beside(path: &Path) -> Self {
        let directory = path.parent().map(Path::to_path_buf);
        Self { source: Source::Directory(directory.unwrap_or_default()), ..Self::default() }
    }

    /// These texts, by the names that the scenario has for them.
    pub fn of(texts: BTreeMap<String, String>) -> Self {
        Self { source: Source::Texts(texts), ..Self::default() }
    }

    /// The texts of all files that were read, by name.
    pub(super) fn into_texts(self) -> BTreeMap<String, String> {
        self.texts
    }

    /// What varies in each direction of a link.
    pub(super) fn of_link(&mut self, link: &LinkSpec) -> Result<[WayTrace; 2], Fault> {
        let mut ways = [WayTrace::default(), WayTrace::default()];
        let Some(span) = link.trace.as_ref().or(link.mahimahi.as_ref()).map(Spanned::span) else {
            return Ok(ways);
        };
        for (way, varies) in ways.iter_mut().enumerate() {
            let trace =
                self.read(link.trace.as_ref(), way, parse_trace, |files| &mut files.traces)?;
            let mahimahi =
                self.read(link.mahimahi.as_ref(), way, Opportunities::parse, |files| {
                    &mut files.opportunities
                })?;
            *varies = WayTrace::new(trace.as_ref(), mahimahi)
                .map_err(|why| Fault::new(span.clone(), format!("of the trace {why}")))?;
        }
        check(link, &ways).map_err(|message| Fault::new(span, message))?;
        Ok(ways)
    }

    /// The file of one direction, unless it has been read before.
    fn read<T: Clone>(
        &mut self,
        files: Option<&Spanned<WayFiles>>,
        way: usize,
        parse_text: impl Fn(&str) -> Result<T, TraceError>,
        kept: impl Fn(&mut Self) -> &mut BTreeMap<String, T>,
    ) -> Result<Option<T>, Fault> {
        let named = files.and_then(|files| Some((files, files.get_ref().0[way].as_ref()?)));
        let Some((files, name)) = named else { return Ok(None) };
        if let Some(read) = kept(self).get(name) {
            return Ok(Some(read.clone()));
        }
        let refuse = |message: String| Fault::new(files.span(), message);
        let (path, text) = match &self.source {
            Source::Directory(directory) => {
                let path = directory.join(name);
                let text = read_text(&path).map_err(refuse)?;
                (path, text)
            }
            Source::Texts(texts) => {
                let text = texts.get(name).cloned();
                let none = || refuse(format!("{name} is beside no file: this scenario is none"));
                (PathBuf::from(name), text.ok_or_else(none)?)
            }
        };
        let read = parse(&path, &text, parse_text).map_err(refuse)?;
        self.texts.insert(name.clone(), text);
        kept(self).insert(name.clone(), read.clone());
        Ok(Some(read))
    }
}

/// Refuses what a link that varies cannot have, in one sentence.
fn check(link: &LinkSpec, ways: &[WayTrace; 2]) -> Result<(), &'static str> {
    let has_more =
        [link.mac.is_some(), link.wifi.is_some(), link.arq.is_some(), link.airmail.is_some()];
    if has_more.contains(&true) {
        return Err("a link with `trace` or `mahimahi` has no `mac`, `wifi`, `arq` and `airmail`");
    }
    let errors =
        [&link.down.errors, &link.up.errors].map(|own| own.as_ref().or(link.errors.as_ref()));
    if ways.iter().zip(errors).any(|(way, errors)| way.loss.is_some() && errors.is_some()) {
        return Err("a link whose trace has the column loss has no `errors`");
    }
    if ways.iter().any(|way| way.delay.is_some()) && link.variation.is_some() {
        return Err("a link whose trace has the column delay_ms has no `variation`");
    }
    Ok(())
}
