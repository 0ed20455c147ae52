//! The tree that a flame graph draws.

use super::Kind;
use std::collections::HashMap;

/// Frames of a stack that are drawn. Deeper stacks lose their middle: the root tells who asked, the leaf tells who
/// holds, and a picture of 40,000 rows tells nobody anything.
const DEEPEST: usize = 200;
/// Of them at the root.
const AT_ROOT: usize = DEEPEST / 2;

/// Stacks added up by their common outer frames.
#[derive(Debug)]
pub(crate) struct Tree {
    /// Node 0 is the root, without a name.
    pub(super) nodes: Vec<Node>,
    names: HashMap<String, u32>,
    texts: Vec<String>,
    edges: HashMap<(u32, u32, Kind), u32>,
}

/// One frame below its callers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    pub(super) name: u32,
    pub(super) kind: Kind,
    /// The caller; the root is its own.
    pub(super) parent: u32,
    /// Value of the stacks through it.
    pub(super) value: u64,
    /// Value of the stacks that end here.
    pub(super) own: u64,
    /// Value of the same stacks in the base profile.
    pub(super) base: u64,
}

impl Default for Tree {
    fn default() -> Self {
        let root = Node { name: 0, kind: Kind::Elided, parent: 0, value: 0, own: 0, base: 0 };
        Self {
            nodes: vec![root],
            names: HashMap::from([(String::new(), 0)]),
            texts: vec![String::new()],
            edges: HashMap::new(),
        }
    }
}

impl Tree {
    /// Add a stack, leaf first, with its value and its value in the base profile.
    pub(crate) fn add<S: AsRef<str>>(&mut self, leaf_first: &[(S, Kind)], value: u64, base: u64) {
        let mut node = 0;
        self.pour(node, value, base);
        let depth = leaf_first.len();
        let mut index = depth;
        while index > 0 {
            if depth > DEEPEST && depth - index == AT_ROOT {
                let left_out = depth - DEEPEST;
                node = self.child(node, &format!("[{left_out} frames not drawn]"), Kind::Elided);
                self.pour(node, value, base);
                index -= left_out;
            }
            let (name, kind) = &leaf_first[index - 1];
            node = self.child(node, name.as_ref(), *kind);
            self.pour(node, value, base);
            index -= 1;
        }
        let own = &mut self.nodes[node as usize].own;
        *own = own.saturating_add(value);
    }

    /// Sum of all values.
    pub(crate) fn total(&self) -> u64 {
        self.nodes[0].value
    }

    /// Sum of all values of the base profile.
    pub(crate) fn base_total(&self) -> u64 {
        self.nodes[0].base
    }

    /// Kinds of frame that occur.
    pub(super) fn has(&self, kind: Kind) -> bool {
        self.nodes[1..].iter().any(|node| node.kind == kind)
    }

    pub(super) fn name(&self, node: &Node) -> &str {
        &self.texts[node.name as usize]
    }

    /// Child nodes, in order of creation, of each node: `(first, next)` chains would save little here.
    pub(super) fn children(&self) -> Vec<Vec<u32>> {
        let mut children = vec![Vec::new(); self.nodes.len()];
        for (index, node) in self.nodes.iter().enumerate().skip(1) {
            children[node.parent as usize].push(index as u32);
        }
        children
    }

    fn pour(&mut self, node: u32, value: u64, base: u64) {
        let node = &mut self.nodes[node as usize];
        node.value = node.value.saturating_add(value);
        node.base = node.base.saturating_add(base);
    }

    fn child(&mut self, parent: u32, name: &str, kind: Kind) -> u32 {
        let name = self.intern(name);
        *self.edges.entry((parent, name, kind)).or_insert_with(|| {
            self.nodes.push(Node { name, kind, parent, value: 0, own: 0, base: 0 });
            self.nodes.len() as u32 - 1
        })
    }

    fn intern(&mut self, name: &str) -> u32 {
        if let Some(&id) = self.names.get(name) {
            return id;
        }
        let id = self.texts.len() as u32;
        self.texts.push(name.to_owned());
        self.names.insert(name.to_owned(), id);
        id
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, Tree};

    #[test]
    fn common_callers_are_added_up() {
        let mut tree = Tree::default();
        tree.add(&[("malloc", Kind::Native), ("main", Kind::Go)], 5, 2);
        tree.add(&[("grow", Kind::Native), ("main", Kind::Go)], 3, 4);
        tree.add(&[("main", Kind::Go)], 1, 0);
        let seen: Vec<_> = tree.nodes.iter().map(|n| (tree.name(n), n.value, n.own, n.base)).collect();
        assert_eq!(seen, [("", 9, 0, 6), ("main", 9, 1, 6), ("malloc", 5, 5, 2), ("grow", 3, 3, 4)]);
    }

    #[test]
    fn a_deep_stack_loses_its_middle() {
        let names: Vec<(String, Kind)> = (0..40_000).map(|n| (format!("f{n}"), Kind::Native)).collect();
        let mut tree = Tree::default();
        tree.add(&names, 7, 0);
        // The root, the frames and the mark between them.
        assert_eq!(tree.nodes.len(), 1 + 200 + 1);
        let text: Vec<_> = tree.nodes.iter().map(|n| tree.name(n)).collect();
        assert_eq!(&text[..2], ["", "f39999"]);
        assert_eq!(&text[100..103], ["f39900", "[39800 frames not drawn]", "f99"]);
        assert_eq!(text[201], "f0");
    }
}
