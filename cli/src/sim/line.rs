//! One JSON line: fields in a stable order, some of which only the scenario knows.

use crate::row::rounded;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// Fields in the order in which they were first set.
#[derive(Clone, Debug, Default)]
pub(crate) struct Line(Vec<(String, Field)>);

/// The value of a field.
#[derive(Clone, Debug)]
pub(crate) enum Field {
    /// There is none.
    Null,
    /// A number; a whole one is written without a decimal point.
    Number(f64),
    /// A text.
    Text(String),
    /// True or false.
    Switch(bool),
    /// Fields within.
    Line(Line),
}

impl Line {
    /// Sets a field, in its place if there is one of this name already.
    pub(crate) fn set(&mut self, name: impl Into<String>, value: impl Into<Field>) -> &mut Self {
        let (name, value) = (name.into(), value.into());
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = value,
            None => self.0.push((name, value)),
        }
        self
    }
}

impl From<f64> for Field {
    fn from(number: f64) -> Self {
        if number.is_finite() { Self::Number(number) } else { Self::Null }
    }
}

impl From<u64> for Field {
    fn from(number: u64) -> Self {
        Self::Number(number as f64)
    }
}

impl From<bool> for Field {
    fn from(switch: bool) -> Self {
        Self::Switch(switch)
    }
}

impl From<&str> for Field {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<Line> for Field {
    fn from(line: Line) -> Self {
        Self::Line(line)
    }
}

impl<T: Into<Self>> From<Option<T>> for Field {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl Serialize for Line {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl Serialize for Field {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_none(),
            Self::Number(number) if number.fract() == 0.0 && number.abs() < 9e15 => {
                serializer.serialize_i64(*number as i64)
            }
            Self::Number(number) => serializer.serialize_f64(*number),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Switch(switch) => serializer.serialize_bool(*switch),
            Self::Line(line) => line.serialize(serializer),
        }
    }
}

/// Four decimals: what shares and ratios are told to.
pub(crate) fn short(value: f64) -> f64 {
    rounded(value, 4)
}
