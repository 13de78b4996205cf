//! What a scenario says as a family of the board (`docs/board.md`): the table `board`.

use super::error::{Fault, unknown};
use super::sweep::flatten;
use serde::Deserialize;
use serde::de::IgnoredAny;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

/// How a family of the board is judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Family {
    /// Its weight in the score of the board.
    pub weight: f64,
    /// The share of the reference that every cell should have.
    pub target: f64,
    /// The agents to compare unless others are asked for.
    pub agents: Vec<String>,
    /// The stations that have the agent; of a link protocol those at its near end.
    pub near: Vec<String>,
    /// The stations that have a link protocol as well.
    pub far: Vec<String>,
    /// So many bulk flows, the last ones, pass no agent: the others' harm is judged by them.
    pub beside: usize,
    /// Keys with values in TOML that take the losses away, for the reference; without them the
    /// reference is the bound.
    pub clean: Vec<(String, String)>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FamilyTable {
    weight: Spanned<f64>,
    target: Spanned<f64>,
    agents: Vec<String>,
    near: Vec<Spanned<String>>,
    #[serde(default)]
    far: Vec<Spanned<String>>,
    #[serde(default)]
    beside: usize,
    #[serde(rename = "clean")]
    _clean: Option<IgnoredAny>,
}

impl Family {
    /// Takes the table out of the scenario, if it has one.
    pub(super) fn take(table: &mut DeTable<'_>) -> Result<Option<Self>, Fault> {
        let Some(board) = table.remove("board") else { return Ok(None) };
        let spec = FamilyTable::deserialize(ValueDeserializer::from(board.clone()))?;
        let known: Vec<&str> = match table.get("stations").map(Spanned::get_ref) {
            Some(DeValue::Table(stations)) => {
                stations.keys().map(|name| name.get_ref().as_ref()).collect()
            }
            _ => Vec::new(),
        };
        let station = |name: &&Spanned<String>| !known.contains(&name.get_ref().as_str());
        if let Some(name) = spec.near.iter().chain(&spec.far).find(station) {
            return Err(Fault::new(name.span(), unknown("station", name.get_ref(), &known)));
        }
        let positive = |value: &Spanned<f64>, name: &str| {
            let is_positive = value.get_ref().is_finite() && *value.get_ref() > 0.0;
            let fault = || Fault::new(value.span(), format!("`{name}` must be more than 0"));
            if is_positive { Ok(*value.get_ref()) } else { Err(fault()) }
        };
        let mut sets = Vec::new();
        if let Some(clean) = board.get_ref().get("clean") {
            let Some(clean) = clean.get_ref().as_table() else {
                let message = "`clean` must be a table of keys and their values";
                return Err(Fault::new(clean.span(), message));
            };
            flatten("", clean, &mut sets);
        }
        let names = |names: Vec<Spanned<String>>| names.into_iter().map(Spanned::into_inner);
        Ok(Some(Self {
            weight: positive(&spec.weight, "weight")?,
            target: positive(&spec.target, "target")?,
            agents: spec.agents,
            near: names(spec.near).collect(),
            far: names(spec.far).collect(),
            beside: spec.beside,
            clean: sets.into_iter().map(|set| (set.key, set.words)).collect(),
        }))
    }
}
