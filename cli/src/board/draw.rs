//! Recorded cells chosen at random, as many as a budget allows.

use super::cells::Cells;
use super::figures::Figures;
use airmend_proto::random::{Purpose, Stream};
use std::collections::HashMap;

/// Events of the simulator that all runs of a check process at most: 40 seconds of a processor in
/// the build of tests, which checks every packet.
const BUDGET: u64 = 60_000_000;

/// Leaves cells of `families` that `record` has with all their agents: in the order that `seed`
/// draws, each that the budget still allows.
pub(super) fn draw(families: &mut [Cells], record: &[Figures], seed: u64) {
    // Lines of older records do not tell what their cells cost.
    let known = record.iter().filter(|line| line.steps > 0);
    let known: HashMap<_, u64> = known.map(|line| (line.key(), line.steps)).collect();
    let mut random = Stream::new(seed, 0, 0, Purpose::Traffic);
    let mut drawn = Vec::new();
    for (family, cells) in families.iter_mut().enumerate() {
        for cell in std::mem::take(&mut cells.chosen) {
            let name = cells.cell(cell);
            let lines = cells.agents.iter().map(|agent| {
                known.get(&(cells.name.as_str(), agent.label.as_str(), name.as_str())).copied()
            });
            if let Some(steps) = lines.sum::<Option<u64>>() {
                drawn.push((random.uniform(), family, cell, steps));
            }
        }
    }
    drawn.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut left = BUDGET;
    for (_, family, cell, steps) in drawn {
        if let Some(rest) = left.checked_sub(steps) {
            left = rest;
            families[family].chosen.push(cell);
        }
    }
    families.iter_mut().for_each(|cells| cells.chosen.sort_unstable());
}
