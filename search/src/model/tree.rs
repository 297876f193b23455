//! A regression tree over the values of a row.

/// A binary tree. Node 0 is the root; children come after their parent, the right one next to the left one.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tree {
    nodes: Vec<Node>,
}

/// One node of a [`Tree`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Node {
    /// Rows whose `column` is at least `threshold` go on at node `left + 1`, all others (NaN included) at `left`.
    Split { column: u32, threshold: f32, left: u32 },
    /// The end of a row, with its contribution to the score of its program.
    Leaf(f32),
}

/// The reason why a list of nodes is no tree.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MalformedTree {
    /// There is no root.
    #[error("it has no nodes")]
    Empty,
    /// A child is not below its parent or does not exist.
    #[error(
        "node {node} leads to node {child} and the next, expected two after it and among the {count} nodes"
    )]
    BadChild {
        /// The index of the parent.
        node: usize,
        /// The index of its left child.
        child: u32,
        /// How many nodes there are.
        count: usize,
    },
    /// A split reads what no row has.
    #[error("node {node} reads column {column}, expected less than {columns}")]
    BadColumn {
        /// The index of the split.
        node: usize,
        /// The column it reads.
        column: u32,
        /// How many columns there are.
        columns: usize,
    },
    /// A threshold or a leaf's value is no finite number.
    #[error("node {node} holds {value}, expected a finite number")]
    NotFinite {
        /// The index of the node.
        node: usize,
        /// Its threshold or value.
        value: f32,
    },
}

impl Tree {
    /// A tree from its nodes, for rows of `columns` values.
    pub(super) fn new(nodes: Vec<Node>, columns: usize) -> Result<Self, MalformedTree> {
        if nodes.is_empty() {
            return Err(MalformedTree::Empty);
        }
        let count = nodes.len();
        for (node, kind) in nodes.iter().enumerate() {
            let value = match *kind {
                Node::Leaf(value) => value,
                Node::Split { column, threshold, left } => {
                    if column as usize >= columns {
                        return Err(MalformedTree::BadColumn { node, column, columns });
                    }
                    if left as usize <= node || left as usize >= count - 1 {
                        return Err(MalformedTree::BadChild { node, child: left, count });
                    }
                    threshold
                }
            };
            if !value.is_finite() {
                return Err(MalformedTree::NotFinite { node, value });
            }
        }
        Ok(Self { nodes })
    }

    pub(super) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The contribution of a row; `row` has every column that the tree was built for.
    pub(super) fn predict(&self, row: &[f32]) -> f32 {
        let mut index = 0;
        loop {
            match self.nodes[index] {
                Node::Leaf(value) => return value,
                Node::Split { column, threshold, left } => {
                    index = left as usize + usize::from(row[column as usize] >= threshold);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(left: u32) -> Node {
        Node::Split { column: 1, threshold: 2.0, left }
    }

    #[test]
    fn rows_follow_the_thresholds() {
        let tree = Tree::new(vec![split(1), Node::Leaf(-1.0), Node::Leaf(1.0)], 2).unwrap();
        for (value, expected) in
            [(1.9, -1.0), (2.0, 1.0), (f32::INFINITY, 1.0), (f32::NEG_INFINITY, -1.0), (f32::NAN, -1.0)]
        {
            assert_eq!(tree.predict(&[9.0, value]), expected, "value {value}");
        }
    }

    #[test]
    fn what_is_no_tree_is_refused() {
        let leaf = Node::Leaf(0.0);
        for (nodes, error) in [
            (vec![], MalformedTree::Empty),
            (vec![split(0)], MalformedTree::BadChild { node: 0, child: 0, count: 1 }),
            (vec![split(1), leaf], MalformedTree::BadChild { node: 0, child: 1, count: 2 }),
            (
                vec![split(u32::MAX), leaf, leaf],
                MalformedTree::BadChild { node: 0, child: u32::MAX, count: 3 },
            ),
            (
                vec![Node::Split { column: 2, threshold: 0.0, left: 1 }, leaf, leaf],
                MalformedTree::BadColumn { node: 0, column: 2, columns: 2 },
            ),
            (vec![Node::Leaf(f32::INFINITY)], MalformedTree::NotFinite { node: 0, value: f32::INFINITY }),
        ] {
            assert_eq!(Tree::new(nodes.clone(), 2), Err(error), "{nodes:?}");
        }
    }
}
