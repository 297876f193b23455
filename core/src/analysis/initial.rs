//! Reductions without a point, of which only the initial values are computed.
//!
//! The loops of such a block may enumerate nothing at all (`for f in 0..4*K { … }` at `K = 0`), so that the
//! elements cannot be found by running them. They are the ones that the loops would touch if the reduction
//! had a point: [`initial_values`] runs the loops for sizes at which it has one, at its first point. That happens in
//! place of the outermost loop of the reduction that has no iteration, when the reduction's loops outside of it, which
//! have some, are at their first.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::expr::{BinaryOp, Expr};
use crate::ids::VarId;
use crate::index::{Base, Index, NO_MODULUS, Ranges};
use crate::stmt::{Annotations, Block, For, Guard, IterKind, LoopKind, Stmt};

/// The loops around a block by what they do for it.
pub(crate) struct Roles {
    /// The values of the iterators that do not reduce.
    elements: Vec<Index>,
    /// The values of the reduction iterators.
    reduce: Vec<Index>,
    /// The variables of loops that choose elements.
    spatial: Vec<VarId>,
    /// The variables of loops that choose values to combine.
    reduction: Vec<VarId>,
}

impl Roles {
    /// The roles by the values of the iterators and the guards.
    pub(crate) fn new(elements: Vec<Index>, reduce: Vec<Index>, guards: &[Guard]) -> Self {
        let vars_of = |indices: &[Index]| {
            let mut vars = Vec::new();
            indices.iter().for_each(|index| index.for_each_var(&mut |var| vars.push(var)));
            vars
        };
        let (spatial, mut reduction) = (vars_of(&elements), vars_of(&reduce));
        // A guard of the reduction leaves out points that the loops enumerate in excess: all of its loops are loops of the
        // reduction.
        for _ in guards {
            for guard in guards {
                let vars = vars_of(std::slice::from_ref(&guard.index));
                let chooses = |others: &[VarId]| vars.iter().any(|var| others.contains(var));
                if chooses(&reduction) && !chooses(&spatial) {
                    reduction
                        .extend(vars.into_iter().filter(|var| !reduction.contains(var)).collect::<Vec<_>>());
                }
            }
        }
        Roles { elements, reduce, spatial, reduction }
    }

    /// The roles of the loops around a block as it stands.
    pub(crate) fn of(block: &Block) -> Self {
        let values = |reduces: bool| {
            let own = block.iters.iter().filter(|iter| (iter.kind == IterKind::Reduce) == reduces);
            own.map(|iter| iter.binding.clone()).collect()
        };
        Roles::new(values(false), values(true), &block.guards)
    }

    pub(crate) fn reduces(&self, var: VarId) -> bool {
        self.reduction.contains(&var)
    }

    pub(crate) fn chooses_elements(&self, var: VarId) -> bool {
        self.spatial.contains(&var)
    }

    /// Whether a guard says which values are combined, not which elements have a value.
    pub(crate) fn guards_reduction_alone(&self, guard: &Guard) -> bool {
        let (mut of_reduction, mut of_element) = (false, false);
        guard.index.for_each_var(&mut |var| {
            of_reduction |= self.reduces(var);
            of_element |= self.chooses_elements(var);
        });
        of_reduction && !of_element
    }

    /// The values of the reduction iterators.
    pub(crate) fn reduction_values(&self) -> &[Index] {
        &self.reduce
    }

    /// The statement under the conditions that the reduction is at its first point.
    pub(crate) fn at_first_point(&self, stmt: Stmt) -> Stmt {
        at_zero(&self.reduce, stmt)
    }
}

/// The statement under the conditions that indices are zero.
pub(crate) fn at_zero(indices: &[Index], stmt: Stmt) -> Stmt {
    indices.iter().rev().filter(|index| !index.is(0)).fold(stmt, |stmt, index| {
        let zero = Expr::index(Index::constant(0));
        Stmt::when(Expr::binary(BinaryOp::Eq, Expr::index(index.clone()), zero), stmt)
    })
}

/// Statements under guards, the first outermost. One conditional for each guard, so that each can move on
/// its own.
pub(crate) fn under_guards<'a>(
    guards: impl IntoIterator<Item = &'a Guard, IntoIter: DoubleEndedIterator>,
    body: Stmt,
) -> Stmt {
    guards.into_iter().rev().fold(body, |body, guard| {
        let (index, bound) = (Expr::index(guard.index.clone()), Expr::index(guard.bound.clone()));
        Stmt::when(Expr::binary(BinaryOp::Lt, index, bound), body)
    })
}

/// Whether an extent may be zero.
pub(crate) fn may_be_empty(extent: &Index) -> bool {
    !extent.offset(-1).is_provably_nonnegative(&Ranges::new())
}

/// Whether an extent is a constant that leaves no iteration.
fn is_never_positive(extent: &Index) -> bool {
    extent.as_constant().is_some_and(|extent| extent < 1)
}

/// A reduction that may have no point, in loops that enumerate elements and points together, for sizes at
/// which it cannot be said which elements those would be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnknownElements;

/// The statement to execute before the first of `loops` in case that loop has no iteration: `init` for each element that the loops
/// would access. `loops` are those around `block` from some loop of its reduction on. The loops keep
/// their identities. `init`, `guards` and `roles` are in terms of the loops.
///
/// `None` when that loop always has an iteration.
pub(crate) fn initial_values<'a>(
    block: &Block,
    init: Stmt,
    guards: &[Guard],
    roles: &Roles,
    loops: impl DoubleEndedIterator<Item = &'a Arc<For>> + Clone,
) -> Result<Option<Stmt>, UnknownElements> {
    let Some(first) = loops.clone().next().filter(|node| may_be_empty(&node.extent)) else { return Ok(None) };
    let sizes = Sizes::with_a_point(block).ok_or(UnknownElements)?;
    // Loops that do not choose elements are at their first iteration.
    let at_start = |var: VarId| {
        let mut inside = loops.clone();
        (inside.any(|node| node.var == var) && !roles.chooses_elements(var)).then(|| Index::constant(0))
    };
    let at_first = |index: &Index| index.substitute(&at_start);
    let first_points: Vec<Index> = roles.reduce.iter().map(at_first).collect();
    let mut kept: Vec<Guard> = guards
        .iter()
        .filter(|guard| !roles.guards_reduction_alone(guard))
        .map(|guard| Guard { index: at_first(&guard.index), bound: sizes.apply(&guard.bound) })
        .collect();
    // The domain of the elements is that of the real sizes.
    let choosing = block.iters.iter().filter(|iter| iter.kind != IterKind::Reduce);
    for (iter, value) in choosing.zip(&roles.elements) {
        if sizes.apply(&iter.extent) != iter.extent {
            kept.push(Guard { index: value.clone(), bound: iter.extent.clone() });
        }
    }
    let nest = under_guards(&kept, at_zero(&first_points, init));
    let chosen = loops.filter(|node| roles.chooses_elements(node.var));
    // A constant extent says nothing about how many of its iterations were to choose elements.
    let is_lost = |node: &Arc<For>| roles.reduces(node.var) && is_never_positive(&node.extent);
    if chosen.clone().any(is_lost) || !chosen.clone().all(|node| sizes.cover(&node.extent)) {
        return Err(UnknownElements);
    }
    let nest = chosen.rev().fold(nest, |body, node| {
        let extent = sizes.apply(&node.extent);
        let annotations = Annotations::new();
        Stmt::For(Arc::new(For { extent, kind: LoopKind::Serial, annotations, body, ..For::clone(node) }))
    });
    let (extent, one) = (Expr::index(first.extent.clone()), Expr::index(Index::constant(1)));
    Ok(Some(Stmt::when(Expr::binary(BinaryOp::Lt, extent, one), nest)))
}

/// Values for what the sizes of a reduction are made of, such that none of them is zero.
struct Sizes {
    values: FxHashMap<Base, Size>,
}

/// A value for a part of sizes.
struct Size {
    value: Index,
    /// Whether it is larger than the real one where the real ones leave no point.
    is_larger: bool,
}

impl Sizes {
    /// `None` when no such values are found. Extents that are constants have no part that could take another value.
    fn with_a_point(block: &Block) -> Option<Sizes> {
        let mut sizes = Sizes { values: FxHashMap::default() };
        let reduce = || block.iters.iter().filter(|iter| iter.kind == IterKind::Reduce);
        let extents = || reduce().map(|iter| &iter.extent).filter(|extent| !is_never_positive(extent));
        for extent in extents() {
            let extent = sizes.apply(extent);
            if may_be_empty(&extent) {
                let (base, size) = solve(&extent)?;
                sizes.values.insert(base, size);
            }
        }
        extents().all(|extent| !may_be_empty(&sizes.apply(extent))).then_some(sizes)
    }

    fn apply(&self, index: &Index) -> Index {
        index.map_bases(&|base| match (self.values.get(base), base) {
            (Some(size), _) => Some(size.value.clone()),
            (None, Base::Sum(sum)) => Some(self.apply(sum)),
            (None, _) => None,
        })
    }

    /// Whether an extent is no smaller for these sizes than for real ones that leave no point.
    fn cover(&self, extent: &Index) -> bool {
        self.move_towards(extent, true)
    }

    fn move_towards(&self, index: &Index, larger: bool) -> bool {
        index.terms().iter().all(|term| {
            let larger = larger == (term.coefficient > 0);
            let is_monotonous = term.digit.modulus == NO_MODULUS;
            match (self.values.get(&term.digit.base), &term.digit.base) {
                (Some(size), _) => is_monotonous && size.is_larger == larger,
                (None, Base::Sum(sum)) if is_monotonous => self.move_towards(sum, larger),
                (None, base) => self.apply(&base.to_index()) == base.to_index(),
            }
        })
    }
}

/// A base in an extent, and a value of it for which the extent is at least 1.
fn solve(extent: &Index) -> Option<(Base, Size)> {
    let term = extent.terms().iter().find(|term| term.digit.modulus == NO_MODULUS)?;
    let rest = extent.add_scaled(&Index::digit(term.digit.clone()), -term.coefficient);
    let is_larger = term.coefficient > 0;
    let digit = match is_larger {
        true => rest.scale(-1).offset(1).ceil_div(term.coefficient),
        false => rest.offset(-1).floor_div(term.coefficient.checked_neg()?),
    };
    Some((term.digit.base.clone(), Size { value: digit.scale(term.digit.divisor), is_larger }))
}
