//! One thing that `airmend doctor` tries, and the result.

use serde::{Deserialize, Serialize};

/// The check that attaches the gateway's programs by tcx.
pub(super) const GATEWAY_BY_TCX: &str = "gateway by tcx";
/// The check that attaches them by clsact.
pub(super) const GATEWAY_BY_CLSACT: &str = "gateway by clsact";

/// One thing that was tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Check {
    /// The name of the check.
    pub(super) check: String,
    pub(super) ok: bool,
    /// Whether the laboratory cannot run without it.
    pub(super) needed: bool,
    /// The result.
    pub(super) found: String,
    /// The consequence of a failure; empty if the check passed.
    pub(super) cost: String,
}

impl Check {
    /// A check with its result: `Ok` with what was seen, or `Err` with what went wrong.
    pub(super) fn new<E: ToString>(check: &str, result: Result<String, E>, cost: &str) -> Self {
        let ok = result.is_ok();
        Self {
            check: check.to_owned(),
            ok,
            needed: false,
            found: result.unwrap_or_else(|error| error.to_string()),
            cost: if ok { String::new() } else { cost.to_owned() },
        }
    }

    /// The laboratory cannot run without this.
    pub(super) fn needed(mut self) -> Self {
        self.needed = true;
        self
    }
}
