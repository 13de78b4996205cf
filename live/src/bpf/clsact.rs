//! The clsact of an interface, and this program's filters in it. Neither ends with the process, and
//! both are shared with other programs that configure the interface.

use super::error::BpfError;
use crate::netlink::{self, Filter};
use aya::programs::tc::{NlOptions, SchedClassifierLinkId, TcAttachOptions, qdisc_add_clsact};
use aya::programs::{SchedClassifier, TcAttachType};
use std::mem;

/// The handle of this program's filters, by which it finds those of a crashed run: filters have
/// no names there, since aya cannot find out in this process whether the kernel supports them.
const OURS: u32 = 0x6d65_6e64;
/// The handle where clsact was added for this program, and must be removed with it.
const OURS_WITH_CLSACT: u32 = 0x6d65_6e65;
/// Their priority, unless others come first; no other program uses it.
const PRIORITY: u16 = 0x6d65;

/// The directions in which a clsact has filters.
const DIRECTIONS: [TcAttachType; 2] = [TcAttachType::Ingress, TcAttachType::Egress];

/// The clsact of one interface.
#[derive(Debug)]
pub(super) struct Clsact {
    pub(super) index: u32,
    /// This program has added it, in this run or in one that crashed.
    was_added: bool,
}

/// A program that stands in a clsact.
#[derive(Debug)]
pub(super) struct Filed {
    pub(super) program: &'static str,
    pub(super) index: u32,
    pub(super) direction: TcAttachType,
    pub(super) link: SchedClassifierLinkId,
    pub(super) filter: Filter,
}

impl Filed {
    /// Whether the filter is still attached, as far as the kernel reports.
    pub(super) fn is_there(&self) -> bool {
        let all = netlink::filters(self.index, self.direction);
        all.map_or(true, |all| all.contains(&self.filter))
    }
}

impl Clsact {
    pub(super) fn of(index: u32) -> Self {
        Self { index, was_added: false }
    }

    /// Attaches a loaded program to the interface, whose name is `interface` now.
    pub(super) fn file(
        &mut self,
        program: &'static str,
        classifier: &mut SchedClassifier,
        direction: TcAttachType,
        interface: &str,
    ) -> Result<Filed, BpfError> {
        // It is there already where something else uses it; if it cannot be added, attaching fails
        // with the reason.
        self.was_added |= qdisc_add_clsact(interface).is_ok();
        let others = netlink::filters(self.index, direction).unwrap_or_default();
        let priority = priority(&others);
        if direction == TcAttachType::Ingress
            && others.iter().any(|other| other.priority < priority)
        {
            tracing::warn!(
                interface,
                "a tc filter of another program has priority 1: what it keeps is not mended; give \
                 it 2 or more, then start the gateway again"
            );
        }
        let handle = if self.was_added { OURS_WITH_CLSACT } else { OURS };
        let place = NlOptions { priority, handle: handle.into(), classid: None };
        let link = classifier
            .attach_with_options(interface, direction, TcAttachOptions::Netlink(place))
            .map_err(|source| BpfError::attach(interface, source))?;
        let filter = Filter { priority, handle, is_bpf: true };
        Ok(Filed { program, index: self.index, direction, link, filter })
    }

    /// Takes away this program's filters; there are none on most machines.
    pub(super) fn remove_filters(&mut self) {
        let is_ours = |filter: &Filter| matches!(filter.handle, OURS | OURS_WITH_CLSACT);
        for direction in DIRECTIONS {
            let all = netlink::filters(self.index, direction).unwrap_or_default();
            for filter in all.into_iter().filter(|filter| filter.is_bpf && is_ours(filter)) {
                self.was_added |= filter.handle == OURS_WITH_CLSACT;
                netlink::remove_filter(self.index, direction, filter).ok();
            }
        }
    }

    /// Removes clsact itself, if it was added for this program and no other program has filters in
    /// it.
    pub(super) fn remove_if_added(&mut self) {
        let is_empty = |direction| {
            netlink::filters(self.index, direction).is_ok_and(|filters| filters.is_empty())
        };
        if mem::take(&mut self.was_added) && DIRECTIONS.into_iter().all(is_empty) {
            netlink::remove_clsact(self.index).ok();
        }
    }
}

/// Where this program's filter comes before all others: these may keep packets from what comes
/// later, and would see twice what the daemon returns. But no filter is before the priority 1, and
/// 1 itself is what others like to choose.
fn priority(others: &[Filter]) -> u16 {
    match others.iter().map(|other| other.priority).min() {
        Some(first) if (2..=PRIORITY).contains(&first) => first - 1,
        _ => PRIORITY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_come_later_where_that_is_possible() {
        let chosen = |others: &[u16]| {
            let other = |priority: &u16| Filter { priority: *priority, handle: 1, is_bpf: false };
            priority(&others.iter().map(other).collect::<Vec<_>>())
        };
        assert_eq!(chosen(&[]), PRIORITY);
        assert_eq!(chosen(&[49_152, 49_151]), PRIORITY);
        assert_eq!(chosen(&[PRIORITY + 1]), PRIORITY);
        assert_eq!(chosen(&[PRIORITY]), PRIORITY - 1);
        assert_eq!(chosen(&[500, 10, 49_152]), 9);
        assert_eq!(chosen(&[2]), 1);
        assert_eq!(chosen(&[1, 10]), PRIORITY, "after them");
    }
}
