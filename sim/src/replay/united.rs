//! Interfaces that a capture describes more than once.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::hash::Hash;

/// For each interface the first of those that are one with it, itself if there is no other.
///
/// A ring of files that were joined describes its interfaces in each file anew. Two descriptions
/// are one interface if they are equal and the second one's packets come after those of the first.
/// Where the times overlap, the interfaces belong to two captures, of two machines that call them
/// the same.
///
/// `seen` has for each interface its description and the times of its first packet and its last,
/// none where it has no packet.
pub(super) fn united<D: Eq + Hash>(seen: &[(D, Option<(u64, u64)>)]) -> Vec<usize> {
    let times = |index: &usize| seen[*index].1;
    let mut in_time: Vec<usize> = (0..seen.len()).filter(|index| times(index).is_some()).collect();
    in_time.sort_by_key(|index| (times(index), *index));
    let mut one: Vec<usize> = (0..seen.len()).collect();
    // For each description, the interfaces with the times at which they end, the earliest on top.
    let mut ends: HashMap<&D, BinaryHeap<Reverse<(u64, usize)>>> = HashMap::new();
    for index in in_time {
        let (description, Some((first, last))) = &seen[index] else { continue };
        let ends = ends.entry(description).or_default();
        let earliest = ends.peek().map(|Reverse(earliest)| *earliest);
        if let Some((_, earlier)) = earliest.filter(|(end, _)| end <= first) {
            ends.pop();
            one[index] = earlier;
        }
        ends.push(Reverse((*last, one[index])));
    }
    one
}
