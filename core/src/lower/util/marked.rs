//! The elements that a marked statement stores, as vectors.
//!
//! ```text
//! intrinsic dot { for i in 0..16 { for k in 0..4 { c[j + i] = c[j + i] + … } } }
//! for k in 0..4 { c[j + lane<16>] = c[j + lane<16>] + … }
//! ```
//!
//! To the loops around it, a marked statement accesses all its stored elements at once, as a statement on vectors does.
//! It keeps its loops, by which it is matched, so that this form serves analyses only. Elements that no vector register holds, such as the
//! accumulators of a tile product, stay in memory, and the backend handles them.

use std::sync::Arc;

use crate::expr::Indices;
use crate::ids::VarId;
use crate::index::Index;
use crate::intrinsic::MAX_VECTOR_OUTPUTS;
use crate::stmt::{For, Intrinsic, Stmt};
use crate::visit::substitute_stmt;

/// The loops of a marked statement that run over its stored elements, outermost first, with their extents.
pub(in crate::lower) struct StoreLoops(Vec<(VarId, i64)>);

impl StoreLoops {
    /// The loops of a marked statement; none when it has another form, or stores too many elements.
    pub(in crate::lower) fn of(node: &Intrinsic) -> Self {
        let mut loops = Vec::new();
        let mut current = &node.body;
        while let Stmt::For(node) = current {
            let Some(extent) = node.extent.as_constant() else { return StoreLoops(Vec::new()) };
            loops.push((node.var, extent));
            current = &node.body;
        }
        let Stmt::Store(store) = current else { return StoreLoops(Vec::new()) };
        loops.retain(|(var, _)| store.indices.iter().any(|index| index.mentions(*var)));
        let elements = loops.iter().try_fold(1_i64, |elements, (_, extent)| elements.checked_mul(*extent));
        match elements {
            Some(1..=MAX_VECTOR_OUTPUTS) => StoreLoops(loops),
            _ => StoreLoops(Vec::new()),
        }
    }

    /// The distance, in elements of the vector, of neighbours along each loop.
    fn strides(&self) -> impl Iterator<Item = (VarId, i64, i64)> {
        let mut inner = 1;
        self.0.iter().rev().map(move |(var, extent)| {
            let stride = inner;
            inner *= extent;
            (*var, *extent, stride)
        })
    }

    /// The value of a loop variable in each lane.
    fn lane_of(&self, wanted: VarId) -> Option<Index> {
        let lanes: i64 = self.0.iter().map(|(_, extent)| extent).product();
        let (_, extent, stride) = self.strides().find(|(var, ..)| *var == wanted)?;
        let lane = Index::lane(u32::try_from(lanes).ok()?).floor_div(stride);
        Some(if stride * extent == lanes { lane } else { lane.modulo(extent) })
    }

    /// Indices for all of the loops' iterations at once.
    pub(in crate::lower) fn in_lanes(&self, indices: &Indices) -> Indices {
        indices.iter().map(|index| index.substitute(&|var| self.lane_of(var))).collect()
    }

    /// The position of an iteration's element, when the vector's elements begin at `start`.
    pub(in crate::lower) fn place(&self, start: i64) -> Indices {
        let place = self.strides().fold(Index::constant(start), |place, (var, _, stride)| {
            place.add_scaled(&Index::var(var), stride)
        });
        Indices::from_iter([place])
    }
}

/// The body of a marked statement, with its stores as vectors.
pub(in crate::lower) fn in_lanes(node: &Intrinsic) -> Stmt {
    let loops = StoreLoops::of(node);
    let mut body = without(&node.body, &loops);
    substitute_stmt(&mut body, &|var| loops.lane_of(var));
    body
}

/// The statement without some of its loops.
fn without(stmt: &Stmt, loops: &StoreLoops) -> Stmt {
    let Stmt::For(node) = stmt else { return stmt.clone() };
    let body = without(&node.body, loops);
    if loops.0.iter().any(|(var, _)| *var == node.var) {
        return body;
    }
    Stmt::For(Arc::new(For { body, ..For::clone(node) }))
}

/// Calls `edit` with every marked statement.
pub(in crate::lower) fn for_each_marked(stmt: &mut Stmt, edit: &mut dyn FnMut(&mut Intrinsic)) {
    if let Stmt::Intrinsic(node) = stmt {
        edit(Arc::make_mut(node));
        return;
    }
    stmt.children_mut().into_iter().for_each(|child| for_each_marked(child, edit));
}
