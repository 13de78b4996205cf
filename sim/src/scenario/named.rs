//! Tables of a scenario file by name.

use std::collections::BTreeMap;
use toml::Spanned;

/// Tables by name, each name with its place in the file.
pub(super) type Named<T> = BTreeMap<Spanned<String>, T>;

/// Tables in the order of the file.
pub(super) fn in_order<T>(tables: &Named<T>) -> Vec<(&Spanned<String>, &T)> {
    let mut tables: Vec<_> = tables.iter().collect();
    tables.sort_by_key(|(name, _)| name.span().start);
    tables
}
