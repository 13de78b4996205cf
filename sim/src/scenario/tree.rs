//! Who is joined to whom: no loops, so there is one way between two nodes at most.

use crate::plan::opposite;

/// Nodes and the links between them.
pub(super) struct Forest {
    /// For each node the directions that leave it and the node that each leads to.
    ways: Vec<Vec<(u32, u32)>>,
    /// A node that each node is connected to; following it leads to one that stands for all.
    connected: Vec<u32>,
}

/// A forest with a root in each of its trees, to find ways in.
pub(super) struct Rooted {
    /// For each node but a root the direction that leads to it from its parent, and the parent.
    parents: Vec<Option<(u32, u32)>>,
    depths: Vec<u32>,
}

impl Forest {
    pub(super) fn new(nodes: u32) -> Self {
        Self { ways: vec![Vec::new(); nodes as usize], connected: (0..nodes).collect() }
    }

    /// Joins two nodes; `down` leads from the first to the second. False: they are connected
    /// already.
    #[must_use]
    pub(super) fn join(&mut self, [first, second]: [u32; 2], down: u32) -> bool {
        let (a, b) = (self.representative(first), self.representative(second));
        if a == b {
            return false;
        }
        self.connected[b as usize] = a;
        self.ways[first as usize].push((down, second));
        self.ways[second as usize].push((opposite(down), first));
        true
    }

    /// The directions that leave a node, and the node that each leads to.
    pub(super) fn ways(&self, node: u32) -> &[(u32, u32)] {
        &self.ways[node as usize]
    }

    /// Chooses roots.
    pub(super) fn rooted(&self) -> Rooted {
        let nodes = self.ways.len();
        let (mut parents, mut depths) = (vec![None; nodes], vec![0; nodes]);
        let mut seen = vec![false; nodes];
        for root in 0..nodes {
            let mut open = if seen[root] { Vec::new() } else { vec![root] };
            while let Some(node) = open.pop() {
                seen[node] = true;
                for &(direction, neighbour) in &self.ways[node] {
                    let neighbour = neighbour as usize;
                    if !seen[neighbour] {
                        parents[neighbour] = Some((direction, node as u32));
                        depths[neighbour] = depths[node] + 1;
                        open.push(neighbour);
                    }
                }
            }
        }
        Rooted { parents, depths }
    }

    fn representative(&mut self, node: u32) -> u32 {
        let mut at = node as usize;
        while self.connected[at] as usize != at {
            // Halves the way for those that come after.
            self.connected[at] = self.connected[self.connected[at] as usize];
            at = self.connected[at] as usize;
        }
        at as u32
    }
}

impl Rooted {
    /// The directions from one node to another with the node that each leads to, if there is a way.
    pub(super) fn route(&self, from: u32, to: u32) -> Option<Vec<(u32, u32)>> {
        let (mut up, mut down) = (Vec::new(), Vec::new());
        let (mut near, mut far) = (from, to);
        while near != far {
            if self.depths[near as usize] >= self.depths[far as usize] {
                let (direction, parent) = self.parents[near as usize]?;
                up.push((opposite(direction), parent));
                near = parent;
            } else {
                let (direction, parent) = self.parents[far as usize]?;
                down.push((direction, far));
                far = parent;
            }
        }
        up.extend(down.into_iter().rev());
        Some(up)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_way_and_never_a_loop() {
        let mut forest = Forest::new(7);
        // 0 - 1 - 2, 1 - 3 - 4; 5 - 6 apart.
        for (number, pair) in [[0, 1], [1, 2], [1, 3], [3, 4], [5, 6]].into_iter().enumerate() {
            assert!(forest.join(pair, 2 * number as u32));
        }
        assert!(!forest.join([4, 2], 10));
        let rooted = forest.rooted();
        assert_eq!(rooted.route(2, 4), Some(vec![(3, 1), (4, 3), (6, 4)]));
        assert_eq!(rooted.route(4, 0), Some(vec![(7, 3), (5, 1), (1, 0)]));
        assert_eq!(rooted.route(0, 5), None);
        assert_eq!(rooted.route(3, 3), Some(vec![]));
    }
}
