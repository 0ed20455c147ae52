//! Callers and callees.

use super::Profile;
use super::group::{GroupBy, Grouping, Node, NodeId};
use super::hash::{FastMap, FastSet};

/// A call graph with the values of one type.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Graph {
    /// Sum over all samples.
    pub total: i64,
    /// The nodes, largest cumulative value first.
    pub nodes: Vec<GraphNode>,
}

/// A node with its edges.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GraphNode {
    /// What the node is.
    pub node: Node,
    /// Value of the samples whose leaf is here.
    pub flat: i64,
    /// Value of the samples that have this anywhere in their stack.
    pub cum: i64,
    /// Who calls it, largest first.
    pub callers: Vec<Edge>,
    /// Whom it calls, largest first.
    pub callees: Vec<Edge>,
}

/// An edge to another node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Index of the other node in [`Graph::nodes`].
    pub node: usize,
    /// Value of the samples that go this way.
    pub weight: i64,
}

impl Profile {
    /// The call graph. As in `go tool pprof`, a sample counts once for a node and once for an edge, and a node has no
    /// edge to itself.
    #[must_use]
    pub fn graph(&self, value: usize, by: GroupBy) -> Graph {
        let mut grouping = Grouping::new(self, by);
        let mut sums: Vec<(i64, i64)> = Vec::new();
        let mut edges = FastMap::<(NodeId, NodeId), i64>::default();
        let mut total = 0_i64;
        let (mut stack, mut seen_nodes, mut seen_edges) = (Vec::new(), FastSet::default(), FastSet::default());
        for sample in &self.samples {
            let weight = sample.values[value];
            total = total.saturating_add(weight);
            grouping.stack(sample, &mut stack);
            seen_nodes.clear();
            seen_edges.clear();
            for (depth, &node) in stack.iter().enumerate() {
                sums.resize(sums.len().max(node as usize + 1), (0, 0));
                let (flat, cum) = &mut sums[node as usize];
                if depth == 0 {
                    *flat = flat.saturating_add(weight);
                }
                if seen_nodes.insert(node) {
                    *cum = cum.saturating_add(weight);
                }
                if let Some(&caller) = stack.get(depth + 1)
                    && caller != node
                    && seen_edges.insert((caller, node))
                {
                    let edge = edges.entry((caller, node)).or_default();
                    *edge = edge.saturating_add(weight);
                }
            }
        }
        assemble(total, grouping.into_nodes(), &sums, &edges)
    }
}

fn assemble(total: i64, nodes: Vec<Node>, sums: &[(i64, i64)], edges: &FastMap<(NodeId, NodeId), i64>) -> Graph {
    let mut order: Vec<usize> = (0..nodes.len()).collect();
    let size = |i: usize| (sums[i].1.unsigned_abs(), sums[i].0.unsigned_abs());
    order.sort_by(|&a, &b| size(b).cmp(&size(a)).then_with(|| nodes[a].name.cmp(&nodes[b].name)));
    let mut place = vec![0; nodes.len()];
    order.iter().enumerate().for_each(|(at, &old)| place[old] = at);

    let mut placed: Vec<(usize, GraphNode)> = nodes
        .into_iter()
        .enumerate()
        .map(|(old, node)| {
            (place[old], GraphNode { node, flat: sums[old].0, cum: sums[old].1, ..GraphNode::default() })
        })
        .collect();
    placed.sort_by_key(|(at, _)| *at);
    let mut nodes: Vec<GraphNode> = placed.into_iter().map(|(_, node)| node).collect();
    for (&(caller, callee), &weight) in edges {
        let (caller, callee) = (place[caller as usize], place[callee as usize]);
        nodes[callee].callers.push(Edge { node: caller, weight });
        nodes[caller].callees.push(Edge { node: callee, weight });
    }
    for node in &mut nodes {
        for edges in [&mut node.callers, &mut node.callees] {
            edges.sort_by_key(|edge| (std::cmp::Reverse(edge.weight.unsigned_abs()), edge.node));
        }
    }
    Graph { total, nodes }
}
