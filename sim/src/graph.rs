//! The network as a graph: nodes, the directions between them, and shortest routes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Nodes and the links between them, of which some may be down.
#[derive(Clone, Debug)]
pub(crate) struct Graph {
    /// Nodes below this number are hosts, which forward nothing.
    hosts: u32,
    /// For each node the directions that leave it and the node that each leads to.
    leaving: Vec<Vec<(u32, u32)>>,
    /// Whether each link is up; links are down only where a host moves.
    up: Vec<bool>,
}

/// The shortest routes from all nodes to one.
pub(crate) struct Tree {
    pub(crate) root: u32,
    /// For each node that reaches the root the first direction of its route, and where that leads.
    towards: Vec<Option<(u32, u32)>>,
}

impl Graph {
    /// Hosts, and the stations after them, without links.
    pub(crate) fn new(hosts: u32, stations: u32) -> Self {
        Self { hosts, leaving: vec![Vec::new(); (hosts + stations) as usize], up: Vec::new() }
    }

    /// Adds the next link, whose directions are `2n` from the first node to the second for link
    /// number `n`, and `2n + 1` back.
    pub(crate) fn join(&mut self, [first, second]: [u32; 2]) {
        let down = 2 * self.up.len() as u32;
        self.up.push(true);
        self.leaving[first as usize].push((down, second));
        self.leaving[second as usize].push((opposite(down), first));
    }

    /// The directions that leave a node, and the node that each leads to.
    pub(crate) fn leaving(&self, node: u32) -> &[(u32, u32)] {
        &self.leaving[node as usize]
    }

    /// Whether the link of a direction is up.
    pub(crate) fn is_up(&self, direction: u32) -> bool {
        self.up[direction as usize / 2]
    }

    /// The only link of this host that is up is that of the direction `outbound`, or none.
    pub(crate) fn attach(&mut self, host: u32, outbound: Option<u32>) {
        for &(direction, _) in &self.leaving[host as usize] {
            self.up[direction as usize / 2] = Some(direction) == outbound;
        }
    }

    /// The routes to `root` with the fewest links. Of several with as few it is always the same
    /// one, from both ends and from each node on it.
    pub(crate) fn routes_to(&self, root: u32) -> Tree {
        let mut towards = vec![None; self.leaving.len()];
        let mut lengths = vec![u64::MAX; self.leaving.len()];
        lengths[root as usize] = 0;
        let mut open = BinaryHeap::from([Reverse((0, root))]);
        while let Some(Reverse((length, node))) = open.pop() {
            if length > lengths[node as usize] || (node < self.hosts && node != root) {
                continue;
            }
            for &(direction, neighbour) in &self.leaving[node as usize] {
                let longer = length + weight(direction / 2);
                if self.is_up(direction) && longer < lengths[neighbour as usize] {
                    lengths[neighbour as usize] = longer;
                    towards[neighbour as usize] = Some((opposite(direction), node));
                    open.push(Reverse((longer, neighbour)));
                }
            }
        }
        Tree { root, towards }
    }
}

/// One, and a fraction that makes sums of as many links differ: a hash of the link's number.
fn weight(link: u32) -> u64 {
    let hash = (u64::from(link) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (1 << 43) + ((hash ^ (hash >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 42)
}

impl Tree {
    /// The directions of the route from a host to the root, or from the root to it; none if there
    /// is no route.
    pub(crate) fn route(&self, from: u32, to: u32) -> Option<Vec<u32>> {
        let is_from_root = from == self.root;
        let mut node = if is_from_root { to } else { from };
        let mut route = Vec::new();
        while node != self.root {
            let (direction, next) = self.towards[node as usize]?;
            route.push(if is_from_root { opposite(direction) } else { direction });
            node = next;
        }
        if is_from_root {
            route.reverse();
        }
        Some(route)
    }
}

/// The direction the other way.
pub(crate) fn opposite(direction: u32) -> u32 {
    direction ^ 1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hosts 0 to 2; stations 3 to 6 in a ring, with a host at the first three of them.
    fn ring() -> Graph {
        let mut graph = Graph::new(3, 4);
        for pair in [[0, 3], [1, 4], [2, 5], [3, 4], [4, 5], [5, 6], [6, 3]] {
            graph.join(pair);
        }
        graph
    }

    #[test]
    fn routes_are_shortest_and_the_same_from_both_ends() {
        let graph = ring();
        assert_eq!(graph.routes_to(1).route(0, 1), Some(vec![0, 6, 3]));
        assert_eq!(graph.routes_to(0).route(0, 1), Some(vec![0, 6, 3]));
        assert_eq!(graph.routes_to(0).route(1, 0), Some(vec![2, 7, 1]));
        // Two ways of the same length.
        let [there, same] = [graph.routes_to(0), graph.routes_to(2)].map(|tree| tree.route(0, 2));
        assert_eq!(there, same);
        assert_eq!(there.unwrap().len(), 4);
        assert_eq!(graph.routes_to(0).route(0, 0), Some(vec![]));
    }

    #[test]
    fn hosts_forward_nothing_and_links_that_are_down_carry_nothing() {
        let mut graph = Graph::new(3, 1);
        for pair in [[0, 1], [1, 2], [2, 3], [0, 3]] {
            graph.join(pair);
        }
        assert_eq!(graph.routes_to(2).route(0, 2), Some(vec![6, 5]));
        graph.attach(0, Some(0));
        assert_eq!(graph.routes_to(2).route(0, 2), None);
        assert_eq!(graph.routes_to(1).route(0, 1), Some(vec![0]));
    }
}
