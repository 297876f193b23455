//! Executes a recording as it was written: loop by loop, statement by statement.
//!
//! This is what a definition means, independent of everything that the builder does to it. All elements are `i32`.

use crate::build::UpdateOp;
use crate::build::elaborate::types::Types;
use crate::build::record::recording::{Node, Recording, Role, Write};
use crate::build::record::value::{Value, ValueKind};
use crate::dtype::DType;
use crate::expr::{BinaryOp, UnaryOp};

/// Why the execution stopped: the definition is wrong for these sizes.
#[derive(Debug)]
pub(super) struct Fault;

/// A tensor's contents; `None` where nothing has been written.
#[derive(Clone, Debug)]
pub(super) struct Array {
    pub(super) shape: Vec<i64>,
    pub(super) elements: Vec<Option<i64>>,
}

pub(super) struct Executor<'a> {
    recording: &'a Recording,
    types: Types<'a>,
    dims: &'a [i64],
    loops: Vec<i64>,
    bindings: Vec<i64>,
    pub(super) tensors: Vec<Array>,
}

impl<'a> Executor<'a> {
    /// Prepares an execution; `arguments` are the inputs and inouts in order.
    pub(super) fn new(
        recording: &'a Recording,
        dims: &'a [i64],
        arguments: &[Vec<i64>],
    ) -> Result<Self, Fault> {
        let mut executor = Executor {
            recording,
            types: Types::infer(recording),
            dims,
            loops: vec![0; recording.loops.len()],
            bindings: vec![0; recording.bindings.len()],
            tensors: Vec::new(),
        };
        let mut arguments = arguments.iter();
        for tensor in &recording.tensors {
            let shape: Vec<i64> =
                tensor.shape.iter().map(|extent| executor.value(extent)).collect::<Result<_, _>>()?;
            let len = shape.iter().product::<i64>() as usize;
            let elements = match tensor.role {
                Role::Input | Role::Constant | Role::InOut => {
                    arguments.next().expect("one per argument").iter().copied().map(Some).collect()
                }
                _ => vec![None; len],
            };
            executor.tensors.push(Array { shape, elements });
        }
        Ok(executor)
    }

    pub(super) fn run(&mut self, nodes: &[Node]) -> Result<(), Fault> {
        nodes.iter().try_for_each(|node| self.node(node))
    }

    fn node(&mut self, node: &Node) -> Result<(), Fault> {
        match node {
            Node::For { number, body } => {
                let form = &self.recording.loops[*number];
                let (mut at, end) = (self.value(&form.start)?, self.value(&form.end)?);
                while at < end {
                    self.loops[*number] = at;
                    self.run(body)?;
                    at += form.step;
                }
                Ok(())
            }
            Node::If { condition, then, otherwise } => {
                self.run(if self.bindings[*condition] != 0 { then } else { otherwise })
            }
            Node::Store(write) => self.store(write),
            Node::Initialise { target, value, .. } => {
                let value = self.value(value)?;
                self.tensors[*target].elements.fill(Some(value));
                Ok(())
            }
            Node::Bind(number) => {
                self.bindings[*number] = self.value(&self.recording.bindings[*number].value)?;
                Ok(())
            }
        }
    }

    fn store(&mut self, write: &Write) -> Result<(), Fault> {
        let at = self.place(write.target, &write.indices)?;
        let value = self.value(&write.value)?;
        let slot = self.tensors[write.target].elements[at];
        let old = || slot.ok_or(Fault);
        let new = match write.op {
            UpdateOp::Set => value,
            UpdateOp::Add => wrap(old()?.wrapping_add(value)),
            UpdateOp::Mul => wrap(old()?.wrapping_mul(value)),
            UpdateOp::Max | UpdateOp::Maximum => old()?.max(value),
            UpdateOp::Min | UpdateOp::Minimum => old()?.min(value),
        };
        self.tensors[write.target].elements[at] = Some(new);
        Ok(())
    }

    fn place(&self, tensor: usize, indices: &[Value]) -> Result<usize, Fault> {
        let shape = &self.tensors[tensor].shape;
        indices.iter().zip(shape).try_fold(0, |place, (index, extent)| {
            let index = self.value(index)?;
            if (0..*extent).contains(&index) {
                Ok(place * *extent as usize + index as usize)
            } else {
                Err(Fault)
            }
        })
    }

    fn value(&self, value: &Value) -> Result<i64, Fault> {
        let exact = self.types.of(value) == Some(DType::I64);
        let fit = |result: i64| if exact { result } else { wrap(result) };
        Ok(match value.kind() {
            ValueKind::Int(value) | ValueKind::TypedInt(_, value) => *value,
            ValueKind::Dim(var) => self.dims[var.0 as usize],
            ValueKind::Loop(number) => self.loops[*number],
            ValueKind::Load(tensor, indices, _) => {
                self.tensors[*tensor].elements[self.place(*tensor, indices)?].ok_or(Fault)?
            }
            ValueKind::Bound(number) => self.bindings[*number],
            ValueKind::Unary(UnaryOp::Neg, a) => fit(self.value(a)?.wrapping_neg()),
            ValueKind::Unary(UnaryOp::Not, a) => i64::from(self.value(a)? == 0),
            ValueKind::Select(condition, a, b) => {
                self.value(if self.value(condition)? != 0 { a } else { b })?
            }
            ValueKind::Cast(_, a) => fit(self.value(a)?),
            ValueKind::Binary(BinaryOp::And, a, b) => i64::from(self.value(a)? != 0 && self.value(b)? != 0),
            ValueKind::Binary(BinaryOp::Or, a, b) => i64::from(self.value(a)? != 0 || self.value(b)? != 0),
            ValueKind::Binary(op, a, b) => {
                let (a, b) = (self.value(a)?, self.value(b)?);
                match op {
                    BinaryOp::Add => fit(a.wrapping_add(b)),
                    BinaryOp::Sub => fit(a.wrapping_sub(b)),
                    BinaryOp::Mul => fit(a.wrapping_mul(b)),
                    BinaryOp::Max => a.max(b),
                    BinaryOp::Min => a.min(b),
                    BinaryOp::Lt => i64::from(a < b),
                    BinaryOp::Le => i64::from(a <= b),
                    BinaryOp::Gt => i64::from(a > b),
                    BinaryOp::Ge => i64::from(a >= b),
                    BinaryOp::Eq => i64::from(a == b),
                    other => panic!("the generator does not make {other:?}"),
                }
            }
            other => panic!("the generator does not make {other:?}"),
        })
    }
}

fn wrap(value: i64) -> i64 {
    i64::from(value as i32)
}

/// The recording as readable text.
pub(super) fn show(recording: &Recording, nodes: &[Node], depth: usize) -> String {
    let pad = "  ".repeat(depth);
    let show_value = |value: &Value| show_value(recording, value);
    let line = |node: &Node| match node {
        Node::For { number, body } => {
            let form = &recording.loops[*number];
            let (start, end) = (show_value(&form.start), show_value(&form.end));
            let body = show(recording, body, depth + 1);
            format!("{pad}for {} in {start}..{end} step {}\n{body}", form.name, form.step)
        }
        Node::If { condition, then, otherwise } => {
            let (then, otherwise) = (show(recording, then, depth + 1), show(recording, otherwise, depth + 1));
            format!("{pad}if #{condition}\n{then}{pad}else\n{otherwise}")
        }
        Node::Store(write) => {
            let indices: Vec<String> = write.indices.iter().map(show_value).collect();
            let (name, value) = (&recording.tensors[write.target].name, show_value(&write.value));
            format!("{pad}{name}[{}] {:?} {value}\n", indices.join(", "), write.op)
        }
        Node::Initialise { target, value, .. } => {
            format!("{pad}{} := {}\n", recording.tensors[*target].name, show_value(value))
        }
        Node::Bind(number) => {
            format!("{pad}#{number} = {}\n", show_value(&recording.bindings[*number].value))
        }
    };
    nodes.iter().map(line).collect()
}

fn show_value(recording: &Recording, value: &Value) -> String {
    let show = |value: &Value| show_value(recording, value);
    match value.kind() {
        ValueKind::Int(value) | ValueKind::TypedInt(_, value) => value.to_string(),
        ValueKind::Dim(var) => recording.dims[var.0 as usize].clone(),
        ValueKind::Loop(number) => recording.loops[*number].name.clone(),
        ValueKind::Load(tensor, indices, _) => {
            let indices: Vec<String> = indices.iter().map(show).collect();
            format!("{}[{}]", recording.tensors[*tensor].name, indices.join(", "))
        }
        ValueKind::Bound(number) => format!("#{number}"),
        ValueKind::Select(condition, a, b) => {
            format!("if {} {{ {} }} else {{ {} }}", show(condition), show(a), show(b))
        }
        ValueKind::Binary(op, a, b) => format!("({} {} {})", show(a), op.text(), show(b)),
        _ => value.operands().into_iter().map(show).collect(),
    }
}
