//! The key `count` of hosts, stations and flows.

use super::error::Fault;
use toml::Spanned;

/// Nodes of a run at most.
pub(super) const MAX_NODES: u32 = 1_000_000;
/// Flows of a run at most, each of about half a kilobyte.
pub(super) const MAX_FLOWS: u32 = 1_000_000;
// Ports tell them apart.
const _: () = assert!(MAX_FLOWS as usize <= crate::world::MAX_FLOWS);

/// A number of nodes or flows, at least one.
pub(super) fn counted(count: Option<&Spanned<u32>>, most: u32) -> Result<u32, Fault> {
    match count {
        None => Ok(1),
        Some(count) if (1..=most).contains(count.get_ref()) => Ok(*count.get_ref()),
        Some(count) => {
            let message = format!("`count` must be from 1 to {most}, not {}", count.get_ref());
            Err(Fault::new(count.span(), message))
        }
    }
}
