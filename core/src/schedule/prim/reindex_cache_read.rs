//! `reindex_cache_read`

use crate::analysis::block::{loads, reads};
use crate::expr::{Expr, Indices};
use crate::ids::BlockId;
use crate::index::map::{IndexMap, MapError};
use crate::program::{Buffer, Program, Scope};
use crate::schedule::access::{check_inside, copy_elements, place, single_element};
use crate::schedule::argument::{Argument, ArgumentVisitor};
use crate::schedule::edit::{block_ranges, edit_block, fresh_block_name, insert_statement, replace_loads, require_block};
use crate::schedule::prim::cache_read::{check_finished, check_written, scope_named};
use crate::schedule::prim::{Context, Outputs, Primitive};
use crate::schedule::{BlockRv, Schedule, ScheduleError, Value};
use crate::stmt::{IterKind, Symbol};

/// Lets a block read a copy of the elements that it reads of a buffer, laid out by its own iterators: the
/// element for a point stands where the map sends the point. An element that several points read may be copied several
/// times. This is how operands are packed for a tile.
///
/// ```text
/// before
/// kernel windows(in a: f32[10], in w: f32[3], out b: f32[8]) {
///   for i in 0..8 {
///     for r in 0..3 {
///       block b(vi: spatial 8 = i, vr: reduce 3 = r) {
///         init {
///           b[vi] = 0.0
///         }
///         b[vi] = b[vi] + a[vi + vr] * w[vr]
///       }
///     }
///   }
/// }
/// apply
/// %0 = get_block "b"
/// %1 = reindex_cache_read %0, 0, "global", (i, r) -> (i/4, r, i%4)
/// after
/// kernel windows(in a: f32[10], in w: f32[3], out b: f32[8]) {
///   buffer a_global: f32[2, 3, 4] global
///   for a0 in 0..8 {
///     for a1 in 0..3 {
///       block a_global(v0: spatial 8 = a0, v1: spatial 3 = a1) {
///         a_global[v0/4, v1, v0%4] = a[v0 + v1]
///       }
///     }
///   }
///   for i in 0..8 {
///     for r in 0..3 {
///       block b(vi: spatial 8 = i, vr: reduce 3 = r) {
///         init {
///           b[vi] = 0.0
///         }
///         b[vi] = b[vi] + a_global[vi/4, vr, vi%4] * w[vr]
///       }
///     }
///   }
/// }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ReindexCacheRead {
    /// The block that reads.
    pub block: BlockRv,
    /// Which of the buffers it reads, in order of appearance, from 0.
    pub read: i64,
    /// Where the copy lives: `global` or `local`.
    pub scope: Symbol,
    /// From the block's iterators to indices of the copy.
    pub map: IndexMap,
}

impl Default for ReindexCacheRead {
    fn default() -> Self {
        let scope = Scope::Global.text().into();
        ReindexCacheRead { block: BlockRv::default(), read: 0, scope, map: IndexMap::default() }
    }
}

impl Primitive for ReindexCacheRead {
    const NAME: &'static str = "reindex_cache_read";

    fn arguments<V: ArgumentVisitor>(&mut self, visitor: &mut V) -> Result<(), V::Error> {
        visitor.visit(Argument::Block(&mut self.block))?;
        visitor.visit(Argument::Number(&mut self.read))?;
        visitor.visit(Argument::Text(&mut self.scope))?;
        visitor.visit(Argument::Map(&mut self.map))
    }

    fn apply(&self, context: &mut Context<'_>) -> Result<Outputs, ScheduleError> {
        let id = context.values.block(self.block)?;
        let scope = scope_named(&self.scope)?;
        reindex_read(context.program, id, self.read, scope, &|_| self.map.clone())
    }
}

/// Lets a block read a copy laid out by a map, which is made for the element that the block reads.
pub(super) fn reindex_read(
    program: &mut Program,
    id: BlockId,
    number: i64,
    scope: Scope,
    map_for: &dyn Fn(&Indices) -> IndexMap,
) -> Result<Outputs, ScheduleError> {
    let block = require_block(program, id)?.clone();
    let missing = ScheduleError::NoSuchAccess { block: id, number };
    let position = usize::try_from(number).map_err(|_| missing)?;
    let source = *reads(&block).get(position).ok_or(missing)?;
    let position = check_finished(program, &block, source)?;
    check_written(program, &block, source)?;
    let element = single_element(&block, source)?;
    let placed = place(&block, &map_for(&element), &element)?;
    let in_init = block.init.iter().flat_map(loads).any(|access| access.buffer == source);
    let reduces = |position: &usize| block.iters[*position].kind == IterKind::Reduce;
    if in_init && placed.iters.iter().any(reduces) {
        return Err(ScheduleError::BadMap(MapError::NotInjective));
    }
    check_inside(program, &block, source, &element)?;

    let original = program.buffer(source).clone();
    let name: Symbol = format!("{}_{}", original.name, scope.text()).into();
    let dtype = original.dtype;
    let copy = program.add_buffer(Buffer { name: name.clone(), dtype, shape: placed.shape, scope });
    let copy_name = fresh_block_name(program, &name);
    let (nest, made) = copy_elements(
        program,
        copy_name,
        (&block, &placed.iters),
        (source, &element),
        (copy, &placed.indices),
    );
    edit_block(&mut program.body, id, &mut |block| {
        let ranges = block_ranges(block);
        let indices: Indices = placed.indices.iter().map(|index| index.simplify(&ranges)).collect();
        for part in block.init.iter_mut().chain([&mut block.body]) {
            replace_loads(part, source, &|_| Expr::load(dtype, copy, indices.iter().cloned()));
        }
    });
    insert_statement(&mut program.body, position, nest);
    Ok(Outputs::from_slice(&[Value::Block(made)]))
}

impl Schedule {
    /// Lets a block read a copy laid out by its own iterators, and gives the block that makes the copy. See
    /// [`ReindexCacheRead`].
    ///
    /// # Errors
    /// When the block reads several elements at a point, or the map loses some of them.
    pub fn reindex_cache_read(
        &mut self,
        block: BlockRv,
        read: i64,
        scope: Scope,
        map: IndexMap,
    ) -> Result<BlockRv, ScheduleError> {
        self.push_one(ReindexCacheRead { block, read, scope: scope.text().into(), map }).map(BlockRv)
    }
}
