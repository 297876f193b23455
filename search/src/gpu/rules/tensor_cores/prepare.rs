//! A block as a product of matrices: one iterator each for rows, columns and depth, whose extents tiles divide.

use tilewright_core::analysis::block::{complete_store, is_spatial, loads, reads, single_store};
use tilewright_core::analysis::scope::{consumers, writes_parameter};
use tilewright_core::annotation::OWN_POINTS;
use tilewright_core::expr::ExprKind;
use tilewright_core::ids::{BufferId, VarId};
use tilewright_core::index::Index;
use tilewright_core::index::map::IndexMap;
use tilewright_core::schedule::{BlockRv, Schedule, ScheduleError};
use tilewright_core::stmt::Block;

use super::product::{COLUMNS, Product, ROWS, points};
use super::tile::DeviceTile;
use crate::space::rules::block::block_of;

/// The products along rows, columns and depth that a block of threads can have in its tile without much waste.
const USEFUL_PRODUCTS: [i64; 3] = [8, 16, 2];

/// The share of points that may be added so that a tile has more products.
const WASTE: f64 = 0.1;

/// Brings a block into the form of a product. The answer is the iterators for the rows, the columns and the depth.
pub(super) fn prepare(
    schedule: &mut Schedule,
    block: BlockRv,
    product: &Product,
    of_device: Option<&DeviceTile>,
) -> Result<[usize; 3], ScheduleError> {
    let iters = match product.is_numbered() {
        true => number_together(schedule, block, product)?,
        false => product.iters.each_ref().map(|own| own[0]),
    };
    pad(schedule, block, product, iters, of_device)?;
    // Only now: padding asks for plain products.
    if product.rounds_factors {
        schedule.round_products(block)?;
    }
    Ok(iters)
}

/// Adds zeros behind operands until tiles divide the extents. Copies into shared memory take the place of the copies that this makes.
fn pad(
    schedule: &mut Schedule,
    block: BlockRv,
    product: &Product,
    iters: [usize; 3],
    of_device: Option<&DeviceTile>,
) -> Result<(), ScheduleError> {
    let found = block_of(schedule, block)?;
    let mut padding = vec![1; found.iters.len()];
    for (part, (iter, tile)) in iters.into_iter().zip(product.extents).enumerate() {
        let products = match (of_device, found.iters[iter].extent.as_constant()) {
            (Some(of_device), _) => of_device.all_products()[part],
            (None, Some(extent)) => useful_products(extent, tile, USEFUL_PRODUCTS[part]),
            (None, None) => return Err(ScheduleError::NotReduction(found.id)),
        };
        padding[iter] = tile * products;
    }
    let divides = |(iter, padding): (&tilewright_core::stmt::Iter, &i64)| {
        iter.extent.as_constant().is_some_and(|extent| extent % padding == 0)
    };
    if found.iters.iter().zip(&padding).all(divides) {
        return Ok(());
    }
    schedule.pad_einsum(block, &padding)?;
    if let Some(points) = points(&found, &(0..found.iters.len()).collect::<Vec<_>>()) {
        schedule.annotate(block, OWN_POINTS, points)?;
    }
    pass_on(schedule, block)
}

/// The largest power of two, up to `most`, of products whose tiles cover an extent with little more than single ones do.
fn useful_products(extent: i64, tile: i64, most: i64) -> i64 {
    let covered = |tile: i64| ((extent - 1) / tile + 1) * tile;
    let allowed = covered(tile) as f64 * (1.0 + WASTE);
    let powers = (0..63 - most.leading_zeros()).rev().map(|shift| 1_i64 << (shift + 1));
    powers.filter(|count| covered(tile * count) as f64 <= allowed).max().unwrap_or(1)
}

/// Numbers the iterators of each kind together, and lays out the operands so.
fn number_together(
    schedule: &mut Schedule,
    block: BlockRv,
    product: &Product,
) -> Result<[usize; 3], ScheduleError> {
    let found = block_of(schedule, block)?;
    let [first, second, (result, _)] = product.operands;
    if [ROWS, COLUMNS].iter().any(|part| product.iters[*part].len() > 1) {
        schedule.reindex(block, "write", 0)?;
        pass_on(schedule, block)?;
        number_result(schedule, block, &found, product, result)?;
    }
    for (buffer, parts) in [first, second] {
        if parts.iter().all(|part| product.iters[*part].len() == 1) {
            continue;
        }
        let chosen = iters_of(&found, buffer);
        let map = numbering(&found, &chosen, &parts.map(|part| &product.iters[part][..]));
        let map = map.ok_or(ScheduleError::NotInvertible(found.id))?;
        let number = reads(&*block_of(schedule, block)?)
            .iter()
            .position(|read| *read == buffer)
            .ok_or(ScheduleError::NotInvertible(found.id))? as i64;
        let copy = schedule.reindex(block, "read", number)?;
        schedule.transform_layout(block, "read", number, map.clone())?;
        schedule.transform_block_layout(copy, map)?;
    }
    let all: Vec<usize> = (0..found.iters.len()).collect();
    let map = numbering(&found, &all, &product.iters.each_ref().map(|iters| &iters[..]));
    let map = map.ok_or(ScheduleError::NotInvertible(found.id))?;
    let others = map.outputs() - 3;
    schedule.transform_block_layout(block, map)?;
    Ok([others, others + 1, others + 2])
}

/// Numbers rows together, and columns, in the results of a block and in the single block that reads them.
fn number_result(
    schedule: &mut Schedule,
    block: BlockRv,
    found: &Block,
    product: &Product,
    result: BufferId,
) -> Result<(), ScheduleError> {
    let refusal = ScheduleError::NotInvertible(found.id);
    let stored = single_store(&*block_of(schedule, block)?).ok_or(refusal)?.buffer;
    let [writer] = schedule.get_consumers(block)?[..] else { return Err(refusal) };
    let reader = block_of(schedule, writer)?;
    let parts = [ROWS, COLUMNS].map(|part| &product.iters[part][..]);
    let chosen = iters_of(found, result);
    let map = numbering(found, &chosen, &parts).ok_or(refusal)?;
    // The iterators of the reader that choose the element along each dimension.
    let accesses = loads(&reader.body);
    let access = accesses.iter().find(|access| access.buffer == stored).ok_or(refusal)?;
    let place = |index: &Index| {
        let var = index.as_var()?;
        reader.iters.iter().position(|iter| iter.var == var)
    };
    let own: Vec<usize> = access.indices.iter().map(place).collect::<Option<_>>().ok_or(refusal)?;
    let of_reader = |iters: &[usize]| -> Option<Vec<usize>> {
        iters.iter().map(|iter| own.get(chosen.iter().position(|other| other == iter)?).copied()).collect()
    };
    let rows = of_reader(parts[0]).ok_or(refusal)?;
    let columns = of_reader(parts[1]).ok_or(refusal)?;
    let all: Vec<usize> = (0..reader.iters.len()).collect();
    let of_reader = numbering(&reader, &all, &[&rows, &columns]).ok_or(refusal)?;
    schedule.transform_layout(block, "write", 0, map)?;
    schedule.transform_block_layout(writer, of_reader)
}

/// The iterators of a block that choose the element of a buffer, in their order: those that a copy by `reindex` has as its dimensions, so
/// that iterators of one value are left out.
fn iters_of(block: &Block, buffer: BufferId) -> Vec<usize> {
    let accesses = loads(&block.body);
    let stored = single_store(block).filter(|store| store.buffer == buffer).map(|store| &store.indices);
    let indices = accesses.iter().find(|access| access.buffer == buffer).map(|access| access.indices);
    let indices = stored.or(indices);
    let moves = |iter: &usize| {
        let own = &block.iters[*iter];
        !own.extent.is(1)
            && indices.is_some_and(|indices| indices.iter().any(|index| index.mentions(own.var)))
    };
    (0..block.iters.len()).filter(moves).collect()
}

/// The map that numbers each of some groups of iterators together, the last one fastest, behind all others. Its inputs are the
/// `chosen` iterators.
fn numbering(block: &Block, chosen: &[usize], groups: &[&[usize]]) -> Option<IndexMap> {
    let input = |iter: &usize| chosen.iter().position(|other| other == iter);
    let is_grouped = |iter: &usize| groups.iter().any(|group| group.contains(iter));
    let others = chosen.iter().filter(|iter| !is_grouped(iter));
    let mut outputs: Vec<Index> =
        others.filter_map(input).map(|input| Index::var(VarId(input as u32))).collect();
    for group in groups {
        let mut number = Index::constant(0);
        for iter in *group {
            let extent = block.iters[*iter].extent.as_constant()?;
            number = &number.scale(extent) + &Index::var(VarId(input(iter)? as u32));
        }
        outputs.push(number);
    }
    IndexMap::new(chosen.len() as u32, outputs)
}

/// Lets the reader of a copy of the results read these, where it is the single one of both, and computes single elements.
fn pass_on(schedule: &mut Schedule, block: BlockRv) -> Result<(), ScheduleError> {
    let [copy] = schedule.get_consumers(block)?[..] else { return Ok(()) };
    let found = block_of(schedule, copy)?;
    let is_copy =
        complete_store(&found).is_some_and(|store| matches!(store.value.kind(), ExprKind::Load(..)));
    let is_passed_on = match &consumers(schedule.program(), &found)[..] {
        [reader] => is_copy && !writes_parameter(schedule.program(), &found) && is_spatial(reader),
        _ => false,
    };
    if is_passed_on { schedule.compute_inline(copy) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::useful_products;

    #[test]
    fn tiles_have_many_products_where_that_adds_few_points() {
        for (extent, products) in
            [(1, 1), (16, 1), (17, 2), (128, 8), (130, 1), (1000, 8), (1009, 8), (33, 1)]
        {
            assert_eq!(useful_products(extent, 16, 8), products, "{extent}");
        }
    }
}
