//! Products with a matrix of integers that share a scale in blocks.

use crate::deduce;
use crate::legalise::quantise as kernels;
use crate::operator::attribute::{Int, IntOr};
use crate::operator::evaluate::{one, refuse};
use crate::operator::linear::matmul_wide;
use crate::operator::{Arguments, Fault, OWN_DOMAIN, Operator, ResultOrder, Value};
use crate::tensor::{HostTensor, count};

/// Inputs: x `[…, K]`, bytes `[P, B, J, L]`, scales `[P, B, L]`, and offsets `[P, B, L]` that may be left out. The result is `[…, columns]`.
///
/// Column `p·L + l` of the matrix is lane `l` of panel `p`. Each byte of its block `b` holds `8 / bits` integers, the lowest bits first,
/// so that `K = B·J·8/bits`. An integer `q` stands for the number `(q - 2^(bits-1))·scale + offset`.
const BLOCK_PRODUCT: Operator = Operator::new("block_product", "BlockProduct", block_product)
    .domain(OWN_DOMAIN)
    .deduce(deduce::block_product)
    .legalise(kernels::block_product)
    .result_order(ResultOrder::Rows)
    .inputs(3, 4)
    .attributes(&[("bits", IntOr(4)), ("columns", Int)]);

/// Inputs: scales `[N, B]`, and the zero points of these blocks as integers in bytes `[N, Z]`, the lowest bits first; `Z` bytes hold at least `B`
/// integers. The result has the offset of each block, for [`BLOCK_PRODUCT`]: `(2^(bits-1) - zero point)·scale`.
const BLOCK_OFFSETS: Operator = Operator::new("block_offsets", "BlockOffsets", block_offsets)
    .domain(OWN_DOMAIN)
    .deduce(deduce::same)
    .inputs(2, 2)
    .attributes(&[("bits", IntOr(4))]);

pub(super) const OPERATORS: &[Operator] = &[BLOCK_PRODUCT, BLOCK_OFFSETS];

/// The sizes of a matrix in blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Panels {
    pub(crate) panels: usize,
    pub(crate) blocks: usize,
    /// Bytes in a block.
    pub(crate) bytes: usize,
    pub(crate) lanes: usize,
    /// Bits of an integer.
    pub(crate) bits: usize,
    pub(crate) columns: usize,
}

impl Panels {
    /// The sizes of the bytes' extents, and of the attributes.
    ///
    /// # Errors
    /// When they do not fit each other.
    pub(crate) fn new(arguments: &Arguments<'_>, extents: &[usize]) -> Result<Self, Fault> {
        let bits = arguments.int_or_default("bits");
        let Some(columns) = arguments.int("columns").and_then(|columns| usize::try_from(columns).ok()) else {
            refuse!("attribute columns must be a number of columns");
        };
        let (&[panels, blocks, bytes, lanes], 1 | 2 | 4 | 8) = (extents, bits) else {
            refuse!(
                "integers of {bits} bits in bytes of shape {extents:?}: 1, 2, 4 or 8 bits and four dimensions are expected"
            );
        };
        if columns > panels.saturating_mul(lanes) {
            refuse!("{columns} columns do not fit into {panels} panels of {lanes}");
        }
        Ok(Panels { panels, blocks, bytes, lanes, bits: bits as usize, columns })
    }

    /// Integers in a byte.
    pub(crate) fn per_byte(self) -> usize {
        8 / self.bits
    }

    /// The integer that stands for zero where there are no offsets.
    pub(crate) fn middle(self) -> i64 {
        1 << (self.bits - 1)
    }

    /// The number of rows of the matrix.
    pub(crate) fn depth(self) -> usize {
        self.blocks.saturating_mul(self.bytes).saturating_mul(self.per_byte())
    }
}

fn block_product(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let (x, quants) = (arguments.tensor(0)?, arguments.tensor(1)?);
    let panels = Panels::new(arguments, quants.shape())?;
    let parameters = [panels.panels, panels.blocks, panels.lanes];
    let parameter = |place: usize| -> Result<Option<Vec<f64>>, Fault> {
        match arguments.optional(place)? {
            Some(given) if given.shape() != parameters => {
                refuse!("input {place} has shape {:?}, {parameters:?} is expected", given.shape())
            }
            _ => arguments.optional_numbers(place),
        }
    };
    let Some(scales) = parameter(2)? else { refuse!("input 2 is missing") };
    let (offsets, quants) = (parameter(3)?, arguments.slice::<u8>(1)?);
    let number = |k: usize, column: usize| {
        let (panel, lane) = (column / panels.lanes, column % panels.lanes);
        let byte = k / panels.per_byte();
        let place = (panel * panels.blocks + byte / panels.bytes) * panels.lanes + lane;
        let byte = quants[(panel * panels.blocks * panels.bytes + byte) * panels.lanes + lane];
        let integer = part(byte, k % panels.per_byte(), panels.bits) - panels.middle();
        integer as f64 * scales[place] + offsets.as_ref().map_or(0.0, |offsets| offsets[place])
    };
    let shape = [panels.depth(), panels.columns];
    let mut matrix = Vec::with_capacity(count(&shape)?);
    for k in 0..panels.depth() {
        matrix.extend((0..panels.columns).map(|column| number(k, column)));
    }
    let numbers = arguments.optional_numbers(0)?.unwrap_or_default();
    let (products, shape) = matmul_wide((&numbers[..], x.shape()), (&matrix[..], &shape))?;
    one(HostTensor::new(&shape, products)?.cast(x.element())?)
}

/// An integer of some bits in a byte; the first one has the lowest bits.
fn part(byte: u8, place: usize, bits: usize) -> i64 {
    i64::from(byte >> (place * bits) & 0xff >> (8 - bits))
}

fn block_offsets(arguments: &Arguments<'_>) -> Result<Vec<Value>, Fault> {
    let (scales, zeros) = (arguments.tensor(0)?, arguments.tensor(1)?);
    let bits = arguments.int_or_default("bits");
    if !matches!(bits, 1 | 2 | 4 | 8) {
        refuse!("zero points of {bits} bits: 1, 2, 4 or 8 bits are expected");
    }
    let (bits, per_byte) = (bits as usize, 8 / bits as usize);
    let (&[rows, blocks], &[zero_rows, bytes]) = (scales.shape(), zeros.shape()) else {
        refuse!(
            "scales of shape {:?} and zero points of shape {:?}: matrices are expected",
            scales.shape(),
            zeros.shape()
        );
    };
    if rows != zero_rows || blocks > bytes.saturating_mul(per_byte) {
        refuse!("zero points of shape {:?} do not fit scales of shape {:?}", zeros.shape(), scales.shape());
    }
    let zeros = arguments.slice::<u8>(1)?;
    let Some(mut offsets) = arguments.optional_numbers(0)? else { refuse!("input 0 is missing") };
    let middle = 1i64 << (bits - 1);
    for (place, offset) in offsets.iter_mut().enumerate() {
        let (row, block) = (place / blocks, place % blocks);
        let byte = zeros[row * bytes + block / per_byte];
        *offset *= (middle - part(byte, block % per_byte, bits)) as f64;
    }
    one(HostTensor::new(&[rows, blocks], offsets)?.cast(scales.element())?)
}
