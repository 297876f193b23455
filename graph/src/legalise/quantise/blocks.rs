//! Products with matrices whose integers share a scale in blocks.
//!
//! Few rows read each byte once: the integers are multiplied as they lie, and the scale is applied to the sum of a block, as
//! memory bounds the time. Many rows would unpack each byte as often; there the product of numbers computes a tile of the matrix where it
//! needs one.

use tilewright_core::build::{KernelBuilder, UpdateOp, Value};
use tilewright_core::dtype::DType;
use tilewright_core::expr::BinaryOp;

use crate::legalise::emitter::{Emitter, Tensor, here, nest};
use crate::legalise::matmul::{Matrix, MatrixProduct};
use crate::legalise::operands::Operands;
use crate::legalise::pointwise::{moved, scaled};
use crate::legalise::reduction::product;
use crate::legalise::scalar::{add, computing, divide, multiply, number, subtract};
use crate::legalise::{Unsupported, unsupported};
use crate::operator::Panels;
use crate::symbolic::SymInt;
use crate::tensor::ElementType;

type Emitted = Result<Vec<Tensor>, Unsupported>;

/// The most rows that multiply integers as they lie. With three, numbers took 0.81 ms and integers 1.39 ms (4096 × 4096, Zen 5 class, two threads).
const FEW_ROWS: i64 = 2;

/// A matrix in blocks.
struct BlockMatrix {
    quants: Tensor,
    scales: Tensor,
    offsets: Option<Tensor>,
    panels: Panels,
}

/// Inputs: x, bytes, scales, and offsets that may be left out.
pub(crate) fn block_product(emitter: &mut Emitter, operands: &Operands<'_>) -> Emitted {
    let x = operands.tensor(emitter, 0)?;
    // Numbers that are computed ahead of calls would take eight times the memory.
    let (Some(quants), Some(scales)) = (operands.packed(emitter, 1)?, operands.packed(emitter, 2)?) else {
        return Err(Unsupported::Fault("bytes and scales are expected".to_owned()));
    };
    let offsets = operands.packed(emitter, 3)?;
    if !x.dtype.is_float() || computing(x.dtype) != DType::F32 || quants.dtype != DType::U8 {
        unsupported!("elements of types {} and {} are multiplied", x.element, quants.element);
    }
    let extents: Option<Vec<usize>> = quants
        .extents
        .iter()
        .map(|extent| extent.as_constant().and_then(|extent| usize::try_from(extent).ok()))
        .collect();
    let Some(extents) = extents else { unsupported!("the extents of the matrix depend on the call") };
    let panels = Panels::new(&operands.attributes(), &extents)?;
    if panels.columns == 1 && panels.lanes > 1 {
        unsupported!("a single column of a wider panel has no kernel form");
    }
    let parameters = [panels.panels, panels.blocks, panels.lanes].map(SymInt::from);
    if [Some(&scales), offsets.as_ref()].into_iter().flatten().any(|given| given.extents != parameters) {
        unsupported!("a scale does not belong to a block");
    }
    let Some((depth, rows)) = x.extents.split_last() else { unsupported!("scalars have no matrix product") };
    if *depth != SymInt::from(panels.depth()) {
        unsupported!("whether {depth} columns are {} depends on the call", panels.depth());
    }
    let is_few = emitter.at_most(&product(rows), &FEW_ROWS.into())?;
    let matrix = BlockMatrix { quants, scales, offsets, panels };
    Ok(vec![if is_few { matrix.multiply(emitter, &x)? } else { matrix.multiply_as_numbers(emitter, x)? }])
}

impl BlockMatrix {
    /// The integer behind the lowest `shift` bits of a byte, less the middle of its range, as a number.
    fn integer(&self, byte: &Value, shift: Value) -> Value {
        let integer = match self.panels.bits {
            8 => byte.clone(),
            bits => {
                let mask = Value::typed_int(DType::U8, (1 << bits) - 1);
                byte.binary(BinaryOp::Shr, shift).binary(BinaryOp::And, mask)
            }
        };
        subtract(&integer.cast(DType::I32).cast(DType::F32), &number(DType::F32, self.panels.middle() as f64))
    }

    /// The product of rows with the integers as they lie.
    fn multiply(&self, emitter: &mut Emitter, x: &Tensor) -> Result<Tensor, Unsupported> {
        let Panels { panels, blocks, bytes, lanes, .. } = self.panels;
        let count = x.rank() - 1;
        let per_byte = self.panels.per_byte();
        let with = |extents: &[usize]| self.beside_rows(x, extents);
        let zero = || number(DType::F32, 0.0);
        let by_block = emitter.filled(ElementType::F32, &with(&[panels, blocks, lanes]), zero())?;
        let totals = self.totals(emitter, x)?;
        let bounds = emitter.bounds(&[bytes.into()])?;
        let given: Vec<usize> = (0..count + 3).collect();
        let load = |builder: &KernelBuilder, row: &[Value], byte: &Value, place: usize| {
            let k = moved(&scaled(byte, per_byte as i64), -(place as i64));
            x.at(builder, &[row, &[k]].concat()).cast(DType::F32)
        };
        emitter.nest_in(&given, &with(&[panels, blocks, lanes]), &mut |builder, indices| {
            let (row, [panel, block, lane]) = indices.split_at(count) else {
                unreachable!("three follow the rows")
            };
            nest(builder, &bounds, &mut Vec::new(), &mut |builder, byte| {
                let bits =
                    self.quants.at(builder, &[panel.clone(), block.clone(), byte[0].clone(), lane.clone()]);
                let byte = add(&scaled(block, bytes as i64), &byte[0]);
                let terms = (0..per_byte).map(|place| {
                    let integer =
                        self.integer(&bits, Value::typed_int(DType::U8, (place * self.panels.bits) as i64));
                    multiply(&load(builder, row, &byte, place), &integer)
                });
                let sum = terms.reduce(|sum, term| add(&sum, &term)).expect("a byte has integers");
                by_block.store(builder, indices, UpdateOp::Add, sum, here!());
            });
        })?;
        let by_panel = emitter.filled(ElementType::F32, &with(&[panels, lanes]), zero())?;
        let bounds = emitter.bounds(&[blocks.into()])?;
        let given: Vec<usize> = (0..count + 2).collect();
        emitter.nest_in(&given, &with(&[panels, lanes]), &mut |builder, indices| {
            let (row, [panel, lane]) = indices.split_at(count) else { unreachable!("two follow the rows") };
            nest(builder, &bounds, &mut Vec::new(), &mut |builder, block| {
                let place = [panel.clone(), block[0].clone(), lane.clone()];
                let sums = by_block.at(builder, &[row, &place[..]].concat());
                let mut sum = multiply(&self.scales.at(builder, &place).cast(DType::F32), &sums);
                if let (Some(offsets), Some(totals)) = (&self.offsets, &totals) {
                    let total = totals.at(builder, &[row, &block[..1]].concat());
                    sum = add(&sum, &multiply(&offsets.at(builder, &place).cast(DType::F32), &total));
                }
                by_panel.store(builder, indices, UpdateOp::Add, sum, here!());
            });
        })?;
        self.columns(emitter, x, &by_panel)
    }

    /// The sums of each row's numbers by blocks, which offsets are multiplied with.
    fn totals(&self, emitter: &mut Emitter, x: &Tensor) -> Result<Option<Tensor>, Unsupported> {
        if self.offsets.is_none() {
            return Ok(None);
        }
        let size = self.panels.bytes * self.panels.per_byte();
        let mut extents = x.extents[..x.rank() - 1].to_vec();
        extents.push(self.panels.blocks.into());
        let totals = emitter.filled(ElementType::F32, &extents, number(DType::F32, 0.0))?;
        let bounds = emitter.bounds(&[size.into()])?;
        let given: Vec<usize> = (0..extents.len()).collect();
        emitter.nest_in(&given, &extents, &mut |builder, indices| {
            let (block, row) = indices.split_last().expect("a block follows the rows");
            nest(builder, &bounds, &mut Vec::new(), &mut |builder, k| {
                let k = add(&scaled(block, size as i64), &k[0]);
                let number = x.at(builder, &[row, &[k]].concat()).cast(DType::F32);
                totals.store(builder, indices, UpdateOp::Add, number, here!());
            });
        })?;
        Ok(Some(totals))
    }

    /// The product of rows with the numbers that the integers stand for.
    fn multiply_as_numbers(&self, emitter: &mut Emitter, x: Tensor) -> Result<Tensor, Unsupported> {
        let element = x.element;
        let numbers = self.unpack(emitter, &x)?;
        let (left, right) = (Matrix::new(x, false)?, Matrix::new(numbers, false)?);
        MatrixProduct::new(&left, &right)?.sums(emitter, element, &|value| value.cast(DType::F32))
    }

    /// The matrix as numbers, element by element, so that a product can compute a tile of it where it needs one.
    fn unpack(&self, emitter: &mut Emitter, x: &Tensor) -> Result<Tensor, Unsupported> {
        let Panels { columns, lanes, bytes, bits, .. } = self.panels;
        let extents = [self.panels.depth(), columns].map(SymInt::from);
        let numbers = emitter.scratch(x.element, &extents)?;
        let [lanes, bytes, per_byte] =
            [lanes, bytes, self.panels.per_byte()].map(|size| Value::int(size as i64));
        emitter.nest_in(&[0, 1], &extents, &mut |builder, indices| {
            let [k, column] = indices else { unreachable!("there are two loops") };
            let (panel, lane) = (divide(column, &lanes), column.binary(BinaryOp::Rem, lanes.clone()));
            let byte = divide(k, &per_byte);
            let block = divide(&byte, &bytes);
            let at = [panel.clone(), block.clone(), byte.binary(BinaryOp::Rem, bytes.clone()), lane.clone()];
            let shift = scaled(&k.binary(BinaryOp::Rem, per_byte.clone()), bits as i64).cast(DType::U8);
            let integer = self.integer(&self.quants.at(builder, &at), shift);
            let place = [panel, block, lane];
            let mut number = multiply(&integer, &self.scales.at(builder, &place).cast(DType::F32));
            if let Some(offsets) = &self.offsets {
                number = add(&number, &offsets.at(builder, &place).cast(DType::F32));
            }
            numbers.store(builder, indices, UpdateOp::Set, number.cast(x.dtype), here!());
        })?;
        Ok(numbers)
    }

    /// Extents behind those of the rows.
    fn beside_rows(&self, x: &Tensor, extents: &[usize]) -> Vec<SymInt> {
        let rows = x.extents[..x.rank() - 1].iter().cloned();
        rows.chain(extents.iter().map(|&extent| extent.into())).collect()
    }

    /// The columns of results in panels.
    fn columns(&self, emitter: &mut Emitter, x: &Tensor, by_panel: &Tensor) -> Result<Tensor, Unsupported> {
        let lanes = Value::int(self.panels.lanes as i64);
        let extents = self.beside_rows(x, &[self.panels.columns]);
        emitter.compute(x.element, &extents, &mut |builder, indices| {
            let (column, row) = indices.split_last().expect("a column follows the rows");
            let place = [divide(column, &lanes), column.binary(BinaryOp::Rem, lanes.clone())];
            by_panel.at(builder, &[row, &place[..]].concat()).cast(x.dtype)
        })
    }
}
