//! Growing one tree: leaf by leaf, always where the loss falls most.
//!
//! Splits maximise the second-order gain of Chen and Guestrin, "XGBoost: a scalable tree boosting system" (KDD 2016,
//! equation 7), over histogram bins. The leaf with the largest gain is split next (best-first growth). Of two
//! children only the smaller one's rows are visited; the other's histogram is the parent's less the sibling's.

use super::bins::{BinnedColumn, BinnedRows};
use super::histogram::{FixedPoint, Histogram, Packed};

/// Limits on one tree.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct GrowthLimits {
    pub(super) max_leaves: usize,
    pub(super) max_depth: usize,
    /// The least sum of hessians on either side of a split.
    pub(super) min_child_weight: f64,
    /// The least gain of a split.
    pub(super) gamma: f64,
    /// The weight of the squared leaf values in the loss.
    pub(super) lambda: f64,
}

/// A grown tree whose leaves have no values yet, with the leaf of each training row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GrownTree {
    /// Node 0 is the root; children come after their parent, the right one next to the left one.
    pub(super) nodes: Vec<GrownNode>,
    pub(super) leaf_count: usize,
    /// The leaf of each training row, below `leaf_count`.
    pub(super) leaf_of_row: Vec<u32>,
}

/// One node of a [`GrownTree`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GrownNode {
    /// Rows whose bin in the binned column is above `bin` go to node `left + 1`, all others to `left`.
    Split { column: usize, bin: u8, left: usize },
    /// The number of the leaf.
    Leaf(usize),
}

/// The best way to split a leaf.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Split {
    column: usize,
    bin: u8,
    /// The reduction of the loss, less gamma, in fixed-point units.
    gain: f64,
    left_sum: Packed,
}

/// A leaf that may still be split. Its rows are `members[begin..end]` of the grower.
struct OpenLeaf {
    node: usize,
    begin: usize,
    end: usize,
    depth: usize,
    sum: Packed,
    /// Together with the best split; absent once the leaf is known to stay whole.
    candidate: Option<(Split, Histogram)>,
}

/// The terms of a gain besides sums, in fixed-point units, so that sums need no conversion.
#[derive(Debug, Clone, Copy)]
struct GainScale {
    lambda: f64,
    min_child_weight: f64,
    gamma: f64,
}

impl GainScale {
    fn new(limits: &GrowthLimits, scale: FixedPoint) -> Self {
        let score_unit = scale.score_unit();
        Self {
            lambda: limits.lambda * scale.hessian_units(),
            min_child_weight: limits.min_child_weight * scale.hessian_units(),
            // Without a unit all gradients or all hessians are zero, and nothing gains anything.
            gamma: if score_unit > 0.0 { limits.gamma / score_unit } else { f64::INFINITY },
        }
    }
}

struct Grower<'a> {
    rows: &'a BinnedRows,
    packed: &'a [Packed],
    gain_scale: GainScale,
    limits: GrowthLimits,
    members: Vec<u32>,
    /// Room for the right half while members are partitioned.
    aside: Vec<u32>,
    nodes: Vec<GrownNode>,
    leaves: Vec<OpenLeaf>,
    /// Histograms no longer needed, for reuse.
    spare: Vec<Histogram>,
}

/// Grows a tree on some rows, its members, given the packed derivatives of all. The others only come to a leaf.
pub(super) fn grow(
    rows: &BinnedRows,
    packed: &[Packed],
    members: Vec<u32>,
    scale: FixedPoint,
    limits: GrowthLimits,
) -> GrownTree {
    let count = members.len();
    let mut grower = Grower {
        rows,
        packed,
        gain_scale: GainScale::new(&limits, scale),
        limits,
        members,
        aside: Vec::with_capacity(count),
        nodes: vec![GrownNode::Leaf(0)],
        leaves: Vec::new(),
        spare: Vec::new(),
    };
    let mut histogram = grower.take_histogram();
    histogram.fill(rows, &grower.members, packed);
    let sum = grower.members.iter().map(|&member| packed[member as usize]).sum();
    let root = OpenLeaf { node: 0, begin: 0, end: count, depth: 0, sum, candidate: None };
    grower.open(root, histogram);
    while grower.leaves.len() < limits.max_leaves {
        let Some(next) = grower.most_promising() else { break };
        grower.split(next);
    }
    grower.finish()
}

impl Grower<'_> {
    fn take_histogram(&mut self) -> Histogram {
        self.spare.pop().unwrap_or_else(|| Histogram::new(self.rows.columns().len()))
    }

    /// Adds a leaf with its histogram, and finds its best split.
    fn open(&mut self, mut leaf: OpenLeaf, histogram: Histogram) {
        match self.best_split(&leaf, &histogram) {
            Some(split) => leaf.candidate = Some((split, histogram)),
            None => self.spare.push(histogram),
        }
        self.leaves.push(leaf);
    }

    /// The leaf whose split gains most; the earliest one among equals.
    fn most_promising(&self) -> Option<usize> {
        let mut best: Option<(usize, f64)> = None;
        for (index, leaf) in self.leaves.iter().enumerate() {
            if let Some((split, _)) = &leaf.candidate
                && best.is_none_or(|(_, gain)| split.gain > gain)
            {
                best = Some((index, split.gain));
            }
        }
        best.map(|(index, _)| index)
    }

    fn best_split(&self, leaf: &OpenLeaf, histogram: &Histogram) -> Option<Split> {
        if leaf.depth >= self.limits.max_depth || leaf.end - leaf.begin < 2 {
            return None;
        }
        let mut best: Option<Split> = None;
        for (index, column) in self.rows.columns().iter().enumerate() {
            let least = best.map_or(0.0, |split| split.gain);
            if let Some(split) = self.best_split_of_column(index, column, leaf.sum, histogram, least) {
                best = Some(split);
            }
        }
        best
    }

    /// The best split of one column, if it gains more than `least`.
    fn best_split_of_column(
        &self,
        index: usize,
        column: &BinnedColumn,
        total: Packed,
        histogram: &Histogram,
        least: f64,
    ) -> Option<Split> {
        let GainScale { lambda, min_child_weight, gamma } = self.gain_scale;
        let whole = total.units();
        let unsplit = whole.gradient * whole.gradient / (whole.hessian + lambda);
        // The score that both sides have to exceed together.
        let mut bar = 2.0 * (least + gamma) + unsplit;
        let mut best = None;
        let mut left_sum = Packed::default();
        for (bin, &sum) in histogram.column(index)[..column.bin_count() - 1].iter().enumerate() {
            if sum.is_zero() {
                // The same rows on either side as one bin before.
                continue;
            }
            left_sum += sum;
            let left = left_sum.units();
            let right = whole - left;
            let lightest = left.hessian.min(right.hessian);
            let (left_weight, right_weight) = (left.hessian + lambda, right.hessian + lambda);
            let (left_square, right_square) =
                (left.gradient * left.gradient, right.gradient * right.gradient);
            // Both sides multiplied by both weights: this runs for every bin, and divisions are slow.
            let exceeds =
                left_square * right_weight + right_square * left_weight > bar * left_weight * right_weight;
            if exceeds && lightest > 0.0 && lightest >= min_child_weight {
                bar = left_square / left_weight + right_square / right_weight;
                best = Some(Split {
                    column: index,
                    bin: bin as u8,
                    gain: 0.5 * (bar - unsplit) - gamma,
                    left_sum,
                });
            }
        }
        best.filter(|split| split.gain > least)
    }

    /// Splits a leaf that has a candidate.
    fn split(&mut self, index: usize) {
        let OpenLeaf { node, begin, end, depth, sum, candidate } = self.leaves.remove(index);
        let (split, mut parent) = candidate.expect("only leaves with a candidate are promising");
        let middle = self.partition(begin, end, &split);
        let left_node = self.nodes.len();
        self.nodes[node] = GrownNode::Split { column: split.column, bin: split.bin, left: left_node };
        self.nodes.extend([GrownNode::Leaf(0), GrownNode::Leaf(0)]);

        let mut smaller = self.take_histogram();
        let left_is_smaller = middle - begin <= end - middle;
        let visited = if left_is_smaller { begin..middle } else { middle..end };
        smaller.fill(self.rows, &self.members[visited], self.packed);
        parent.subtract(&smaller);
        let (left_histogram, right_histogram) =
            if left_is_smaller { (smaller, parent) } else { (parent, smaller) };
        let child =
            |node, begin, end, sum| OpenLeaf { node, begin, end, depth: depth + 1, sum, candidate: None };
        self.open(child(left_node, begin, middle, split.left_sum), left_histogram);
        self.open(child(left_node + 1, middle, end, sum - split.left_sum), right_histogram);
    }

    /// Moves the rows of `begin..end` that go left before those that go right, in order, and says where these begin.
    fn partition(&mut self, begin: usize, end: usize, split: &Split) -> usize {
        self.aside.clear();
        let mut middle = begin;
        for position in begin..end {
            let member = self.members[position];
            if self.rows.row(member as usize)[split.column] <= split.bin {
                self.members[middle] = member;
                middle += 1;
            } else {
                self.aside.push(member);
            }
        }
        self.members[middle..end].copy_from_slice(&self.aside);
        middle
    }

    /// Numbers the leaves in the order of their nodes.
    fn finish(mut self) -> GrownTree {
        self.leaves.sort_unstable_by_key(|leaf| leaf.node);
        for (number, leaf) in self.leaves.iter().enumerate() {
            self.nodes[leaf.node] = GrownNode::Leaf(number);
        }
        let leaf_of = |row| leaf_of(&self.nodes, self.rows.row(row)) as u32;
        let leaf_of_row = (0..self.packed.len()).map(leaf_of).collect();
        GrownTree { nodes: self.nodes, leaf_count: self.leaves.len(), leaf_of_row }
    }
}

/// The leaf that a row's bins lead to.
fn leaf_of(nodes: &[GrownNode], bins: &[u8]) -> usize {
    let mut node = 0;
    loop {
        match nodes[node] {
            GrownNode::Leaf(leaf) => return leaf,
            GrownNode::Split { column, bin, left } => node = left + usize::from(bins[column] > bin),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::ProgramFeatures;
    use super::super::histogram::Derivatives;
    use super::*;

    const LIMITS: GrowthLimits =
        GrowthLimits { max_leaves: 6, max_depth: 4, min_child_weight: 0.5, gamma: 0.01, lambda: 0.3 };

    fn bin(values: &[[f32; 2]]) -> BinnedRows {
        let programs: Vec<ProgramFeatures> =
            values.iter().map(|row| ProgramFeatures::new(row.to_vec(), 2, 0.0).unwrap()).collect();
        BinnedRows::new(&programs.iter().collect::<Vec<_>>(), 64)
    }

    fn grow_on(rows: &BinnedRows, derivatives: &[Derivatives], limits: GrowthLimits) -> GrownTree {
        let scale = FixedPoint::new(derivatives.iter().copied());
        let packed: Vec<Packed> = derivatives.iter().map(|&row| scale.pack(row)).collect();
        grow(rows, &packed, (0..packed.len() as u32).collect(), scale, limits)
    }

    /// The gain of parting `members` at a bin of a column by the textbook formula; `None` where it is not allowed.
    fn gain_of(
        rows: &BinnedRows,
        derivatives: &[Derivatives],
        members: &[usize],
        (column, bin): (usize, u8),
    ) -> Option<f64> {
        let sum = |side: &dyn Fn(usize) -> bool| {
            let part = members.iter().filter(|&&row| side(row)).map(|&row| derivatives[row]);
            part.fold((0.0, 0.0, 0), |(g, h, n), row| (g + row.gradient, h + row.hessian, n + 1))
        };
        let score = |(g, h, _): (f64, f64, usize)| g * g / (h + LIMITS.lambda);
        let goes_left = |row: usize| rows.row(row)[column] <= bin;
        let (left, right) = (sum(&goes_left), sum(&|row| !goes_left(row)));
        let allowed = left.2 > 0 && right.2 > 0 && left.1.min(right.1) >= LIMITS.min_child_weight;
        allowed.then(|| 0.5 * (score(left) + score(right) - score(sum(&|_| true))) - LIMITS.gamma)
    }

    /// The largest gain that any allowed split of any leaf has, of the leaves given as depth and members.
    fn best_gain(
        rows: &BinnedRows,
        derivatives: &[Derivatives],
        leaves: &[(usize, usize, Vec<usize>)],
    ) -> f64 {
        let mut best = 0.0f64;
        for (_, _, members) in leaves.iter().filter(|(_, depth, _)| *depth < LIMITS.max_depth) {
            for (index, column) in rows.columns().iter().enumerate() {
                for bin in 0..column.edges.len() as u8 {
                    best = best.max(gain_of(rows, derivatives, members, (index, bin)).unwrap_or(0.0));
                }
            }
        }
        best
    }

    proptest! {
        #[test]
        fn every_split_is_the_best_there_is(
            data in prop::collection::vec(
                ((0u8..12, -20.0..20.0f32), -2.0..2.0f64, 0.05..1.0f64), 2..40,
            ),
        ) {
            let values: Vec<[f32; 2]> = data.iter().map(|((a, b), ..)| [f32::from(*a), *b]).collect();
            let derivatives: Vec<Derivatives> =
                data.iter().map(|&(_, gradient, hessian)| Derivatives { gradient, hessian }).collect();
            let rows = bin(&values);
            let tree = grow_on(&rows, &derivatives, LIMITS);

            // Children are appended in the order of the splits, so this replays the growth.
            let mut leaves = vec![(0, 0, (0..data.len()).collect::<Vec<usize>>())];
            for left in (1..tree.nodes.len()).step_by(2) {
                let parent = tree.nodes.iter().position(|node| {
                    matches!(node, GrownNode::Split { left: child, .. } if *child == left)
                });
                let parent = parent.expect("every node but the root has a parent");
                let GrownNode::Split { column, bin, .. } = tree.nodes[parent] else { unreachable!() };
                let possible = best_gain(&rows, &derivatives, &leaves);
                let place = leaves.iter().position(|leaf| leaf.0 == parent).expect("a parent was a leaf");
                let (_, depth, members) = leaves.remove(place);
                let gain = gain_of(&rows, &derivatives, &members, (column, bin)).expect("the split is allowed");
                prop_assert!(gain > possible - 1e-6, "node {}: gain {}, possible {}", parent, gain, possible);
                let (low, high) = members.into_iter().partition(|&row| rows.row(row)[column] <= bin);
                leaves.push((left, depth + 1, low));
                leaves.push((left + 1, depth + 1, high));
            }
            prop_assert_eq!(leaves.len(), tree.leaf_count);
            if tree.leaf_count < LIMITS.max_leaves {
                prop_assert!(best_gain(&rows, &derivatives, &leaves) < 1e-6, "a gain was left");
            }
            for (node, _, members) in leaves {
                let GrownNode::Leaf(leaf) = tree.nodes[node] else { unreachable!() };
                prop_assert!(members.iter().all(|&row| tree.leaf_of_row[row] as usize == leaf));
            }
        }
    }

    #[test]
    fn limits_are_kept() {
        let values: Vec<[f32; 2]> = (0..64).map(|row| [row as f32, 0.0]).collect();
        let derivatives: Vec<Derivatives> =
            (0..64).map(|row| Derivatives { gradient: f64::from(row * row), hessian: 1.0 }).collect();
        let rows = bin(&values);
        let free =
            GrowthLimits { max_leaves: 64, max_depth: 64, min_child_weight: 0.0, gamma: 0.0, lambda: 0.0 };
        let leaves = |limits| grow_on(&rows, &derivatives, limits).leaf_count;
        assert_eq!(leaves(free), 64);
        assert_eq!(leaves(GrowthLimits { max_leaves: 5, ..free }), 5);
        assert_eq!(leaves(GrowthLimits { max_depth: 3, ..free }), 8);
        assert_eq!(leaves(GrowthLimits { max_depth: 0, ..free }), 1);
        assert_eq!(leaves(GrowthLimits { gamma: 1e9, ..free }), 1);
        let heavy = grow_on(&rows, &derivatives, GrowthLimits { min_child_weight: 10.0, ..free });
        for leaf in 0..heavy.leaf_count {
            let size = heavy.leaf_of_row.iter().filter(|&&own| own as usize == leaf).count();
            assert!(size >= 10, "leaf {leaf} has {size} rows");
        }
    }

    #[test]
    fn nothing_to_gain_leaves_the_root_whole() {
        let values = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]];
        for gradient in [0.0, 1.0] {
            let derivatives = [Derivatives { gradient, hessian: gradient }; 3];
            let tree = grow_on(&bin(&values), &derivatives, LIMITS);
            assert_eq!((tree.leaf_count, tree.leaf_of_row), (1, vec![0; 3]), "gradient {gradient}");
        }
        assert_eq!(grow_on(&bin(&[]), &[], LIMITS).leaf_count, 1);
    }
}
