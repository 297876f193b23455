//! `tensorize`

use std::sync::Arc;

use crate::ids::BlockId;
use crate::intrinsic::TensorIntrinsic;
use crate::program::Program;
use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::edit::{build_tile, check_tile, edit_block, edit_loop};
use crate::schedule::find::require_block;
use crate::schedule::prim::{Context, Outputs, Primitive};
use crate::schedule::{BlockOrLoopRv, Schedule, ScheduleError};
use crate::stmt::{Block, Intrinsic, Stmt, Symbol};

/// Marks a block's body as a [tensor intrinsic](crate::intrinsic). Given a loop, makes the block
/// inside it compute a whole tile first, as `blockize` does. A machine without the instruction executes the body.
///
/// ```text
/// before
/// kernel dot(in a: u8[4], in b: i8[32, 4], out c: i32[32]) {
///   for i in 0..32 {
///     block zero(vi: spatial 32 = i) {
///       c[vi] = 0i32
///     }
///   }
///   for i in 0..32 {
///     for k in 0..4 {
///       block dot(vi: spatial 32 = i, vk: reduce 4 = k) {
///         c[vi] = c[vi] + a[vk] as i32 * b[vi, vk] as i32
///       }
///     }
///   }
/// }
/// apply
/// %0 = get_block "dot"
/// %1, %2 = get_loops %0
/// %3, %4 = split %1, [2, 16]
/// tensorize loop %4, "vpdpbusd_16"
/// after
/// kernel dot(in a: u8[4], in b: i8[32, 4], out c: i32[32]) {
///   for i in 0..32 {
///     block zero(vi: spatial 32 = i) {
///       c[vi] = 0i32
///     }
///   }
///   for i_0 in 0..2 {
///     block dot(vio: spatial 2 = i_0) {
///       intrinsic vpdpbusd_16 {
///         for i_1 in 0..16 {
///           for k in 0..4 {
///             c[vio*16 + i_1] = c[vio*16 + i_1] + a[k] as i32 * b[vio*16 + i_1, k] as i32
///           }
///         }
///       }
///     }
///   }
/// }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Tensorize {
    /// The block, or the outermost loop of the tile that becomes one.
    pub place: BlockOrLoopRv,
    /// The intrinsic's name.
    pub intrinsic: Symbol,
}

impl Default for Tensorize {
    fn default() -> Self {
        Tensorize { place: BlockOrLoopRv::default(), intrinsic: "".into() }
    }
}

impl Primitive for Tensorize {
    const NAME: &'static str = "tensorize";
    const KEEPS_ORDER: bool = true;

    fn arguments<V: ArgumentVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        visitor.visit(Argument::Place(&mut self.place))?;
        visitor.visit(Argument::Text(&mut self.intrinsic))
    }

    fn apply(&self, context: &mut Context<'_>) -> Result<Outputs, ScheduleError> {
        let intrinsic = context.intrinsics.get(&self.intrinsic).ok_or(ScheduleError::UnknownIntrinsic)?;
        match self.place {
            BlockOrLoopRv::Block(block) => {
                let id = context.values.block(block)?;
                check(context.program, require_block(context.program, id)?, intrinsic)?;
                mark(context.program, id, intrinsic.name());
            }
            BlockOrLoopRv::Loop(target) => {
                let id = context.values.target_loop(target)?;
                let tile = check_tile(context.program, id)?;
                let mut program = context.program.clone();
                let made = build_tile(&mut program, &tile);
                check(&program, &made, intrinsic)?;
                let block = made.id;
                let made = Stmt::Block(Arc::new(made));
                edit_loop(&mut program.body, id, &mut |stmt| *stmt = made.clone());
                mark(&mut program, block, intrinsic.name());
                *context.program = program;
            }
        }
        Ok(Outputs::new())
    }
}

fn check(program: &Program, block: &Block, intrinsic: &TensorIntrinsic) -> Result<(), ScheduleError> {
    let is_marked = matches!(block.body, Stmt::Intrinsic(_));
    if is_marked || intrinsic.matches(program, &block.body).is_none() {
        return Err(ScheduleError::IntrinsicMismatch(block.id));
    }
    Ok(())
}

fn mark(program: &mut Program, id: BlockId, name: &Symbol) {
    edit_block(&mut program.body, id, &mut |block| {
        let body = std::mem::replace(&mut block.body, Stmt::nothing());
        block.body = Stmt::Intrinsic(Arc::new(Intrinsic { name: name.clone(), body }));
    });
}

impl Schedule {
    /// Marks a block's body, or a loop nest, as what a tensor intrinsic computes. See [`Tensorize`].
    ///
    /// # Errors
    /// When the target has no description of the intrinsic, or the body is not what it computes.
    pub fn tensorize(&mut self, place: impl Into<BlockOrLoopRv>, intrinsic: &str) -> Result<(), ScheduleError> {
        self.push(Tensorize { place: place.into(), intrinsic: intrinsic.into() }, None).map(drop)
    }
}
