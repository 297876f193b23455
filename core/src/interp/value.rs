//! From expressions and indices to instructions.

use rustc_hash::FxHashMap;

use crate::dtype::DType;
use crate::expr::{Expr, ExprKind};
use crate::index::{Base, Digit, Index, NO_MODULUS};
use crate::interp::InterpError;
use crate::interp::code::{Instruction, Register};
use crate::interp::compile::Compiler;
use crate::interp::operators;
use crate::stmt::Store;

impl Compiler<'_> {
    /// The register that will hold a value. Shared subexpressions are computed once.
    pub(super) fn value(&mut self, expr: &Expr) -> Result<Register, InterpError> {
        if let Some(&register) = self.computed.get(&expr.address()) {
            return Ok(register);
        }
        let register = self.compute(expr)?;
        self.computed.insert(expr.address(), register);
        Ok(register)
    }

    fn compute(&mut self, expr: &Expr) -> Result<Register, InterpError> {
        let dtype = expr.dtype();
        match expr.kind() {
            ExprKind::Constant(value) => Ok(self.constant(operators::constant(dtype, *value))),
            ExprKind::Scalar(var) => self.variable(*var),
            ExprKind::Index(index) => self.index(index),
            ExprKind::Load(buffer, indices) => {
                let access = self.access(*buffer, indices, dtype)?;
                let to = self.register();
                self.emit(Instruction::Load { to, access });
                Ok(to)
            }
            ExprKind::Unary(op, operand) => {
                let function = operators::unary(*op, dtype).ok_or_else(|| lacks(op.text(), dtype))?;
                let a = self.operand(operand, dtype)?;
                let to = self.register();
                self.emit(Instruction::Unary { function, to, a });
                Ok(to)
            }
            ExprKind::Binary(op, left, right) => {
                let operands = left.dtype();
                let function = operators::binary(*op, operands).ok_or_else(|| lacks(op.text(), operands))?;
                let (a, b) = (self.operand(left, operands)?, self.operand(right, operands)?);
                let to = self.register();
                self.emit(Instruction::Binary { function, to, a, b });
                Ok(to)
            }
            ExprKind::MulAdd(a, b, c) => {
                let function = operators::mul_add(dtype).ok_or_else(|| lacks("mul_add", dtype))?;
                let (a, b, c) = (self.operand(a, dtype)?, self.operand(b, dtype)?, self.operand(c, dtype)?);
                let to = self.register();
                self.emit(Instruction::Ternary { function, to, a, b, c });
                Ok(to)
            }
            ExprKind::Select(condition, then, otherwise) => self.select(condition, then, otherwise),
            ExprKind::Cast(operand) => {
                let function = operators::conversion(operand.dtype(), dtype);
                let a = self.value(operand)?;
                let to = self.register();
                self.emit(Instruction::Unary { function, to, a });
                Ok(to)
            }
            ExprKind::Bitcast(operand) if operand.dtype().bits() == dtype.bits() => self.value(operand),
            ExprKind::Bitcast(operand) => Err(InterpError::Malformed(format!(
                "bitcast from {} to {dtype}, which differ in size",
                operand.dtype()
            ))),
            ExprKind::Bounded(operand, extent) => {
                let value = self.operand(operand, DType::I64)?;
                let extent = self.index(extent)?;
                self.emit(Instruction::CheckIndex { value, extent, block: self.block });
                Ok(value)
            }
        }
    }

    fn operand(&mut self, expr: &Expr, dtype: DType) -> Result<Register, InterpError> {
        if expr.dtype() != dtype {
            let found = expr.dtype();
            return Err(InterpError::Malformed(format!(
                "an operand of type {found} stands for one of {dtype}"
            )));
        }
        self.value(expr)
    }

    /// Only the chosen branch is executed, so that values of one branch are not known outside of it.
    fn select(&mut self, condition: &Expr, then: &Expr, otherwise: &Expr) -> Result<Register, InterpError> {
        let condition = self.operand(condition, DType::Bool)?;
        let to = self.register();
        let to_otherwise = self.emit(Instruction::JumpUnless { condition, target: 0 });
        self.branch(then, to)?;
        let end = self.emit(Instruction::Jump { target: 0 });
        self.land(to_otherwise);
        if otherwise.dtype() != then.dtype() {
            return Err(InterpError::Malformed("the branches of a select differ in type".to_owned()));
        }
        self.branch(otherwise, to)?;
        self.land(end);
        Ok(to)
    }

    fn branch(&mut self, expr: &Expr, to: Register) -> Result<(), InterpError> {
        if let Some(&from) = self.computed.get(&expr.address()) {
            self.emit(Instruction::Copy { to, from });
            return Ok(());
        }
        let known = self.computed.clone();
        let from = self.value(expr)?;
        self.emit(Instruction::Copy { to, from });
        self.computed = known;
        Ok(())
    }

    /// The register that will hold an index.
    pub(super) fn index(&mut self, index: &Index) -> Result<Register, InterpError> {
        if let Some(constant) = index.as_constant() {
            return Ok(self.constant(constant as u64));
        }
        let mut terms = Vec::with_capacity(index.terms().len());
        for term in index.terms() {
            terms.push((self.digit(&term.digit)?, term.coefficient));
        }
        if let ([(register, 1)], 0) = (&terms[..], index.constant_part()) {
            return Ok(*register);
        }
        let first = self.code.terms.len() as u32;
        self.code.terms.append(&mut terms);
        let (to, last) = (self.register(), self.code.terms.len() as u32);
        self.emit(Instruction::Sum { to, first, last, constant: index.constant_part() });
        Ok(to)
    }

    fn digit(&mut self, digit: &Digit) -> Result<Register, InterpError> {
        let base = match &digit.base {
            Base::Var(var) => self.variable(*var)?,
            Base::Lane(lanes) => match self.lane {
                Some((lane, expected)) if expected == *lanes => lane,
                _ => {
                    return Err(InterpError::Malformed(format!(
                        "a lane of {lanes} stands outside of a store with as many"
                    )));
                }
            },
            Base::Sum(sum) => self.index(sum)?,
            Base::Value(value) => self.operand(value, DType::I64)?,
        };
        if digit.is_whole() {
            return Ok(base);
        }
        if digit.divisor < 1 || (digit.modulus != NO_MODULUS && digit.modulus < 1) {
            return Err(InterpError::Malformed(format!(
                "a digit has divisor {} and modulus {}",
                digit.divisor, digit.modulus
            )));
        }
        let to = self.register();
        self.emit(Instruction::Digit { to, base, divisor: digit.divisor, modulus: digit.modulus });
        Ok(to)
    }
}

fn lacks(operator: &str, dtype: DType) -> InterpError {
    InterpError::Malformed(format!("{dtype} has no operator `{operator}`"))
}

/// The number of lanes of a store: 1 unless a lane occurs in its indices or its value.
pub(super) fn lanes_of_store(store: &Store) -> u32 {
    let mut memo = FxHashMap::default();
    let value = lanes_of_value(&store.value, &mut memo);
    store.indices.iter().map(|index| lanes_of_index(index, &mut memo)).fold(value, u32::max)
}

/// As [`crate::visit::lanes`], but in time proportional to the number of different nodes: expanded
/// functions share theirs heavily.
fn lanes_of_value(expr: &Expr, memo: &mut FxHashMap<usize, u32>) -> u32 {
    if let Some(&lanes) = memo.get(&expr.address()) {
        return lanes;
    }
    let own = match expr.kind() {
        ExprKind::Index(index) | ExprKind::Bounded(_, index) => lanes_of_index(index, memo),
        ExprKind::Load(_, indices) => {
            indices.iter().map(|index| lanes_of_index(index, memo)).fold(1, u32::max)
        }
        _ => 1,
    };
    let lanes = expr.operands().into_iter().map(|operand| lanes_of_value(operand, memo)).fold(own, u32::max);
    memo.insert(expr.address(), lanes);
    lanes
}

fn lanes_of_index(index: &Index, memo: &mut FxHashMap<usize, u32>) -> u32 {
    let of_base = |base: &Base| match base {
        Base::Var(_) => 1,
        Base::Lane(lanes) => *lanes,
        Base::Sum(sum) => lanes_of_index(sum, memo),
        Base::Value(value) => lanes_of_value(value, memo),
    };
    index.terms().iter().map(|term| &term.digit.base).map(of_base).fold(1, u32::max)
}
