//! Statements that the lanes of a warp execute together: on fragments, of which each lane holds some elements in registers.
//!
//! In the program, the first lane executes such a statement for all elements. Here, the condition that says so falls away, and
//! each lane executes the statement for the elements that it holds.

mod elements;
mod fragment;
mod lanes;
mod matrix;
mod product;

use tilewright_core::ids::VarId;
use tilewright_core::program::{Program, Scope};
use tilewright_core::stmt::{Intrinsic, Stmt};
use tilewright_core::thread_axis::ThreadAxis;

pub(super) use self::fragment::{Fragment, Shape, find_shapes};
use super::nest::Nest;
use super::{Generator, Outcome, unsupported};

/// The threads of a warp.
const LANES: i64 = 32;

/// Whether a statement accesses a fragment.
pub(super) fn accesses_fragment(program: &Program, stmt: &Stmt) -> bool {
    let mut accesses = false;
    tilewright_core::flat::access::for_each_access(stmt, &mut |access| {
        accesses |= program.buffer(access.buffer).scope == Scope::Fragment;
    });
    accesses
}

/// The variable of the loop over the lanes of a warp, in a nest that has one.
pub(super) fn lane_variable(nest: &Nest<'_>) -> Option<VarId> {
    let found = nest.loops.iter().find(|(axis, _)| *axis == ThreadAxis::ThreadX);
    found.filter(|(_, node)| node.extent.is(LANES)).map(|(_, node)| node.var)
}

impl Generator<'_> {
    /// A marked statement that accesses fragments.
    pub(super) fn by_warp(&mut self, node: &Intrinsic) -> Outcome<()> {
        let Some(condition) = self.first_lane.take() else {
            return Err(unsupported(format!(
                "`{}`, where a fragment is accessed and not all lanes of a warp come to",
                self.program.name
            )));
        };
        let outcome = match self.product_of(node) {
            Some(found) => self.product(found),
            None => self.elements(&node.body),
        };
        self.first_lane = Some(condition);
        outcome
    }
}
