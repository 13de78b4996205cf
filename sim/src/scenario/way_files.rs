//! The names of files for the directions of a link.

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use std::fmt;

/// A file for both directions of a link, or one for each.
#[derive(Clone, Debug, Default)]
pub(super) struct WayFiles(pub(super) [Option<String>; 2]);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EachWay {
    down: Option<String>,
    up: Option<String>,
}

impl<'de> Deserialize<'de> for WayFiles {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = WayFiles;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a file, or a table with `down` and `up`")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<WayFiles, E> {
        Ok(WayFiles([Some(name.to_owned()), Some(name.to_owned())]))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<WayFiles, A::Error> {
        let EachWay { down, up } = EachWay::deserialize(MapAccessDeserializer::new(map))?;
        Ok(WayFiles([down, up]))
    }
}
