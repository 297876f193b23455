//! From an imperative definition to a schedulable program.
//!
//! [`KernelBuilder`] records loops, conditions and assignments in the order in which the user wrote
//! them, and [`KernelBuilder::finish`] turns them into a [`Program`] of blocks, each with its own
//! perfect loop nest, or reports the statements that it cannot turn into one, with an alternative for each.
//!
//! Calls never fail: errors are collected, and `finish` reports them.
//!
//! | step | module |
//! |---|---|
//! | the recorded tree of loops, conditions and assignments | `record` |
//! | types of literals and accumulators; which `let`s become buffers | `elaborate`: `types`, `bindings` |
//! | rectangular loops, typed expressions, canonical indices | `elaborate`: `loops`, `expressions` |
//! | a list of guarded assignments, each with all its loops | `elaborate`: `flatten`; `statement` |
//! | accumulations; places of maxima and minima | `recognise` |
//! | recurrences: which statements of one body become loops of their own, and which stay together in order | `order`: `recurrence`, `dependence` |
//! | spatial and reduction loops; races | `order`: `domain` |
//! | single assignment: versions of tensors, initial values | `emit`: `version` |
//! | initial values, constants and copies merged into blocks | `emit`: `merge` |
//! | one block in one perfect loop nest per assignment | `emit`: `blocks` |
//!
//! [`bounds`] shows that no access leaves its tensor, once the sizes are known.

pub mod bounds;
mod elaborate;
mod emit;
mod error;
mod order;
mod recognise;
mod record;
mod render;
mod statement;

pub use error::{DefinitionError, DefinitionErrors, SourceLocation};
pub use record::value::Value;

use elaborate::flatten;
use emit::{blocks, merge, version};
use order::{domain, recurrence};
use record::recording::{Binding, Loop, Node, Recording, Role, Tensor, Write};
use record::value::ValueKind;

use crate::dtype::DType;
use crate::ids::VarId;
use crate::program::Program;

/// How an assignment changes its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UpdateOp {
    /// `target = value`
    Set,
    /// `target += value`
    Add,
    /// `target *= value`
    Mul,
    /// `target = target.max(value)`
    Max,
    /// `target = target.min(value)`
    Min,
    /// `target = target.maximum(value)`
    Maximum,
    /// `target = target.minimum(value)`
    Minimum,
}

/// A tensor of the kernel that is being built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TensorHandle(usize);

/// A scalar variable that the definition assigns more than once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ScalarHandle(usize);

/// Records the definition of one kernel.
#[derive(Debug)]
pub struct KernelBuilder {
    recording: Recording,
    /// The loops around the current place, outermost first.
    open_loops: Vec<usize>,
    /// Statements of the innermost open body.
    current: Vec<Node>,
}

impl KernelBuilder {
    /// Starts the definition of a kernel.
    pub fn new(name: &str) -> Self {
        KernelBuilder {
            recording: Recording {
                name: name.to_owned(),
                dims: Vec::new(),
                scalars: Vec::new(),
                tensors: Vec::new(),
                loops: Vec::new(),
                bindings: Vec::new(),
                body: Vec::new(),
                outputs: Vec::new(),
                accuracy: None,
                multiplies_padding: false,
                clock: 0,
            },
            open_loops: Vec::new(),
            current: Vec::new(),
        }
    }

    /// A symbolic dimension or a compile-time parameter of type `usize`, in the caller's order.
    pub fn dim(&mut self, name: &str) -> Value {
        let var = Recording::dim_var(self.recording.dims.len());
        self.recording.dims.push(name.to_owned());
        Value::new(ValueKind::Dim(var))
    }

    /// A run-time scalar argument, in the caller's order.
    pub fn scalar(&mut self, name: &str, dtype: DType) -> Value {
        let var = VarId(self.recording.scalars.len() as u32);
        self.recording.scalars.push((name.to_owned(), dtype));
        Value::new(ValueKind::Scalar(var, dtype))
    }

    /// How far each product in a sum of products may be off, relative to its exact value: at least 0 and less than 1. Without
    /// it, no product is formed of pieces.
    ///
    /// It only permits: schedules may then form `f32` products of `bf16` pieces, where a machine is faster with these, as
    /// [`split_products`](crate::schedule::prim::SplitProducts) does. The sum itself is still one of `f32`, so that a long sum
    /// loses what it always loses. The last call counts; a number out of range is an error of the finished definition. See
    /// [`crate::accuracy`] for what each number of pieces achieves.
    pub fn accuracy(&mut self, relative: f64) {
        self.recording.accuracy = Some(relative);
    }

    /// Products of floats with padding are formed, so that an infinite factor gives a NaN there. Without it, they may be left out; see
    /// [`crate::accuracy`].
    pub fn multiply_padding(&mut self) {
        self.recording.multiplies_padding = true;
    }

    /// A tensor argument that is only read.
    pub fn input(&mut self, name: &str, dtype: DType, shape: &[Value]) -> TensorHandle {
        TensorHandle(self.add_tensor(name, Some(dtype), shape, Role::Input, None))
    }

    /// A tensor argument that is only read, and whose contents stay the same between calls with the same tensor.
    pub fn constant(&mut self, name: &str, dtype: DType, shape: &[Value]) -> TensorHandle {
        TensorHandle(self.add_tensor(name, Some(dtype), shape, Role::Constant, None))
    }

    /// A tensor argument that is read and written: `&mut Tensor`.
    pub fn inout(&mut self, name: &str, dtype: DType, shape: &[Value]) -> TensorHandle {
        TensorHandle(self.add_tensor(name, Some(dtype), shape, Role::InOut, None))
    }

    /// A tensor declared in the definition. `initial` is the value of every element at first, `None`
    /// when nothing is known of it.
    pub fn tensor(
        &mut self,
        name: &str,
        dtype: DType,
        shape: &[Value],
        initial: Option<Value>,
        location: SourceLocation,
    ) -> TensorHandle {
        let target = self.add_tensor(name, Some(dtype), shape, Role::Local, Some(location));
        if let Some(value) = initial {
            let clock = self.tick();
            self.current.push(Node::Initialise { target, value, clock });
        }
        TensorHandle(target)
    }

    /// `let mut name = initial;`: a scalar that is assigned again later.
    pub fn accumulator(&mut self, name: &str, initial: Value, location: SourceLocation) -> ScalarHandle {
        let target = self.add_tensor(name, None, &[], Role::Accumulator, Some(location));
        let clock = self.tick();
        self.current.push(Node::Initialise { target, value: initial, clock });
        ScalarHandle(target)
    }

    /// The present value of a scalar variable.
    pub fn read(&self, scalar: ScalarHandle) -> Value {
        Value::new(ValueKind::Load(scalar.0, Vec::new(), self.recording.clock))
    }

    /// `scalar op= value;`
    pub fn update(&mut self, scalar: ScalarHandle, op: UpdateOp, value: Value, location: SourceLocation) {
        self.write(scalar.0, &[], op, value, location);
    }

    /// `let name = value;` for anything but a literal or another name. Evaluated here; whether it is
    /// stored or repeated where it is used is decided when the builder finishes.
    pub fn bind(&mut self, name: &str, value: Value, location: SourceLocation) -> Value {
        let number = self.add_binding(name, value, location);
        self.current.push(Node::Bind(number));
        self.recording.bindings[number].bound.clone()
    }

    /// `for name in (start..end).step_by(step) { body }`; `body` receives the loop variable.
    pub fn for_loop(
        &mut self,
        name: &str,
        start: Value,
        end: Value,
        step: i64,
        location: SourceLocation,
        body: impl FnOnce(&mut KernelBuilder, Value),
    ) {
        let number = self.recording.loops.len();
        self.recording.loops.push(Loop { name: name.to_owned(), start, end, step, location });
        self.open_loops.push(number);
        let body = self.nested(|builder| body(builder, Value::new(ValueKind::Loop(number))));
        self.open_loops.pop();
        self.current.push(Node::For { number, body });
    }

    /// `if condition { then } else { otherwise }`
    pub fn if_else(
        &mut self,
        condition: Value,
        location: SourceLocation,
        then: impl FnOnce(&mut KernelBuilder),
        otherwise: impl FnOnce(&mut KernelBuilder),
    ) {
        let condition = self.add_binding("condition", condition, location);
        self.current.push(Node::Bind(condition));
        let then = self.nested(then);
        let otherwise = self.nested(otherwise);
        self.current.push(Node::If { condition, then, otherwise });
    }

    /// `tensor[[indices]] op= value;`
    pub fn store(
        &mut self,
        tensor: TensorHandle,
        indices: &[Value],
        op: UpdateOp,
        value: Value,
        location: SourceLocation,
    ) {
        self.write(tensor.0, indices, op, value, location);
    }

    /// `tensor[[indices]]`
    pub fn load(&self, tensor: TensorHandle, indices: &[Value]) -> Value {
        Value::new(ValueKind::Load(tensor.0, indices.to_vec(), self.recording.clock))
    }

    /// Returns a tensor from the kernel; outputs are in the order of these calls.
    pub fn output(&mut self, tensor: TensorHandle) {
        self.recording.outputs.push(tensor.0);
    }

    fn tick(&mut self) -> u32 {
        self.recording.clock += 1;
        self.recording.clock - 1
    }

    fn add_tensor(
        &mut self,
        name: &str,
        dtype: Option<DType>,
        shape: &[Value],
        role: Role,
        location: Option<SourceLocation>,
    ) -> usize {
        let loops = self.open_loops.clone();
        let tensor = Tensor { name: name.to_owned(), dtype, shape: shape.to_vec(), role, loops, location };
        self.recording.tensors.push(tensor);
        self.recording.tensors.len() - 1
    }

    fn add_binding(&mut self, name: &str, value: Value, location: SourceLocation) -> usize {
        let (depth, clock) = (self.open_loops.len(), self.tick());
        let number = self.recording.bindings.len();
        let (name, bound) = (name.to_owned(), Value::new(ValueKind::Bound(number)));
        self.recording.bindings.push(Binding { name, value, bound, location, depth, clock });
        number
    }

    fn write(
        &mut self,
        target: usize,
        indices: &[Value],
        op: UpdateOp,
        value: Value,
        location: SourceLocation,
    ) {
        let clock = self.tick();
        let write = Write { target, indices: indices.to_vec(), op, value, location, clock };
        self.current.push(Node::Store(write));
    }

    /// The statements that `body` records.
    fn nested(&mut self, body: impl FnOnce(&mut KernelBuilder)) -> Vec<Node> {
        let outer = std::mem::take(&mut self.current);
        body(self);
        std::mem::replace(&mut self.current, outer)
    }

    /// The program, at the `Blocks` level.
    ///
    /// # Errors
    /// Everything in the definition that has no meaning as a program: assignments of which only that of the last
    /// iteration counts, loops whose bounds depend on data, elements that are read before they are written.
    pub fn finish(mut self) -> Result<Program, DefinitionErrors> {
        self.recording.body = std::mem::take(&mut self.current);
        let recording = &self.recording;
        let failed =
            |errors: Vec<DefinitionError>| DefinitionErrors { kernel: recording.name.clone(), errors };
        let mut kernel = flatten::flatten(recording);
        if kernel.errors.is_empty() {
            recurrence::find_recurrences(&mut kernel);
            domain::check_races(&mut kernel);
        }
        if !kernel.errors.is_empty() {
            return Err(failed(kernel.errors));
        }
        let mut versioned = version::assign_versions(&mut kernel);
        if !kernel.errors.is_empty() {
            return Err(failed(kernel.errors));
        }
        merge::forward(&kernel, &recording.outputs, &mut versioned);
        let program = blocks::emit(recording, &mut kernel, &versioned);
        kernel.errors.extend(certainly_out_of_bounds(&program));
        if !kernel.errors.is_empty() {
            return Err(failed(kernel.errors));
        }
        Ok(program)
    }
}

/// The accesses that leave their tensors for all sizes; others are judged when the sizes are known.
fn certainly_out_of_bounds(program: &Program) -> Vec<DefinitionError> {
    let Err(found) = bounds::check_in_bounds(program) else { return Vec::new() };
    let certain = found.errors.into_iter().filter(|error| error.case != bounds::Case::Possible);
    certain
        .map(|error| DefinitionError {
            message: error.to_string(),
            help: error.help(),
            location: error.location,
            notes: Vec::new(),
        })
        .collect()
}

#[cfg(test)]
mod tests;
