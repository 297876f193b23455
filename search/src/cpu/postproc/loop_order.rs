//! The order in which loops read an operand, as a layout of it.

use std::sync::Arc;

use tilewright_core::analysis::block::{BufferAccess, reduction};
use tilewright_core::analysis::scope::ranges_of;
use tilewright_core::ids::VarId;
use tilewright_core::index::Index;
use tilewright_core::index::map::IndexMap;
use tilewright_core::program::Program;
use tilewright_core::stmt::{Block, For, Stmt};

/// One loop's part in an index: `index / divisor % extent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Digit {
    /// Which index of the access.
    dimension: usize,
    divisor: i64,
    /// The loop's.
    pub(super) extent: i64,
    /// How far inside the loop is, from 0.
    depth: usize,
    /// Whether no digit of the dimension is slower, so that it also counts what loops further outside add.
    is_slowest: bool,
}

/// The digits of an access, in the order of the loops, but for the loop that can run in vector lanes, which is
/// last.
#[derive(Clone, Debug)]
pub(super) struct LoopOrder {
    pub(super) digits: Vec<Digit>,
}

impl LoopOrder {
    /// The order in which the loops of `path`, from the one at `first_depth` on, and inside them those of an intrinsic
    /// read what a block accesses; none when they do not step over it in an order.
    pub(super) fn of(
        program: &Program,
        block: &Block,
        path: &[&Arc<For>],
        access: &BufferAccess<'_>,
        first_depth: usize,
    ) -> Option<Self> {
        let inside = loops_of_intrinsic(block);
        let ranges = ranges_of(inside.iter().copied());
        let all: Vec<&Arc<For>> = path.iter().copied().chain(inside).collect();
        let mut digits = Vec::new();
        let mut seen = Vec::new();
        for (dimension, index) in access.indices.iter().enumerate() {
            let var = index.simplify(&ranges).as_var().filter(|var| !seen.contains(var))?;
            seen.push(var);
            let own = block.iters.iter().find(|iter| iter.var == var);
            let binding = own.map_or_else(|| Index::var(var), |iter| iter.binding.clone());
            let size = program.buffer(access.buffer).shape[dimension].as_constant()?;
            digits.extend(digits_of(&binding, &all, first_depth, dimension, size)?);
        }
        digits.sort_by_key(|digit| digit.depth);
        if let Some(lane) = vector_depth(block, path) {
            digits.sort_by_key(|digit| digit.depth == lane && digit.extent > 1);
        }
        Some(LoopOrder { digits })
    }

    /// How many values of a dimension the loops step over.
    pub(super) fn reach(&self, dimension: usize) -> i64 {
        self.slowest_first(dimension).iter().map(|digit| digit.extent).product()
    }

    /// The digits of a dimension, the slowest first.
    pub(super) fn slowest_first(&self, dimension: usize) -> Vec<Digit> {
        let mut digits: Vec<Digit> =
            self.digits.iter().filter(|digit| digit.dimension == dimension).copied().collect();
        digits.sort_by_key(|digit| std::cmp::Reverse(digit.divisor));
        digits
    }

    /// The layout in which an operand of the sizes lies in this order; none when it does so as it is.
    pub(super) fn map(&self, sizes: &[Index]) -> Option<IndexMap> {
        let merged = merge(&self.digits);
        let outputs = merged.iter().map(output).collect();
        let is_in_order = merged.len() == sizes.len()
            && merged.iter().enumerate().all(|(place, digit)| digit.dimension == place);
        if is_in_order { None } else { IndexMap::new(sizes.len() as u32, outputs) }
    }
}

/// The loops inside a block that are what a tensor intrinsic computes, outermost first.
fn loops_of_intrinsic(block: &Block) -> Vec<&Arc<For>> {
    let Stmt::Intrinsic(node) = &block.body else { return Vec::new() };
    let (mut loops, mut stmt) = (Vec::new(), &node.body);
    while let Stmt::For(node) = stmt {
        loops.push(node);
        stmt = &node.body;
    }
    loops
}

/// The loops that make up an index, as digits: each steps over all that the faster ones reach, and together with the
/// loops outside `first_depth` they reach every value below `size` once.
fn digits_of(
    binding: &Index,
    path: &[&Arc<For>],
    first_depth: usize,
    dimension: usize,
    size: i64,
) -> Option<Vec<Digit>> {
    let (mut digits, mut strides_outside) = (Vec::new(), Vec::new());
    for (depth, node) in path.iter().enumerate() {
        if !binding.mentions(node.var) {
            continue;
        }
        let (divisor, extent) = (binding.linear_coefficient(node.var)?, node.extent.as_constant()?);
        match depth < first_depth {
            true => strides_outside.push(divisor),
            false => digits.push(Digit { dimension, divisor, extent, depth, is_slowest: false }),
        }
    }
    digits.sort_by_key(|digit| (digit.divisor, digit.extent));
    let mut reach = 1i64;
    for digit in &digits {
        if digit.divisor != reach && digit.extent != 1 {
            return None;
        }
        reach = reach.checked_mul(digit.extent)?;
    }
    digits.retain(|digit| digit.extent != 1);
    let is_whole = reach >= size || !strides_outside.is_empty();
    if !is_whole || binding.constant_part() != 0 || strides_outside.iter().any(|stride| stride % reach != 0) {
        return None;
    }
    match digits.last_mut() {
        Some(slowest) => slowest.is_slowest = true,
        // A dimension that only loops outside step over comes first.
        None if size > 1 => {
            digits.push(Digit { dimension, divisor: 1, extent: 1, depth: 0, is_slowest: true });
        }
        None => {}
    }
    Some(digits)
}

/// The depth of the innermost loop along the last dimension of the block's output, which can run in lanes.
fn vector_depth(block: &Block, path: &[&Arc<For>]) -> Option<usize> {
    let var: VarId = reduction(block)?.store.indices.last()?.as_var()?;
    let binding = &block.iters.iter().find(|iter| iter.var == var)?.binding;
    path.iter().rposition(|node| binding.mentions(node.var) && !node.extent.is(1))
}

/// Neighbours that continue each other are one digit.
fn merge(digits: &[Digit]) -> Vec<Digit> {
    let mut merged: Vec<Digit> = Vec::new();
    for &digit in digits {
        match merged.last_mut() {
            Some(outer)
                if outer.dimension == digit.dimension && outer.divisor == digit.divisor * digit.extent =>
            {
                (outer.divisor, outer.extent) = (digit.divisor, outer.extent * digit.extent);
            }
            _ => merged.push(digit),
        }
    }
    merged
}

fn output(digit: &Digit) -> Index {
    let quotient = Index::var(VarId(digit.dimension as u32)).floor_div(digit.divisor);
    if digit.is_slowest { quotient } else { quotient.modulo(digit.extent) }
}
