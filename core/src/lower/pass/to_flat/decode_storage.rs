//! Replaces [storage types](crate::dtype::DType::is_storage_only) by bytes and computations on them, so that backends know none.
//!
//! ```text
//! y[i] = w[i] as f32                                                            w: int4[N]
//! y[i] = bitcast<i8>((w[i/2] >> index(4·(i%2)) as u8) << 4u8) >> 4i8 as f32     w: u8[(N + 1)/2]
//! ```
//!
//! Floats of 8 bits become the bits of an `f32` by integer arithmetic, and back with rounding to nearest, ties to even. The
//! code has no branches, so that it vectorises. Elements that share a byte can be loaded only: a store would also change its
//! neighbour, which another thread may store at the same time.

use rustc_hash::FxHashMap;

use crate::dtype::DType;
use crate::expr::{BinaryOp, Expr, ExprKind, UnaryOp};
use crate::ids::BufferId;
use crate::index::{Base, Index};
use crate::lower::{LowerError, LowerOptions};
use crate::program::Program;
use crate::stmt::Stmt;
use crate::tensor::narrow;
use crate::visit::{for_each_expr, for_each_stmt, rewrite_stmt};

/// Replaces storage types by bytes.
pub(in crate::lower) fn decode_storage(program: &mut Program, _: &LowerOptions) -> Result<(), LowerError> {
    let stored: FxHashMap<BufferId, DType> = program
        .buffers()
        .filter(|(_, buffer)| buffer.dtype.is_storage_only())
        .map(|(id, buffer)| (id, buffer.dtype))
        .collect();
    if stored.is_empty() && !converts(&program.body) {
        return Ok(());
    }
    check_stores(program, &stored)?;
    let decoder = Decoder { stored: &stored };
    rewrite_stmt(&mut program.body, &|index| decoder.index(index), &|expr| Some(decoder.either(expr)));
    for (&id, dtype) in &stored {
        let buffer = program.buffer_mut(id);
        buffer.dtype = DType::U8;
        if dtype.is_packed() {
            buffer.shape[0] = buffer.shape[0].ceil_div(2);
        }
    }
    Ok(())
}

/// Whether a statement converts to a storage type.
fn converts(stmt: &Stmt) -> bool {
    let mut found = false;
    for_each_stmt(stmt, &mut |stmt| {
        let expr = match stmt {
            Stmt::Store(node) => &node.value,
            Stmt::If(node) => &node.condition,
            _ => return,
        };
        for_each_expr(expr, &mut |node| found |= node.dtype().is_storage_only());
    });
    found
}

fn check_stores(program: &Program, stored: &FxHashMap<BufferId, DType>) -> Result<(), LowerError> {
    let mut refused = None;
    for_each_stmt(&program.body, &mut |stmt| {
        if let Stmt::Store(node) = stmt
            && stored.get(&node.buffer).is_some_and(|dtype| dtype.is_packed())
        {
            refused = Some(node.buffer);
        }
    });
    match refused {
        Some(id) => {
            let buffer = program.buffer(id);
            Err(LowerError::PackedStore { buffer: buffer.name.to_string(), dtype: buffer.dtype })
        }
        None => Ok(()),
    }
}

struct Decoder<'s> {
    stored: &'s FxHashMap<BufferId, DType>,
}

impl Decoder<'_> {
    /// The new form of a value: its code where it is of a storage type.
    fn either(&self, expr: &Expr) -> Expr {
        if expr.dtype().is_storage_only() { self.code(expr) } else { self.value(expr) }
    }

    fn value(&self, expr: &Expr) -> Expr {
        let kind = match expr.kind() {
            ExprKind::Constant(_) | ExprKind::Scalar(_) => return expr.clone(),
            ExprKind::Index(index) => return self.index(index).map_or_else(|| expr.clone(), Expr::index),
            ExprKind::Load(buffer, indices) => {
                ExprKind::Load(*buffer, indices.iter().map(|i| self.place(i)).collect())
            }
            ExprKind::Cast(a) if a.dtype().is_storage_only() => {
                return convert(expr.dtype(), decode(a.dtype(), &self.code(a)));
            }
            ExprKind::Bitcast(a) if a.dtype().is_storage_only() => ExprKind::Bitcast(self.code(a)),
            ExprKind::Unary(op, a) => ExprKind::Unary(*op, self.value(a)),
            ExprKind::Binary(op, a, b) => ExprKind::Binary(*op, self.value(a), self.value(b)),
            ExprKind::MulAdd(a, b, c) => ExprKind::MulAdd(self.value(a), self.value(b), self.value(c)),
            ExprKind::Select(condition, a, b) => {
                ExprKind::Select(self.value(condition), self.value(a), self.value(b))
            }
            ExprKind::Cast(a) => ExprKind::Cast(self.value(a)),
            ExprKind::Bitcast(a) => ExprKind::Bitcast(self.value(a)),
            ExprKind::Bounded(a, extent) => ExprKind::Bounded(self.value(a), self.place(extent)),
        };
        Expr::new(expr.dtype(), kind)
    }

    /// The code of a value of a storage type, as a `u8`.
    fn code(&self, expr: &Expr) -> Expr {
        let dtype = expr.dtype();
        match expr.kind() {
            ExprKind::Load(buffer, indices) => self.load(*buffer, &self.place(&indices[0])),
            ExprKind::Select(condition, a, b) => {
                Expr::select(self.value(condition), self.code(a), self.code(b))
            }
            ExprKind::Constant(constant) => {
                Expr::int(DType::U8, i64::from(narrow::encode(dtype, constant.as_f64() as f32)))
            }
            ExprKind::Cast(a) if a.dtype().is_storage_only() => {
                encode(dtype, decode(a.dtype(), &self.code(a)))
            }
            ExprKind::Cast(a) => encode(dtype, self.value(a)),
            ExprKind::Bitcast(a) if a.dtype().is_storage_only() => self.code(a),
            ExprKind::Bitcast(a) => bitcast(DType::U8, self.value(a)),
            other => unreachable!("the verifier admits no {other:?} of type {dtype}"),
        }
    }

    fn load(&self, buffer: BufferId, position: &Index) -> Expr {
        if !self.stored.get(&buffer).is_some_and(|dtype| dtype.is_packed()) {
            return Expr::load(DType::U8, buffer, [position.clone()]);
        }
        let byte = Expr::load(DType::U8, buffer, [position.floor_div(2)]);
        let shift = Expr::cast(DType::U8, Expr::index(position.modulo(2).scale(4)));
        and(binary(BinaryOp::Shr, byte, shift), 0xF)
    }

    /// An index whose values are rewritten; `None` when it has none.
    fn index(&self, index: &Index) -> Option<Index> {
        let has_values =
            index.terms().iter().any(|term| !matches!(term.digit.base, Base::Var(_) | Base::Lane(_)));
        has_values.then(|| {
            index.map_bases(&|base| match base {
                Base::Value(value) => Some(Index::value(self.value(value))),
                Base::Sum(sum) => self.index(sum),
                Base::Var(_) | Base::Lane(_) => None,
            })
        })
    }

    fn place(&self, index: &Index) -> Index {
        self.index(index).unwrap_or_else(|| index.clone())
    }
}

/// The number that a code stands for: an `f32`, an `i8` or a `u8`.
fn decode(dtype: DType, code: &Expr) -> Expr {
    match dtype {
        DType::UInt4 => code.clone(),
        DType::Int4 => {
            let upper = bitcast(DType::I8, binary(BinaryOp::Shl, code.clone(), Expr::int(DType::U8, 4)));
            binary(BinaryOp::Shr, upper, Expr::int(DType::I8, 4))
        }
        float => decode_float(&Format::of(float), code),
    }
}

/// The code of the element that a number becomes.
fn encode(dtype: DType, value: Expr) -> Expr {
    if dtype.is_float() {
        return encode_float(&Format::of(dtype), &convert(DType::F32, value));
    }
    if !value.dtype().is_float() {
        return and(convert(DType::U8, value), 0xF);
    }
    let (least, greatest) = dtype.int_range().unwrap_or_default();
    let whole = Expr::cast(DType::I32, value);
    let limited = binary(BinaryOp::Max, whole, int(least as i64));
    let limited = binary(BinaryOp::Min, limited, int(greatest as i64));
    and(Expr::cast(DType::U8, limited), 0xF)
}

/// How a float of 8 bits is laid out, beside an `f32`.
struct Format {
    fraction_bits: i64,
    bias: i64,
    /// The greatest magnitude that is a finite number, as a code.
    greatest: i64,
    dtype: DType,
}

impl Format {
    fn of(dtype: DType) -> Self {
        match dtype {
            DType::Float8E4M3FN => Format { fraction_bits: 3, bias: 7, greatest: 0x7E, dtype },
            _ => Format { fraction_bits: 2, bias: 15, greatest: 0x7B, dtype },
        }
    }

    /// The number of bits of an `f32`'s fraction that the format lacks.
    fn dropped_bits(&self) -> i64 {
        23 - self.fraction_bits
    }

    /// The distance of two neighbours among the numbers of the least exponent, as a power of two.
    fn least_power(&self) -> i32 {
        (1 - self.bias - self.fraction_bits) as i32
    }
}

/// The fraction of an `f32` with an exponent that is larger by the difference of the biases; numbers of the least exponent,
/// which have no leading 1, are multiples of the least one.
fn decode_float(format: &Format, code: &Expr) -> Expr {
    let code = Expr::cast(DType::I32, code.clone());
    let magnitude = and(code.clone(), 0x7F);
    let bits = binary(BinaryOp::Shl, magnitude.clone(), int(format.dropped_bits()));
    let normal = bitcast(DType::F32, binary(BinaryOp::Add, bits, int((127 - format.bias) << 23)));
    let scale = Expr::float(DType::F32, 2f64.powi(format.least_power()));
    let small = binary(BinaryOp::Mul, Expr::cast(DType::F32, magnitude.clone()), scale);
    let is_small = binary(BinaryOp::Lt, magnitude.clone(), int(1 << format.fraction_bits));
    let finite = Expr::select(is_small, small, normal);
    let nan = Expr::float(DType::F32, f64::NAN);
    let special = if format.dtype == DType::Float8E5M2 {
        let is_infinite = binary(BinaryOp::Eq, magnitude.clone(), int(format.greatest + 1));
        Expr::select(is_infinite, Expr::float(DType::F32, f64::INFINITY), nan)
    } else {
        nan
    };
    let is_special = binary(BinaryOp::Gt, magnitude, int(format.greatest));
    let size = bitcast(DType::I32, Expr::select(is_special, special, finite));
    let sign = binary(BinaryOp::Shl, and(code, 0x80), int(24));
    bitcast(DType::F32, binary(BinaryOp::Or, size, sign))
}

/// Adds half of the last place that stays, less a little unless that place is odd, and drops the rest. Numbers of the least
/// exponent are counted in multiples of the least one.
fn encode_float(format: &Format, value: &Expr) -> Expr {
    let dropped = format.dropped_bits();
    let bits = bitcast(DType::I32, value.clone());
    let magnitude = and(bits.clone(), 0x7FFF_FFFF);
    let greatest = narrow::decode(format.dtype, format.greatest as u8).to_bits();
    let limited = binary(BinaryOp::Min, magnitude.clone(), int(i64::from(greatest)));
    let odd = and(binary(BinaryOp::Shr, limited.clone(), int(dropped)), 1);
    let half = binary(BinaryOp::Add, limited.clone(), int((1 << (dropped - 1)) - 1));
    let rounded = binary(BinaryOp::Shr, binary(BinaryOp::Add, half, odd), int(dropped));
    let normal = binary(BinaryOp::Sub, rounded, int((127 - format.bias) << format.fraction_bits));
    let scale = Expr::float(DType::F32, 2f64.powi(-format.least_power()));
    let multiple = binary(BinaryOp::Mul, bitcast(DType::F32, limited.clone()), scale);
    let small = Expr::cast(DType::I32, Expr::unary(UnaryOp::RoundTiesEven, multiple));
    let is_small = binary(BinaryOp::Lt, limited, int((128 - format.bias) << 23));
    let size = Expr::select(is_small, small, normal);
    let is_nan = binary(BinaryOp::Gt, magnitude, int(0x7F80_0000));
    let size = Expr::select(is_nan, int(0x7F), size);
    let sign = and(binary(BinaryOp::Shr, bits, int(24)), 0x80);
    Expr::cast(DType::U8, binary(BinaryOp::Or, size, sign))
}

fn int(value: i64) -> Expr {
    Expr::int(DType::I32, value)
}

fn binary(op: BinaryOp, a: Expr, b: Expr) -> Expr {
    Expr::binary(op, a, b)
}

fn and(value: Expr, mask: i64) -> Expr {
    let mask = Expr::int(value.dtype(), mask);
    binary(BinaryOp::And, value, mask)
}

fn bitcast(dtype: DType, value: Expr) -> Expr {
    if value.dtype() == dtype { value } else { Expr::new(dtype, ExprKind::Bitcast(value)) }
}

/// A conversion, unless the value is of that type.
fn convert(dtype: DType, value: Expr) -> Expr {
    if value.dtype() == dtype { value } else { Expr::cast(dtype, value) }
}
