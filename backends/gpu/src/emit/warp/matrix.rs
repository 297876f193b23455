//! Loads of fragments from shared memory, several matrices at once.
//!
//! `ldmatrix` loads matrices of eight rows of 16 bytes: each lane gives the address of a row, and gets four bytes of each matrix, as
//! the operands of products are divided among lanes. With `.trans`, elements of two bytes are exchanged across the diagonal (PTX ISA,
//! 8.0, "Warp-level matrix load instruction: ldmatrix").

use tilewright_core::expr::ExprKind;
use tilewright_core::ids::{BufferId, VarId};
use tilewright_core::index::Index;
use tilewright_core::intrinsic::{FragmentLayout, TileBit};
use tilewright_core::program::Scope;

use super::elements::{TileLoops, WarpNest};
use super::{LANES, Shape};
use crate::emit::builder::bits_of;
use crate::emit::{Generator, Outcome, Storage};
use crate::ptx::operand::{Operand, Register};
use crate::ptx::table::Op;
use crate::ptx::types::{Class, Type};

/// The bytes of a row of a matrix, and the bits of a row's number.
const ROW_BYTES: i64 = 16;
const ROW_BITS: usize = 3;
/// The bits of the number of a matrix among those of one instruction.
const MAX_MATRIX_BITS: usize = 2;

/// A fragment's tile as matrices.
struct Matrices {
    is_transposed: bool,
    /// The layout in which a lane's number chooses a row of a matrix, and the slot an element of that row and further matrices.
    rows: FragmentLayout,
    /// How many matrices one instruction loads.
    count: i64,
}

/// The dimension of a tile that runs along neighbours in memory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Along {
    Rows,
    Columns,
}

impl Matrices {
    /// The matrices of tiles with a layout, for elements of some bytes whose neighbours in memory lie along a dimension; `None` where lanes
    /// hold other elements than the instruction gives them.
    fn of(layout: &FragmentLayout, bytes: i64, along: Along) -> Option<Self> {
        let near = |bit: u32| match along {
            Along::Rows => TileBit::Row(bit),
            Along::Columns => TileBit::Column(bit),
        };
        let far = |bit: u32| match along {
            Along::Rows => TileBit::Column(bit),
            Along::Columns => TileBit::Row(bit),
        };
        let (lane, slot) = (layout.lane_bits(), layout.slot_bits());
        // The bits of an element's place in a register, and in a row.
        let (in_register, in_row) = match bytes {
            1 => (2, 4),
            2 => (1, 3),
            4 => (0, 2),
            _ => return None,
        };
        let all_near: Vec<TileBit> = (0..in_row).map(near).collect();
        let all_far: Vec<TileBit> = (0..ROW_BITS as u32).map(far).collect();
        let held: Vec<TileBit> = slot.get(..in_register)?.iter().chain(lane).copied().collect();
        let is_plain = held == [&all_near[..], &all_far].concat();
        let is_transposed = bytes == 2 && held == [&all_far[..], &all_near].concat();
        if !is_plain && !is_transposed {
            return None;
        }
        let others = &slot[in_register..];
        let (numbers, rest) = others.split_at(others.len().min(MAX_MATRIX_BITS));
        let rows =
            FragmentLayout::new([&all_far[..], numbers].concat(), [&all_near[..], rest].concat()).ok()?;
        Some(Matrices { is_transposed, rows, count: 1 << numbers.len() })
    }
}

impl Generator<'_> {
    /// Loads the tiles of a fragment as matrices, for some values of the loops besides those of rows and columns. The answer is
    /// `false`, and nothing is written, where the statement does something else than that.
    pub(super) fn load_matrices(
        &mut self,
        nest: &WarpNest,
        shape: &Shape,
        loops: TileLoops,
        others: &[(VarId, i64)],
    ) -> Outcome<bool> {
        let ExprKind::Load(source, indices) = nest.store.value.kind() else { return Ok(false) };
        let dtype = self.program.buffer(nest.store.buffer).dtype;
        let is_moved = nest.conditions.is_empty()
            && self.program.buffer(nest.store.buffer).scope == Scope::Fragment
            && self.program.buffer(*source).scope == Scope::Shared
            && self.program.buffer(*source).dtype == dtype;
        let ([index], [to]) = (&indices[..], &nest.store.indices[..]) else { return Ok(false) };
        if !is_moved {
            return Ok(false);
        }
        let known = |index: &Index| {
            index.substitute(&|var| {
                others.iter().find(|(other, _)| *other == var).map(|(_, value)| Index::constant(*value))
            })
        };
        let (index, to) = (known(&self.resolve(index)), known(&self.resolve(to)));
        let bytes = dtype.bytes() as i64;
        let Some(along) = neighbours_along(&index, loops, ROW_BYTES / bytes) else { return Ok(false) };
        let Some(matrices) = Matrices::of(&shape.layout, bytes, along) else { return Ok(false) };
        let Some(Storage::Fragment(fragment)) = self.storage.get(&nest.store.buffer).cloned() else {
            return Ok(false);
        };
        let mut loads = Vec::new();
        for row in (0..loops.row.1).step_by(shape.layout.rows() as usize) {
            for column in (0..loops.column.1).step_by(shape.layout.columns() as usize) {
                let at = |var: VarId| match var {
                    _ if var == loops.row.0 => Some(row),
                    _ if var == loops.column.0 => Some(column),
                    _ => None,
                };
                let place = to.evaluate(&at).map(|position| shape.place_of(position));
                let Some((0, element)) = place.filter(|(_, element)| element % shape.layout.slots() == 0)
                else {
                    return Ok(false);
                };
                loads.push(((row, column), element / fragment.per_register));
            }
        }
        let registers = shape.layout.slots() / fragment.per_register;
        let together = tiles_together(&tiles_of(&loads), matrices.count);
        for loads in loads.chunks(together) {
            let tiles = Progression::of(&tiles_of(loads));
            for group in (0..registers).step_by(matrices.count as usize) {
                let of_tile = |(_, first): &((i64, i64), i64)| {
                    let begin = (first + group) as usize;
                    fragment.registers[begin..begin + matrices.count as usize].to_vec()
                };
                let targets: Vec<Register> = loads.iter().flat_map(of_tile).collect();
                let slot = group / matrices.count * (ROW_BYTES / bytes);
                self.load_group_of_matrices(*source, &index, loops, (tiles, slot), &matrices, &targets)?;
            }
        }
        Ok(true)
    }

    /// The register that the instruction, which knows words alone, loads in place of another one.
    fn word_for(&mut self, target: Register) -> Operand {
        match target.class {
            Class::Word => target.into(),
            _ => self.builder.register(Class::Word).into(),
        }
    }

    fn load_group_of_matrices(
        &mut self,
        source: BufferId,
        index: &Index,
        loops: TileLoops,
        (tiles, slot): (Progression, i64),
        matrices: &Matrices,
        targets: &[Register],
    ) -> Outcome<()> {
        let lane = self.lane.ok_or_else(|| self.broken("a nest with fragments has no lanes"))?;
        let lanes = matrices.rows.lanes();
        let lane = Index::var(lane);
        // Lanes beyond those of the first tile give the addresses of the next ones.
        let (tile, lane) = if lanes < LANES {
            (lane.floor_div(lanes), lane.modulo(lanes))
        } else {
            (Index::constant(0), lane)
        };
        let (row, column) = matrices.rows.element_in_lane(&lane, slot);
        let [row, column] = [(row, 0), (column, 1)]
            .map(|(own, along)| own.offset(tiles.first[along]).add_scaled(&tile, tiles.step[along]));
        let index = index.substitute(&|var| match var {
            _ if var == loops.row.0 => Some(row.clone()),
            _ if var == loops.column.0 => Some(column.clone()),
            _ => None,
        });
        let Storage::Memory(place) = self.storage_of(source)? else {
            return Err(self.broken("memory that threads share is in registers"));
        };
        let address = self.address(source, place, &self.resolve(&index))?;
        let op = Op::LoadMatrices { count: targets.len() as u8, is_transposed: matrices.is_transposed };
        let words: Vec<Operand> = targets.iter().map(|target| self.word_for(*target)).collect();
        self.builder.push(op, None, words.iter().copied().chain([address]));
        for (target, word) in targets.iter().copied().zip(words) {
            if target.class != Class::Word {
                let value = self.builder.convert(Op::Move, bits_of(target.class), Type::B32, word);
                self.builder.assign(target, value);
            }
        }
        Ok(())
    }
}

/// The first rows and columns of tiles that lie at equal distances.
#[derive(Clone, Copy)]
struct Progression {
    first: [i64; 2],
    step: [i64; 2],
}

impl Progression {
    /// The progression that begins with the first two tiles.
    fn of(tiles: &[(i64, i64)]) -> Self {
        let first = tiles[0];
        let next = tiles.get(1).copied().unwrap_or(first);
        Progression { first: [first.0, first.1], step: [next.0 - first.0, next.1 - first.1] }
    }

    fn has(&self, tiles: &[(i64, i64)]) -> bool {
        (0..).zip(tiles).all(|(number, tile)| {
            [tile.0, tile.1] == [0, 1].map(|along: usize| self.first[along] + number * self.step[along])
        })
    }
}

fn tiles_of(loads: &[((i64, i64), i64)]) -> Vec<(i64, i64)> {
    loads.iter().map(|(tile, _)| *tile).collect()
}

/// How many tiles that follow each other one instruction loads, each of which has a number of matrices.
fn tiles_together(tiles: &[(i64, i64)], matrices: i64) -> usize {
    let most = (1 << MAX_MATRIX_BITS) / matrices as usize;
    let fits = |count: &usize| {
        tiles.len().is_multiple_of(*count)
            && tiles.chunks(*count).all(|chunk| Progression::of(chunk).has(chunk))
    };
    [4, 2].into_iter().filter(|count| *count <= most).find(fits).unwrap_or(1)
}

/// The dimension of a tile along which elements are neighbours in memory. Rows along it begin at multiples of `row` elements.
fn neighbours_along(index: &Index, loops: TileLoops, row: i64) -> Option<Along> {
    let is_along = |var: VarId| {
        let start = index.substitute(&|other| (other == var).then(|| Index::constant(0)));
        index.linear_coefficient(var) == Some(1)
            && start.constant_part() % row == 0
            && start.terms().iter().all(|term| term.coefficient % row == 0)
    };
    match (is_along(loops.column.0), is_along(loops.row.0)) {
        (true, _) => Some(Along::Columns),
        (_, true) => Some(Along::Rows),
        _ => None,
    }
}
