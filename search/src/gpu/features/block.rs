//! The facts about one block of a kernel.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use tilewright_core::analysis::block::{reads, writes};
use tilewright_core::analysis::region::{AccessKind, bound_accesses};
use tilewright_core::annotation::{OWN_POINTS, PIPELINE_STAGE};
use tilewright_core::ids::{BufferId, VarId};
use tilewright_core::index::{Index, Term};
use tilewright_core::program::{Program, Scope};
use tilewright_core::stmt::{Block, For, IterKind, LoopKind, Stmt};
use tilewright_core::thread_axis::WARP;
use tilewright_core::visit::for_each_stmt;

use super::access::{AccessFact, Axes, RawAccess, describe};
use super::place::{Place, SYMBOLIC_EXTENT};
use super::product::Product;
use crate::cpu::features::arithmetic::Arithmetic;

/// A block, the loops around it, and its accesses.
pub(super) struct Located<'p> {
    pub(super) block: &'p Arc<Block>,
    pub(super) path: Vec<&'p Arc<For>>,
    /// The loops in the body of a block that computes a tile at each of its points.
    pub(super) inside: Vec<(VarId, i64)>,
    pub(super) accesses: Vec<RawAccess>,
}

/// The facts about one block of a kernel.
#[derive(Clone, Debug)]
pub(crate) struct BlockFacts {
    /// Points that one thread computes.
    pub(crate) points: f64,
    /// Threads of a block of threads that compute points.
    pub(crate) threads: f64,
    /// Iterations of loops that are not written out, in one thread.
    pub(crate) iterations: f64,
    /// Iterations of loops outside of the loops over threads in which threads write memory that they share, and wait for each other.
    pub(crate) rounds: f64,
    /// How many iterations of the innermost pipelined loop around it are under way at once: their loads overlap.
    pub(crate) stages: f64,
    /// Copies of the body in the code.
    pub(crate) copies: f64,
    /// Copies of the body, or products of a warp on tensor cores, that do not wait for each other.
    pub(crate) independent: f64,
    /// Points of the block's whole domain, without those that padding added.
    pub(crate) domain: f64,
    /// The instruction of tensor cores that computes it, if one does.
    pub(crate) product: Option<Product>,
    /// Whether the block combines values.
    pub(crate) is_reduction: bool,
    /// Whether the condition of a guard is tested at each point.
    pub(crate) is_guarded: bool,
    /// Operations at a point.
    pub(crate) arithmetic: Arithmetic,
    /// Bytes of an element of the results.
    pub(crate) element_bytes: i64,
    /// Whether the results are floats.
    pub(crate) is_float: bool,
    /// Digits of indices that divisions make, and that change in serial loops.
    pub(crate) divisions: f64,
    pub(crate) accesses: Vec<AccessFact>,
}

impl<'p> Located<'p> {
    pub(super) fn new(program: &Program, block: &'p Arc<Block>, path: Vec<&'p Arc<For>>) -> Self {
        let mut accesses = Vec::new();
        let mut add = |buffer, kind, is_store| {
            let declared = program.buffer(buffer);
            for indices in bound_accesses(block, buffer, kind) {
                let bytes = declared.dtype.bytes() as i64;
                accesses.push(RawAccess { buffer, scope: declared.scope, is_store, bytes, indices });
            }
        };
        reads(block).into_iter().for_each(|buffer| add(buffer, AccessKind::Read, false));
        writes(block).into_iter().for_each(|buffer| add(buffer, AccessKind::Write, true));
        let mut inside = Vec::new();
        for_each_stmt(&block.body, &mut |stmt| {
            if let Stmt::For(node) = stmt {
                inside.push((node.var, node.extent.as_constant().unwrap_or(SYMBOLIC_EXTENT).max(0)));
            }
        });
        Located { block, path, inside, accesses }
    }

    /// Whether the lanes of a warp execute the block together: it accesses a fragment.
    pub(super) fn is_by_warp(&self) -> bool {
        self.accesses.iter().any(|access| access.scope == Scope::Fragment)
    }

    /// The points that each thread computes at one point of the block: less than one where the lanes of a warp divide one.
    pub(super) fn share(&self) -> f64 {
        let tile: f64 = self.inside.iter().map(|(_, extent)| *extent as f64).product();
        if self.is_by_warp() { tile / WARP as f64 } else { tile }
    }

    /// Whether iterations of a loop are points of a reduction.
    pub(super) fn is_reduced_by(&self, var: VarId) -> bool {
        let reduces =
            |iter: &tilewright_core::stmt::Iter| iter.kind == IterKind::Reduce && iter.binding.mentions(var);
        self.block.iters.iter().any(reduces)
    }

    /// Whether a loop is written out because it chooses elements of a fragment, which are registers with fixed numbers. Loops whose
    /// iterations have fragments of their own are none of these.
    fn chooses_elements(&self, var: VarId, places: &FxHashMap<BufferId, Place>) -> bool {
        self.accesses.iter().any(|access| {
            access.scope == Scope::Fragment
                && access.indices.iter().any(|index| index.mentions(var))
                && !places.get(&access.buffer).is_some_and(|place| place.fixed.contains(&var))
        })
    }

    /// How many products of a warp on tensor cores are independent of each other: those of different results, whose loops are written out.
    fn independent_products(&self) -> f64 {
        let of_results =
            self.path.iter().filter(|node| node.kind == LoopKind::Serial && !self.is_reduced_by(node.var));
        of_results.map(|node| self.extent(node)).product()
    }

    /// The iterations of a loop; a guess where they are symbolic.
    pub(super) fn extent(&self, node: &For) -> f64 {
        node.extent.as_constant().unwrap_or(SYMBOLIC_EXTENT).max(0) as f64
    }

    /// The stages of the innermost pipelined loop around the block; 1 where there is none.
    pub(super) fn stages(&self) -> i64 {
        let stages = self.path.iter().rev().find_map(|node| PIPELINE_STAGE.get(&node.annotations));
        stages.and_then(|stages| stages.into_iter().max()).map_or(1, |last| last.max(0) + 1)
    }

    /// The loops over threads around the block, `x` first.
    pub(super) fn axes(&self) -> Axes {
        let mut axes: Axes = SmallVec::new();
        for node in &self.path {
            if let LoopKind::Bound(axis) = node.kind
                && axis.is_of_block()
            {
                axes.push((axis.number(), node.var, node.extent.as_constant().unwrap_or(1).max(1)));
            }
        }
        axes.sort_unstable();
        axes
    }

    /// The facts, for buffers at some places, where threads wait for each other in the iterations of some loops.
    pub(super) fn facts(
        &self,
        program: &Program,
        places: &FxHashMap<BufferId, Place>,
        exchanges: &FxHashSet<VarId>,
    ) -> BlockFacts {
        let axes = self.axes();
        let (mut points, mut iterations, mut rounds, mut copies) = (1.0, 0.0, 1.0, 1.0);
        let mut is_outside = !axes.is_empty();
        for node in &self.path {
            let extent = self.extent(node);
            match node.kind {
                LoopKind::Bound(axis) if axis.is_of_blocks() => continue,
                LoopKind::Bound(axis) if axis.is_of_block() => {
                    is_outside = false;
                    continue;
                }
                LoopKind::Serial | LoopKind::Parallel if self.chooses_elements(node.var, places) => {}
                LoopKind::Serial | LoopKind::Parallel => iterations += points * extent / copies,
                _ => copies *= extent,
            }
            points *= extent;
            rounds *= if is_outside && exchanges.contains(&node.var) { extent } else { 1.0 };
        }
        let lanes = if self.is_by_warp() { WARP as f64 } else { 1.0 };
        let tile: f64 = self.inside.iter().map(|(_, extent)| *extent as f64).product();
        let written = writes(self.block).first().map(|buffer| program.buffer(*buffer).dtype);
        let domain = self.block.iters.iter().map(|iter| iter.extent.as_constant().unwrap_or(SYMBOLIC_EXTENT));
        // Digits that no serial loop changes are computed once.
        let is_changing = |term: &&Term| {
            let mut is_changing = false;
            Index::digit(term.digit.clone()).for_each_var(&mut |var| {
                let own = self.path.iter().find(|node| node.var == var);
                is_changing |= own.is_some_and(|node| node.kind == LoopKind::Serial);
            });
            !term.digit.is_whole() && is_changing
        };
        let divided = |access: &RawAccess| {
            let terms = access.indices.iter().flat_map(|index| index.terms().iter());
            terms.filter(is_changing).count() as f64
        };
        let product = if self.is_by_warp() { Product::of(program, self) } else { None };
        let described = |access: &RawAccess| describe(self, access, &axes, places);
        BlockFacts {
            points: points * self.share(),
            threads: lanes * axes.iter().map(|(_, _, extent)| *extent as f64).product::<f64>(),
            iterations,
            rounds,
            stages: self.stages() as f64,
            copies,
            independent: if product.is_some() { self.independent_products() } else { copies },
            domain: match OWN_POINTS.get(&self.block.annotations) {
                Some(points) => points as f64,
                None => tile * domain.map(|extent| extent as f64).product::<f64>(),
            },
            product,
            is_reduction: self.block.iters.iter().any(|iter| iter.kind == IterKind::Reduce)
                || matches!(self.block.body, Stmt::Intrinsic(_)),
            is_guarded: !self.block.guards.is_empty(),
            arithmetic: Arithmetic::of(self.block, &[]),
            element_bytes: written.map_or(4, |dtype| dtype.bytes() as i64),
            is_float: written.is_none_or(|dtype| dtype.is_float()),
            divisions: self.accesses.iter().map(divided).sum(),
            accesses: self.accesses.iter().map(described).collect(),
        }
    }
}
