//! Tensor intrinsics: small computations that one instruction of some machines performs.
//!
//! An intrinsic is data: a name and a *description*, a program whose parameters are the operands and
//! whose one block is the computation. `tensorize` finds a block to be such a computation
//! ([`TensorIntrinsic::matches`]) and marks it in the program ([`Intrinsic`](crate::stmt::Intrinsic)). The mark changes
//! no meaning: the interpreter, the features and every backend without the instruction execute the
//! marked statements. A backend that has the instruction emits it: it looks the name up and gets the [`Operand`]s by
//! matching once more.
//!
//! The descriptions of a kind of device come from its backend, as an [`IntrinsicSet`] that its
//! [`Target`](crate::target::Target) holds.
//!
//! ```text
//! kernel vpdpbusd_16(in a: u8[4], in b: i8[16, 4], inout c: i32[16]) {
//!   for i in 0..16 {
//!     for k in 0..4 {
//!       block dot(vi: spatial 16 = i, vk: reduce 4 = k) {
//!         c[vi] = c[vi] + a[vk] as i32 * b[vi, vk] as i32
//!       }
//!     }
//!   }
//! }
//! ```
//! [`TensorIntrinsic::mappings`] says how a block could be cut into such computations: what a schedule rule starts
//! from.
//!
//! The shape of a parameter fixes the distances in memory of its elements: those of `b` stand directly behind
//! each other. A distance that may be anything is a dimension of the description: in `b: i8[16, S]` the rows may lie
//! apart, and in `b: i8[16, S, 4]` by any multiple of four.

mod fragment;
mod mapping;
mod matching;
mod set;
#[cfg(test)]
mod tests;

pub use fragment::{FragmentLayout, LayoutError, TileBit};
pub use mapping::{MappedOperand, Mapping};
pub use matching::{Match, Operand};
pub use set::{IntrinsicSet, computes_tile, marked_outputs, marked_store};

use crate::analysis::block::{all_loads, single_store};
use crate::analysis::scope::{blocks, loops_around};
use crate::expr::{BinaryOp, Constant, Expr, ExprKind, Indices};
use crate::ids::{BufferId, VarId};
use crate::program::{Access, Param, Program};
use crate::stmt::{Block, Stmt, Store, Symbol};
use crate::text::ParseError;
use crate::verify::{Level, VerifyErrors, verify};
use crate::visit::for_each_expr;

/// A computation that one instruction of some machines performs.
#[derive(Clone, Debug)]
pub struct TensorIntrinsic {
    description: Program,
    /// The loops that enumerate the computation, outermost first, by the block's iterators.
    loops: Vec<(VarId, i64)>,
    store: Store,
    /// For each tensor parameter, which lane of a warp holds which element; empty where one thread executes the intrinsic.
    fragments: Vec<FragmentLayout>,
}

/// The name of the mark on statements that the lanes of a warp execute together, each for the elements of a
/// [fragment](crate::program::Scope::Fragment) that it holds. Lowering sets it; there is no description of this name.
pub const BY_WARP: &str = "by_warp";

/// Why a program describes no intrinsic.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DescriptionError {
    /// The text is no program.
    #[error("the description is no program: {0}")]
    Text(ParseError),
    /// The program is not well-formed.
    #[error("the description is not well-formed: {0}")]
    Malformed(VerifyErrors),
    /// The program has another form.
    #[error("the description must {0}")]
    Form(&'static str),
    /// The set has an intrinsic of this name already.
    #[error("there already is an intrinsic `{0}`")]
    Taken(Symbol),
}

/// The most elements that an intrinsic updates in vector registers. One that updates more, such as a product of tiles, does it
/// in registers of its own.
pub const MAX_VECTOR_OUTPUTS: i64 = 64;

impl TensorIntrinsic {
    /// An intrinsic of a description; the kernel's name is the intrinsic's.
    ///
    /// # Errors
    /// When the program is not one block, without initial value and guards, in loops of constant extents that are its
    /// iterators, with one store, where every access is to a parameter and indexed by distinct iterators.
    pub fn new(description: Program) -> Result<Self, DescriptionError> {
        verify(&description, Level::Blocks).map_err(DescriptionError::Malformed)?;
        let body = description.body.clone();
        let [block] = blocks(&body)[..] else { return Err(DescriptionError::Form("hold one block")) };
        let loops = loops_of(&body, block)?;
        let plain = DescriptionError::Form("have one block of one store, without initial value and guards");
        let (None, true, Some(store)) = (&block.init, block.guards.is_empty(), single_store(block)) else {
            return Err(plain);
        };
        let accesses = all_loads(block);
        let accesses = accesses.iter().map(|access| (access.buffer, access.indices));
        for (buffer, indices) in accesses.chain([(store.buffer, &store.indices)]) {
            check_access(&description, buffer, indices)?;
        }
        if description.params.iter().any(|param| matches!(param, Param::Scalar(..))) {
            return Err(DescriptionError::Form("have no scalars"));
        }
        Ok(TensorIntrinsic { loops, store: store.clone(), description, fragments: Vec::new() })
    }

    /// An intrinsic that the threads of a warp execute together, on operands in [fragments](crate::program::Scope::Fragment).
    /// `layouts` has a layout for each tensor parameter, in terms of its first and its last dimension.
    ///
    /// # Errors
    /// [`DescriptionError::Form`] when a layout is missing, or is not one of as many elements as the loops run through.
    pub fn of_warp(self, layouts: Vec<FragmentLayout>) -> Result<Self, DescriptionError> {
        let form = DescriptionError::Form("have a layout of matching size for each tensor");
        if layouts.len() != self.description.buffer_params().count() {
            return Err(form);
        }
        for ((param, _), layout) in self.description.buffer_params().zip(&layouts) {
            if self.extents_in(param) != Some([layout.rows(), layout.columns()]) {
                return Err(form);
            }
        }
        Ok(TensorIntrinsic { fragments: layouts, ..self })
    }

    /// Which lane of a warp holds which element, for each tensor parameter; nothing where one thread executes the intrinsic.
    pub fn fragments(&self) -> &[FragmentLayout] {
        &self.fragments
    }

    /// The extents of the loops that run through a parameter of two dimensions.
    fn extents_in(&self, param: BufferId) -> Option<[i64; 2]> {
        let mut found = None;
        let mut note = |indices: &Indices| {
            let extent = |index: &crate::index::Index| {
                let var = index.as_var()?;
                self.loops.iter().find(|(own, _)| *own == var).map(|(_, extent)| *extent)
            };
            if let [row, column] = &indices[..] {
                found = extent(row).zip(extent(column)).map(|(row, column)| [row, column]);
            }
        };
        if param == self.store.buffer {
            note(&self.store.indices);
        }
        crate::visit::for_each_load(&self.store.value, &mut |buffer, indices| {
            if buffer == param {
                note(indices);
            }
        });
        found
    }

    /// An intrinsic of a description's text.
    ///
    /// # Errors
    /// As [`TensorIntrinsic::new`], and when the text is no program.
    pub fn parse(description: &str) -> Result<Self, DescriptionError> {
        Self::new(description.parse().map_err(DescriptionError::Text)?)
    }

    /// The name by which traces and backends know it.
    pub fn name(&self) -> &Symbol {
        &self.description.name
    }

    /// The computation, as a program.
    pub fn description(&self) -> &Program {
        &self.description
    }

    /// The number that it adds to a factor of its products, if it does.
    pub fn offset(&self) -> Option<i64> {
        let number_in = |factor: &Expr| match factor.kind() {
            ExprKind::Binary(BinaryOp::Add, _, added) => match added.as_constant() {
                Some(Constant::Int(number)) => Some(number),
                _ => None,
            },
            _ => None,
        };
        let mut offset = None;
        for_each_expr(&self.store.value, &mut |node| {
            if let ExprKind::Binary(BinaryOp::Mul, first, second) = node.kind() {
                offset = offset.or_else(|| number_in(first)).or_else(|| number_in(second));
            }
        });
        offset
    }

    /// The number of elements that it updates.
    pub fn outputs(&self) -> i64 {
        let is_place = |var: VarId| self.store.indices.iter().any(|index| index.mentions(var));
        self.loops.iter().filter(|(var, _)| is_place(*var)).map(|(_, extent)| extent).product()
    }

    /// Whether one execution updates more elements than a vector has: a tile, in registers of its own.
    pub fn computes_tile(&self) -> bool {
        self.outputs() > MAX_VECTOR_OUTPUTS
    }
}

/// The block's iterators in the order of the loops that they are.
fn loops_of(body: &Stmt, block: &Block) -> Result<Vec<(VarId, i64)>, DescriptionError> {
    let form = DescriptionError::Form("have one loop of constant extent for each iterator");
    let around = loops_around(body, block.id).ok_or(form.clone())?;
    let mut loops = Vec::new();
    for node in &around {
        let mut own = block.iters.iter().filter(|iter| iter.binding.as_var() == Some(node.var));
        let (Some(iter), None) = (own.next(), own.next()) else { return Err(form) };
        let (Some(extent), true) = (node.extent.as_constant(), iter.extent == node.extent) else {
            return Err(form);
        };
        loops.push((iter.var, extent));
    }
    if loops.len() == block.iters.len() { Ok(loops) } else { Err(form) }
}

fn check_access(description: &Program, buffer: BufferId, indices: &Indices) -> Result<(), DescriptionError> {
    let form = DescriptionError::Form("access parameters only, by distinct iterators");
    let mut seen = Vec::new();
    for index in indices {
        let var = index.as_var().filter(|var| !seen.contains(var)).ok_or(form.clone())?;
        seen.push(var);
    }
    // A written tensor is updated: an element that the instruction leaves alone keeps its value.
    match description.access(buffer) {
        Some(Access::Input | Access::InOut) => Ok(()),
        Some(Access::Constant | Access::Output) | None => Err(form),
    }
}
