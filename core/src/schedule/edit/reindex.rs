//! Copies of operands and results that are laid out by a map of a block's iterators.

use crate::analysis::block::{loads, reads, single_store};
use crate::expr::{Expr, Indices};
use crate::ids::BlockId;
use crate::index::map::{IndexMap, MapError};
use crate::program::{Buffer, Program, Scope};
use crate::schedule::ScheduleError;
use crate::schedule::check::buffer::{check_finished, check_sole_writer, check_written};
use crate::schedule::edit::{
    block_ranges, edit_block, fresh_block_name, insert_statement, redirect_accesses, replace_loads,
};
use crate::schedule::elements::{check_inside, copy_elements, iters_in, point_layout, single_element};
use crate::schedule::find::require_block;
use crate::stmt::{IterKind, Symbol};

/// Lets a block read a copy laid out by a map, which is made for the element that the block reads.
pub(in crate::schedule) fn reindex_read(
    program: &mut Program,
    id: BlockId,
    number: i64,
    scope: Scope,
    map_for: &dyn Fn(&Indices) -> IndexMap,
) -> Result<BlockId, ScheduleError> {
    let block = require_block(program, id)?.clone();
    let missing = ScheduleError::NoSuchAccess { block: id, number };
    let position = usize::try_from(number).map_err(|_| missing)?;
    let source = *reads(&block).get(position).ok_or(missing)?;
    let position = check_finished(program, &block, source)?;
    check_written(program, &block, source)?;
    let element = single_element(&block, source)?;
    let layout = point_layout(&block, &map_for(&element), &element)?;
    let in_init = block.init.iter().flat_map(loads).any(|access| access.buffer == source);
    let reduces = |position: &usize| block.iters[*position].kind == IterKind::Reduce;
    if in_init && layout.iters.iter().any(reduces) {
        return Err(ScheduleError::BadMap(MapError::NotInjective));
    }
    check_inside(program, &block, source, &element)?;

    let original = program.buffer(source).clone();
    let name: Symbol = format!("{}_{}", original.name, scope.text()).into();
    let dtype = original.dtype;
    let copy = program.add_buffer(Buffer { name: name.clone(), dtype, shape: layout.shape, scope });
    let copy_name = fresh_block_name(program, &name);
    let (nest, made) = copy_elements(
        program,
        copy_name,
        (&block, &layout.iters),
        (source, &element),
        (copy, &layout.indices),
    );
    edit_block(&mut program.body, id, &mut |block| {
        let ranges = block_ranges(block);
        let indices: Indices = layout.indices.iter().map(|index| index.simplify(&ranges)).collect();
        for part in block.init.iter_mut().chain([&mut block.body]) {
            replace_loads(part, source, &|_| Expr::load(dtype, copy, indices.iter().cloned()));
        }
    });
    insert_statement(&mut program.body, position, nest);
    Ok(made)
}

/// Lets a block write a buffer laid out by a map, which is made for the element that the block writes.
pub(in crate::schedule) fn reindex_write(
    program: &mut Program,
    id: BlockId,
    scope: Scope,
    map_for: &dyn Fn(&Indices) -> IndexMap,
) -> Result<BlockId, ScheduleError> {
    let block = require_block(program, id)?.clone();
    let store = single_store(&block).ok_or(ScheduleError::NotComplete(id))?;
    let target = store.buffer;
    let position = check_sole_writer(program, &block, target)?;
    let element = single_element(&block, target)?;
    let layout = point_layout(&block, &map_for(&element), &element)?;
    // Each position must belong to one element, and each element to one value of the spatial iterators.
    let spatial: Vec<usize> = (0..block.iters.len())
        .filter(|position| {
            block.iters[*position].kind == IterKind::Spatial && !block.iters[*position].extent.is(1)
        })
        .collect();
    if layout.iters != spatial || iters_in(&block, &element) != spatial {
        return Err(ScheduleError::BadMap(MapError::NotInjective));
    }

    let original = program.buffer(target).clone();
    let name: Symbol = format!("{}_{}", original.name, scope.text()).into();
    let dtype = original.dtype;
    let cache = program.add_buffer(Buffer { name, dtype, shape: layout.shape, scope });
    edit_block(&mut program.body, id, &mut |block| {
        let ranges = block_ranges(block);
        let indices: Indices = layout.indices.iter().map(|index| index.simplify(&ranges)).collect();
        redirect_accesses(block, target, dtype, &|_| (cache, indices.clone()));
    });
    let copy_name = fresh_block_name(program, &format!("{}_copy", original.name));
    let (nest, made) =
        copy_elements(program, copy_name, (&block, &spatial), (cache, &layout.indices), (target, &element));
    insert_statement(&mut program.body, position + 1, nest);
    Ok(made)
}
