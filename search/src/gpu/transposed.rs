//! Element-wise blocks with an operand whose neighbours in memory are no neighbours in the result: tiles of it go through shared memory, so
//! that a warp reads the operand and writes the result along their rows.

use tilewright_core::analysis::block::{complete_store, loads, reads};
use tilewright_core::ids::BufferId;
use tilewright_core::program::Scope;
use tilewright_core::schedule::{BlockRv, LoopRv, Schedule, ScheduleError};
use tilewright_core::stmt::Block;
use tilewright_core::thread_axis::ThreadAxis;

use super::by_element::fuse_all;
use super::postproc::{bind_copy, variable};
use crate::space::rules::block::{block_of, has_free_loops};

/// The rows and the columns of a tile: as many as a warp has lanes.
const SIDE: i64 = 32;

/// The threads of a block.
const THREADS: i64 = 256;

/// The fewest elements of a row that are worth a tile: those of a sector of 16-bit elements.
const LEAST: i64 = 16;

/// The bytes of all banks of shared memory, and of one.
const BANKS_BYTES: i64 = 128;
const BANK: i64 = 4;

/// An operand that lies across the result.
struct Crossing {
    buffer: BufferId,
    /// The iterator along the rows of the result, and the dimension of the operand that it moves through.
    along_result: usize,
    dimension: usize,
    /// The iterator along the rows of the operand.
    along_operand: usize,
}

/// Copies tiles of an operand that lies across the result into shared memory. The answer is whether the block has just one such operand.
pub(super) fn transpose_in_tiles(schedule: &mut Schedule, block: BlockRv) -> Result<bool, ScheduleError> {
    let found = block_of(schedule, block)?;
    if !has_free_loops(schedule.program(), &found) {
        return Ok(false);
    }
    let Some(crossing) = crossing(schedule, &found) else { return Ok(false) };
    let loops = schedule.get_loops(block)?;
    let of_iter = |iter: usize| {
        let var = found.iters[iter].binding.as_var();
        let is_bound = |target: &LoopRv| var.is_some() && variable(schedule, *target).ok() == var;
        loops.iter().copied().find(is_bound)
    };
    let (Some(columns), Some(rows)) = (of_iter(crossing.along_result), of_iter(crossing.along_operand))
    else {
        return Ok(false);
    };
    let others: Vec<LoopRv> = loops.into_iter().filter(|other| ![columns, rows].contains(other)).collect();
    let columns = schedule.split(columns, &[None, Some(SIDE)])?;
    let rows = schedule.split(rows, &[None, Some(SIDE)])?;
    let tiles = [&others[..], &[rows[0], columns[0]]].concat();
    schedule.reorder(&[&tiles[..], &[rows[1], columns[1]]].concat())?;
    let number = reads(&found).iter().position(|read| *read == crossing.buffer).unwrap_or(0) as i64;
    let copy = schedule.cache_read(block, number, Scope::Shared)?;
    schedule.compute_at(copy, columns[0])?;
    // Elements of a column lie in different banks.
    let bytes = schedule.program().buffer(crossing.buffer).dtype.bytes() as i64;
    let (multiple, offset) = (BANKS_BYTES / bytes, (BANK / bytes).max(1));
    schedule.storage_align(copy, 0, crossing.dimension as i64, multiple, offset)?;
    let grid = fuse_all(schedule, &tiles)?;
    bind_copy(schedule, copy, 1, &[(ThreadAxis::ThreadX, THREADS)])?;
    let elements = fuse_all(schedule, &[rows[1], columns[1]])?;
    let parts = schedule.split(elements, &[None, Some(THREADS)])?;
    // The serial loop goes inside, where no barrier is needed between its iterations.
    schedule.reorder(&[parts[1], parts[0]])?;
    schedule.unroll(parts[0])?;
    schedule.bind(parts[1], ThreadAxis::ThreadX)?;
    schedule.bind(grid, ThreadAxis::BlockX)?;
    Ok(true)
}

/// The only operand of a block that lies across its result.
fn crossing(schedule: &Schedule, block: &Block) -> Option<Crossing> {
    let store = complete_store(block)?;
    let program = schedule.program();
    let position = |var| block.iters.iter().position(|iter| Some(iter.var) == var);
    let is_long = |iter: usize| block.iters[iter].extent.as_constant().is_some_and(|extent| extent >= LEAST);
    let along_result = position(store.indices.last()?.as_var())?;
    let var = block.iters[along_result].var;
    let accesses = loads(&block.body);
    let crosses = |buffer: BufferId| {
        let mut own = accesses.iter().filter(|access| access.buffer == buffer);
        let (access, None) = (own.next()?, own.next()) else { return None };
        let (last, others) = access.indices.split_last()?;
        let along_operand = position(last.as_var())?;
        let dimension = others.iter().position(|index| index.as_var() == Some(var))?;
        let is_mentioned_once = access.indices.iter().filter(|index| index.mentions(var)).count() == 1;
        (along_operand != along_result && is_mentioned_once).then_some(Crossing {
            buffer,
            along_result,
            dimension,
            along_operand,
        })
    };
    let global = reads(block).into_iter().filter(|read| program.buffer(*read).scope == Scope::Global);
    let mut found = global.filter_map(crosses);
    let only = found.next().filter(|_| found.next().is_none())?;
    (is_long(only.along_result) && is_long(only.along_operand)).then_some(only)
}

#[cfg(test)]
mod tests {
    use tilewright_core::program::Program;
    use tilewright_core::target::Target;

    use super::*;
    use crate::gpu::is_executable;

    /// Adds a row to a matrix, which is transposed if its indices are exchanged.
    fn program(m: i64, n: i64, indices: &str, shape: &str) -> Program {
        let text = format!(
            "kernel across(in x: f32[{shape}], in b: f32[{m}], out y: f32[{n}, {m}]) {{
  for i in 0..{n} {{ for j in 0..{m} {{
    block y(vi: spatial {n} = i, vj: spatial {m} = j) {{ y[vi, vj] = x[{indices}] + b[vj] }}
  }} }}
}}"
        );
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    fn tiled(program: Program) -> (Schedule, Result<bool, ScheduleError>) {
        let mut schedule = Schedule::new(program, Target::generic_gpu(), 0);
        let block = schedule.get_block("y").expect("it is there");
        let outcome = transpose_in_tiles(&mut schedule, block);
        (schedule, outcome)
    }

    #[test]
    fn operands_across_the_result_go_through_tiles() {
        for (m, n) in [(64, 96), (33, 65), (512, 16)] {
            let (schedule, outcome) = tiled(program(m, n, "vj, vi", &format!("{m}, {n}")));
            assert_eq!(outcome, Ok(true), "{}", schedule.program());
            assert!(is_executable(&schedule), "{}", schedule.program());
        }
    }

    #[test]
    fn operands_along_the_result_and_short_rows_do_not() {
        assert_eq!(tiled(program(64, 96, "vi, vj", "96, 64")).1, Ok(false));
        assert_eq!(tiled(program(64, 4, "vj, vi", "64, 4")).1, Ok(false));
    }
}
