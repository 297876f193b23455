//! Types of values and accumulators.
//!
//! Literals take the type of the operands that they meet, and so do accumulators that start from one. Types flow up
//! from loads and casts and down from the targets of assignments until nothing changes; a literal that is still
//! open then has the default of Rust: `i32` or `f64`.

use std::cell::RefCell;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::build::record::recording::{Node, Recording};
use crate::build::record::value::{Value, ValueKind};
use crate::dtype::DType;
use crate::expr::{BinaryOp, UnaryOp};

/// The types of everything in a recording.
pub(in crate::build) struct Types<'a> {
    recording: &'a Recording,
    /// The types of tensors and accumulators.
    tensors: Vec<Option<DType>>,
    /// Settled types by the address of the value.
    settled: RefCell<FxHashMap<usize, Option<DType>>>,
}

impl<'a> Types<'a> {
    /// Infers every type.
    pub(in crate::build) fn infer(recording: &'a Recording) -> Self {
        let tensors = recording.tensors.iter().map(|tensor| tensor.dtype).collect();
        let mut types = Types { recording, tensors, settled: RefCell::default() };
        types.propagate();
        let mut defaults = Vec::new();
        for_each_node(&recording.body, &mut |node| {
            if let Node::Initialise { target, value, .. } = node {
                defaults.push((*target, default_type(value)));
            }
        });
        for (target, default) in defaults {
            if types.tensors[target].is_none() {
                types.tensors[target] = Some(default);
                types.propagate();
            }
        }
        types
    }

    /// The type of a tensor's elements or of an accumulator.
    pub(in crate::build) fn tensor(&self, number: usize) -> DType {
        self.tensors[number].unwrap_or(DType::F64)
    }

    /// The type of a value; `None` for one made of literals alone.
    pub(in crate::build) fn of(&self, value: &Value) -> Option<DType> {
        let address = value.address();
        if let Some(known) = self.settled.borrow().get(&address) {
            return *known;
        }
        let dtype = self.compute(value);
        self.settled.borrow_mut().insert(address, dtype);
        dtype
    }

    fn compute(&self, value: &Value) -> Option<DType> {
        match value.kind() {
            ValueKind::Int(_) | ValueKind::Float(_) => None,
            ValueKind::TypedInt(dtype, _) | ValueKind::TypedFloat(dtype, _) => Some(*dtype),
            ValueKind::Dim(_) | ValueKind::Loop(_) => Some(DType::I64),
            ValueKind::Scalar(_, dtype) | ValueKind::Cast(dtype, _) => Some(*dtype),
            ValueKind::Load(tensor, ..) => self.tensors[*tensor],
            ValueKind::Bound(number) => self.of(&self.recording.bindings[*number].value),
            ValueKind::Unary(_, a) | ValueKind::Powi(a, _) => self.of(a),
            ValueKind::Binary(op, ..) if op.is_comparison() => Some(DType::Bool),
            ValueKind::Binary(BinaryOp::Shl | BinaryOp::Shr, a, _) => self.of(a),
            ValueKind::Binary(_, a, b) | ValueKind::Select(_, a, b) => self.of(a).or_else(|| self.of(b)),
            ValueKind::MulAdd(a, b, c) => self.of(a).or_else(|| self.of(b)).or_else(|| self.of(c)),
        }
    }

    fn propagate(&mut self) {
        loop {
            self.settled.borrow_mut().clear();
            let known = self.tensors.iter().flatten().count();
            let recording = self.recording;
            let mut visited = FxHashSet::default();
            for binding in &recording.bindings {
                self.visit(&binding.value, &mut visited);
            }
            for node in &recording.loops {
                self.expect(&node.start, DType::I64);
                self.expect(&node.end, DType::I64);
            }
            for_each_node(&recording.body, &mut |node| match node {
                Node::Store(write) => {
                    write.indices.iter().for_each(|index| self.expect(index, DType::I64));
                    self.visit(&write.value, &mut visited);
                    self.unify_target(write.target, &write.value);
                }
                Node::Initialise { target, value, .. } => {
                    self.visit(value, &mut visited);
                    self.unify_target(*target, value);
                }
                _ => {}
            });
            if self.tensors.iter().flatten().count() == known {
                return;
            }
        }
    }

    fn unify_target(&mut self, target: usize, value: &Value) {
        match self.tensors[target] {
            Some(dtype) => self.expect(value, dtype),
            None => self.tensors[target] = self.of(value),
        }
    }

    /// Lets operands of one operation settle each other's types.
    fn visit(&mut self, value: &Value, visited: &mut FxHashSet<usize>) {
        if !visited.insert(value.address()) {
            return;
        }
        match value.kind() {
            ValueKind::Binary(op, a, b) if !matches!(op, BinaryOp::Shl | BinaryOp::Shr) => {
                self.unify(&[a, b])
            }
            ValueKind::MulAdd(a, b, c) => self.unify(&[a, b, c]),
            ValueKind::Select(condition, a, b) => {
                self.expect(condition, DType::Bool);
                self.unify(&[a, b]);
            }
            ValueKind::Load(_, indices, _) => indices.iter().for_each(|index| self.expect(index, DType::I64)),
            _ => {}
        }
        for operand in value.operands() {
            self.visit(operand, visited);
        }
    }

    fn unify(&mut self, operands: &[&Value]) {
        if let Some(dtype) = operands.iter().find_map(|operand| self.of(operand)) {
            operands.iter().for_each(|operand| self.expect(operand, dtype));
        }
    }

    /// Pushes a type down to accumulators without one.
    fn expect(&mut self, value: &Value, dtype: DType) {
        if self.of(value).is_some() {
            return;
        }
        match value.kind() {
            ValueKind::Load(tensor, ..) => {
                self.tensors[*tensor] = Some(dtype);
                self.settled.borrow_mut().clear();
            }
            ValueKind::Bound(number) => {
                let recording = self.recording;
                self.expect(&recording.bindings[*number].value, dtype);
            }
            ValueKind::Unary(_, a)
            | ValueKind::Powi(a, _)
            | ValueKind::Binary(BinaryOp::Shl | BinaryOp::Shr, a, _) => self.expect(a, dtype),
            ValueKind::Binary(_, a, b) | ValueKind::Select(_, a, b) => {
                self.expect(a, dtype);
                self.expect(b, dtype);
            }
            ValueKind::MulAdd(a, b, c) => [a, b, c].into_iter().for_each(|value| self.expect(value, dtype)),
            _ => {}
        }
    }
}

/// The type that Rust gives to an operation of literals alone.
pub(in crate::build) fn default_type(value: &Value) -> DType {
    match value.kind() {
        ValueKind::Int(_) => DType::I32,
        ValueKind::Float(_) => DType::F64,
        ValueKind::Unary(UnaryOp::Not, _) => DType::Bool,
        _ => value.operands().into_iter().map(default_type).next().unwrap_or(DType::F64),
    }
}

/// Calls `visit` with every node, in order, outer first.
pub(in crate::build) fn for_each_node<'n>(nodes: &'n [Node], visit: &mut dyn FnMut(&'n Node)) {
    for node in nodes {
        visit(node);
        match node {
            Node::For { body, .. } => for_each_node(body, visit),
            Node::If { then, otherwise, .. } => {
                for_each_node(then, visit);
                for_each_node(otherwise, visit);
            }
            _ => {}
        }
    }
}
