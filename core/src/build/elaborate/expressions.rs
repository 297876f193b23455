//! From recorded values to typed expressions and canonical indices.

use std::cell::RefCell;

use rustc_hash::FxHashMap;

use super::types::{Types, default_type};
use crate::build::error::{DefinitionError, SourceLocation};
use crate::build::record::recording::Recording;
use crate::build::record::value::{Clock, Value, ValueKind};
use crate::build::statement::{LoopForm, Target};
use crate::dtype::DType;
use crate::expr::{BinaryOp, Expr, ExprKind, Indices, UnaryOp};
use crate::ids::{BufferId, VarId};
use crate::index::{Index, Ranges, value_interval};
use crate::simplify::fold;

/// Elaborates the values of one recording.
pub(in crate::build) struct Elaboration<'a> {
    recording: &'a Recording,
    types: &'a Types<'a>,
    /// For each binding, the number of the buffer that holds it, if one does.
    buffers: &'a [Option<usize>],
    /// Loops whose form is settled.
    pub(in crate::build) loops: Vec<LoopForm>,
    /// Tensors, accumulators and buffers of bindings whose form is settled.
    pub(in crate::build) targets: Vec<Target>,
    reads: RefCell<Vec<(usize, Clock)>>,
    elaborated: RefCell<FxHashMap<(usize, DType), Expr>>,
    errors: RefCell<Vec<DefinitionError>>,
    /// The statement that is being elaborated.
    pub(in crate::build) location: Option<SourceLocation>,
}

/// The result of an elaboration.
pub(in crate::build) struct Elaborated {
    pub(in crate::build) loops: Vec<LoopForm>,
    pub(in crate::build) targets: Vec<Target>,
    /// The tensor, and the time, that each buffer in an expression stands for.
    pub(in crate::build) reads: Vec<(usize, Clock)>,
    pub(in crate::build) errors: Vec<DefinitionError>,
}

impl<'a> Elaboration<'a> {
    pub(in crate::build) fn new(
        recording: &'a Recording,
        types: &'a Types<'a>,
        buffers: &'a [Option<usize>],
    ) -> Self {
        Elaboration {
            recording,
            types,
            buffers,
            loops: Vec::new(),
            targets: Vec::new(),
            reads: RefCell::default(),
            elaborated: RefCell::default(),
            errors: RefCell::default(),
            location: None,
        }
    }

    /// The variable of the loop with a number.
    pub(in crate::build) fn loop_var(&self, number: usize) -> VarId {
        VarId((self.recording.dims.len() + self.recording.scalars.len() + number) as u32)
    }

    /// Ends the elaboration.
    pub(in crate::build) fn finish(self) -> Elaborated {
        Elaborated {
            loops: self.loops,
            targets: self.targets,
            reads: self.reads.into_inner(),
            errors: self.errors.into_inner(),
        }
    }

    /// Records an error at the statement that is being elaborated.
    pub(in crate::build) fn error(&self, message: impl Into<String>, help: impl Into<String>) {
        self.errors.borrow_mut().push(DefinitionError::new(message, self.location, help));
    }

    /// A value; literals without a type get `want`.
    pub(in crate::build) fn expr(&self, value: &Value, want: DType) -> Expr {
        let key = (value.address(), want);
        if let Some(known) = self.elaborated.borrow().get(&key) {
            return known.clone();
        }
        let expr = self.compute(value, want);
        self.elaborated.borrow_mut().insert(key, expr.clone());
        expr
    }

    /// A value of exactly this type.
    pub(in crate::build) fn typed(&self, value: &Value, dtype: DType) -> Expr {
        let expr = self.expr(value, dtype);
        if expr.dtype() == dtype {
            return expr;
        }
        let message = format!("a value of type {} stands where {dtype} is needed", expr.dtype());
        self.error(message, format!("convert it with `as {dtype}`"));
        Expr::cast(dtype, expr)
    }

    /// A value as an index. One that depends on data, whose type or arithmetic does not bound it, is checked against `extent` when the kernel runs.
    pub(in crate::build) fn index(&self, value: &Value, extent: Option<&Index>) -> Index {
        let expr = self.typed(value, DType::I64);
        if let ExprKind::Index(index) = expr.kind() {
            return index.clone();
        }
        match extent {
            Some(extent) if depends_on_data(&expr) && !lies_inside(&expr, extent) => {
                Index::value(Expr::new(DType::I64, ExprKind::Bounded(expr, extent.clone())))
            }
            _ => Index::value(expr),
        }
    }

    /// The indices of an element: the loops around the tensor's declaration, then the user's.
    pub(in crate::build) fn indices(&self, tensor: usize, indices: &[Value]) -> Indices {
        let target = &self.targets[tensor];
        let rank = target.shape.len() - target.prefix.len();
        if rank != indices.len() {
            let message = format!("`{}` has {rank} dimensions and {} indices", target.name, indices.len());
            self.error(message, "give one index per dimension");
        }
        let own = target.shape.iter().skip(target.prefix.len());
        let indices = own.enumerate().map(|(dimension, extent)| match indices.get(dimension) {
            Some(index) => self.index(index, Some(extent)),
            None => Index::constant(0),
        });
        target.prefix.iter().map(|&var| Index::var(var)).chain(indices).collect()
    }

    /// An element of a tensor at a time.
    pub(in crate::build) fn element(&self, tensor: usize, clock: Clock, indices: Indices) -> Expr {
        let mut reads = self.reads.borrow_mut();
        let number = reads.iter().position(|read| *read == (tensor, clock)).unwrap_or_else(|| {
            reads.push((tensor, clock));
            reads.len() - 1
        });
        Expr::load(self.targets[tensor].dtype, BufferId(number as u32), indices)
    }

    fn compute(&self, value: &Value, want: DType) -> Expr {
        let dtype = self.types.of(value).unwrap_or(want);
        match value.kind() {
            ValueKind::Int(literal) => constant(dtype, *literal),
            ValueKind::TypedInt(dtype, literal) => constant(*dtype, *literal),
            ValueKind::Float(literal) | ValueKind::TypedFloat(_, literal) if dtype.is_float() => {
                Expr::float(dtype, *literal)
            }
            ValueKind::Float(literal) | ValueKind::TypedFloat(_, literal) => {
                self.error(
                    format!("the literal {literal} stands where {dtype} is needed"),
                    format!("convert it with `as {dtype}`"),
                );
                constant(dtype, 0)
            }
            ValueKind::Dim(var) => Expr::index(Index::var(*var)),
            ValueKind::Loop(number) => Expr::index(self.loops[*number].value.clone()),
            ValueKind::Scalar(position, dtype) => {
                let var = VarId(self.recording.dims.len() as u32 + position.0);
                Expr::new(*dtype, ExprKind::Scalar(var))
            }
            ValueKind::Load(tensor, indices, clock) => {
                self.element(*tensor, *clock, self.indices(*tensor, indices))
            }
            ValueKind::Bound(number) => match self.buffers[*number] {
                Some(tensor) => {
                    let clock = self.recording.bindings[*number].clock + 1;
                    self.element(tensor, clock, self.indices(tensor, &[]))
                }
                None => self.expr(&self.recording.bindings[*number].value, want),
            },
            ValueKind::Unary(op, a) => self.unary(*op, self.expr(a, dtype)),
            ValueKind::Binary(op, a, b) => self.binary(*op, a, b, dtype),
            ValueKind::Select(condition, a, b) => {
                Expr::select(self.typed(condition, DType::Bool), self.typed(a, dtype), self.typed(b, dtype))
            }
            ValueKind::Cast(to, a) => self.cast(*to, a),
            ValueKind::MulAdd(a, b, c) => {
                Expr::mul_add(self.typed(a, dtype), self.typed(b, dtype), self.typed(c, dtype))
            }
            ValueKind::Powi(a, exponent) => power(&self.expr(a, dtype), *exponent),
        }
    }

    fn unary(&self, op: UnaryOp, a: Expr) -> Expr {
        match (op, a.kind()) {
            (UnaryOp::Neg, ExprKind::Index(index)) => Expr::index(index.scale(-1)),
            _ => Expr::unary(op, a),
        }
    }

    fn cast(&self, to: DType, a: &Value) -> Expr {
        let a = self.expr(a, default_type(a));
        let folded = a.as_constant().and_then(|constant| fold::cast(a.dtype(), to, constant));
        match folded {
            Some(folded) if to == DType::I64 => match folded.as_constant() {
                Some(crate::expr::Constant::Int(literal)) => constant(to, literal),
                _ => folded,
            },
            Some(folded) => folded,
            None => Expr::cast(to, a),
        }
    }

    fn binary(&self, op: BinaryOp, a: &Value, b: &Value, dtype: DType) -> Expr {
        if matches!(op, BinaryOp::Shl | BinaryOp::Shr) {
            let count = self.expr(b, dtype);
            return Expr::binary(op, self.expr(a, dtype), Expr::cast(dtype, count));
        }
        let operand = if op.is_comparison() {
            self.types.of(a).or_else(|| self.types.of(b)).unwrap_or_else(|| default_type(a))
        } else {
            dtype
        };
        let (a, b) = (self.typed(a, operand), self.typed(b, operand));
        if let (ExprKind::Index(left), ExprKind::Index(right)) = (a.kind(), b.kind())
            && let Some(index) = index_operation(op, left, right)
        {
            return Expr::index(index);
        }
        match op {
            // Logic operators evaluate both sides; an element on the right may exist only if the left side says so.
            BinaryOp::And if operand == DType::Bool && reads_memory(&b) => {
                Expr::select(a, b, Expr::bool(false))
            }
            BinaryOp::Or if operand == DType::Bool && reads_memory(&b) => {
                Expr::select(a, Expr::bool(true), b)
            }
            _ => Expr::binary(op, a, b),
        }
    }
}

/// A constant. Of type `i64` it is an index, so that index arithmetic absorbs it.
fn constant(dtype: DType, value: i64) -> Expr {
    if dtype == DType::I64 { Expr::index(Index::constant(value)) } else { Expr::int(dtype, value) }
}

/// Index arithmetic, which stays in the canonical form.
fn index_operation(op: BinaryOp, a: &Index, b: &Index) -> Option<Index> {
    match op {
        BinaryOp::Add => Some(a + b),
        BinaryOp::Sub => Some(a - b),
        BinaryOp::Mul => Some(a.multiply(b)),
        BinaryOp::Div => Some(a.divide(b)),
        BinaryOp::Rem => Some(a.remainder(b)),
        BinaryOp::Min => Some(a.minimum(b)),
        BinaryOp::Max => Some(a.maximum(b)),
        _ => None,
    }
}

/// `base` to a constant power, by repeated squaring.
fn power(base: &Expr, exponent: i32) -> Expr {
    let one = || Expr::int(base.dtype(), 1);
    let mut result: Option<Expr> = None;
    let mut square = base.clone();
    let mut rest = exponent.unsigned_abs();
    while rest > 0 {
        if rest & 1 == 1 {
            result = Some(match result {
                Some(result) => Expr::binary(BinaryOp::Mul, result, square.clone()),
                None => square.clone(),
            });
        }
        rest >>= 1;
        if rest > 0 {
            square = Expr::binary(BinaryOp::Mul, square.clone(), square);
        }
    }
    let result = result.unwrap_or_else(one);
    if exponent < 0 { Expr::binary(BinaryOp::Div, one(), result) } else { result }
}

/// Whether a value is not a function of dimensions and loop variables alone.
fn depends_on_data(expr: &Expr) -> bool {
    let mut found = false;
    crate::visit::for_each_expr(expr, &mut |node| {
        found |= matches!(node.kind(), ExprKind::Load(..) | ExprKind::Scalar(_) | ExprKind::Bounded(..));
    });
    found
}

/// Whether a value lies in `0..extent`, whatever the data are: a byte in a table of 256 elements does.
fn lies_inside(value: &Expr, extent: &Index) -> bool {
    let values = value_interval(value, &Ranges::new());
    values.min >= 0 && extent.as_constant().is_some_and(|extent| values.max < extent)
}

/// Whether evaluating a value reads an element of a buffer.
pub(in crate::build) fn reads_memory(expr: &Expr) -> bool {
    let mut found = false;
    crate::visit::for_each_load(expr, &mut |_, _| found = true);
    found
}
