//! From the recorded tree to a list of guarded assignments, each with all the loops around it.

use super::bindings::choose_buffers;
use super::expressions::{Elaborated, Elaboration, reads_memory};
use super::loops::normalise_loops;
use super::types::Types;
use crate::build::recognise::accumulation::{recognise, recognise_assignment};
use crate::build::recognise::arg_reduction::recognise_arg_reductions;
use crate::build::record::recording::{Node, Recording, Role, Tensor, Write};
use crate::build::statement::{Effect, Kernel, LoopForm, Statement, Target};
use crate::build::{UpdateOp, Value};
use crate::dtype::DType;
use crate::expr::{BinaryOp, Expr, UnaryOp};
use crate::ids::VarId;
use crate::index::{Index, Ranges};

/// Lowers a recording, in the user's order.
pub(in crate::build) fn flatten(recording: &Recording) -> Kernel {
    let mut errors = Vec::new();
    let types = Types::infer(recording);
    let chosen = choose_buffers(recording, &mut errors);
    let mut next = recording.tensors.len();
    let buffers: Vec<Option<usize>> = chosen
        .into_iter()
        .map(|chosen| {
            chosen.then(|| {
                next += 1;
                next - 1
            })
        })
        .collect();
    let mut elaboration = Elaboration::new(recording, &types, &buffers);
    normalise_loops(recording, &buffers, &mut elaboration);
    let mut flattening =
        Flattening { recording, types: &types, buffers: &buffers, elaboration, whole: Vec::new() };
    flattening.declare_targets();
    let statements = flattening.walk(&recording.body, &Context::default());
    let first_loop = flattening.elaboration.loop_var(0).0;
    let whole = flattening.whole;
    let elaborated = flattening.elaboration.finish();
    let Elaborated { loops, targets, reads, errors: more } = elaborated;
    errors.extend(more);
    let ranges: Ranges = loops.iter().map(|form| (form.var, form.extent.clone())).collect();
    let scalars = recording.scalars.iter().map(|(name, _)| name);
    let names = recording.dims.iter().chain(scalars).cloned().collect();
    let mut kernel = Kernel { targets, whole, loops, first_loop, names, ranges, reads, statements, errors };
    recognise_arg_reductions(&mut kernel);
    recognise_accumulations(&mut kernel);
    kernel
}

/// Where the walk is.
#[derive(Clone, Default)]
struct Context {
    loops: Vec<VarId>,
    conditions: Vec<Expr>,
}

struct Flattening<'a> {
    recording: &'a Recording,
    types: &'a Types<'a>,
    buffers: &'a [Option<usize>],
    elaboration: Elaboration<'a>,
    whole: Vec<Vec<VarId>>,
}

impl Flattening<'_> {
    fn declare_targets(&mut self) {
        for (number, tensor) in self.recording.tensors.iter().enumerate() {
            self.elaboration.location = tensor.location;
            self.declare(tensor, self.types.tensor(number));
        }
        for (number, binding) in self.recording.bindings.iter().enumerate() {
            if self.buffers[number].is_none() {
                continue;
            }
            let dtype = self.types.of(&binding.value).unwrap_or(DType::F64);
            let loops =
                enclosing_loops(&self.recording.body, &|node| matches!(node, Node::Bind(n) if *n == number));
            let tensor = Tensor {
                name: binding.name.clone(),
                dtype: Some(dtype),
                shape: Vec::new(),
                role: Role::Accumulator,
                loops: loops.unwrap_or_default(),
                location: Some(binding.location),
            };
            self.declare(&tensor, dtype);
        }
    }

    fn declare(&mut self, tensor: &Tensor, dtype: DType) {
        let prefix: Vec<VarId> =
            tensor.loops.iter().map(|&number| self.elaboration.loop_var(number)).collect();
        let mut shape: Vec<Index> =
            tensor.loops.iter().map(|&number| self.elaboration.loops[number].extent.clone()).collect();
        for value in &tensor.shape {
            let extent = self.elaboration.index(value, None);
            let mut fixed = true;
            extent.for_each_var(&mut |var| fixed &= var < self.elaboration.loop_var(0));
            if !fixed {
                self.elaboration.error(
                    format!("the shape of `{}` depends on a loop variable", tensor.name),
                    "use its largest extent as the shape, and write only the part that is needed",
                );
            }
            shape.push(if fixed { extent } else { Index::constant(1) });
        }
        let mut whole = prefix.clone();
        if matches!(tensor.role, Role::Local | Role::Accumulator) {
            for (dimension, extent) in shape.iter().skip(prefix.len()).enumerate() {
                whole.push(self.add_loop(format!("d{dimension}"), extent.clone()));
            }
        }
        self.whole.push(whole);
        let name = tensor.name.clone();
        self.elaboration.targets.push(Target {
            name,
            dtype,
            prefix,
            shape,
            role: tensor.role,
            location: tensor.location,
        });
    }

    /// A loop that the user did not write.
    fn add_loop(&mut self, name: String, extent: Index) -> VarId {
        let var = self.elaboration.loop_var(self.elaboration.loops.len());
        let value = Index::var(var);
        self.elaboration.loops.push(LoopForm { name, var, extent, value, conditions: Vec::new() });
        var
    }

    fn walk(&mut self, nodes: &[Node], context: &Context) -> Vec<Statement> {
        let mut statements = Vec::new();
        for node in nodes {
            match node {
                Node::For { number, body } => {
                    let mut inner = context.clone();
                    let form = &self.elaboration.loops[*number];
                    inner.loops.push(form.var);
                    inner.conditions.extend(form.conditions.iter().cloned());
                    statements.extend(self.walk(body, &inner));
                }
                Node::If { condition, then, otherwise } => {
                    statements.extend(self.branch(*condition, then, otherwise, context));
                }
                Node::Store(write) => statements.push(self.store(write, context)),
                Node::Initialise { target, value, clock } => {
                    statements.push(self.initialise(*target, value, *clock, context));
                }
                Node::Bind(number) => statements.extend(self.bind(*number, context)),
            }
        }
        statements
    }

    fn store(&mut self, write: &Write, context: &Context) -> Statement {
        self.elaboration.location = Some(write.location);
        let target = &self.elaboration.targets[write.target];
        if matches!(target.role, Role::Input | Role::Constant) {
            self.elaboration.error(
                format!("`{}` is an input and cannot be written", target.name),
                format!("take `{}` as `&mut Tensor`, or write to a tensor of its own", target.name),
            );
        }
        let indices = self.elaboration.indices(write.target, &write.indices);
        let value = self.elaboration.typed(&write.value, target.dtype);
        let effect = match write.op {
            UpdateOp::Set => Effect::Set(value),
            UpdateOp::Add => Effect::Combine(BinaryOp::Add, value),
            UpdateOp::Mul => Effect::Combine(BinaryOp::Mul, value),
            UpdateOp::Max => Effect::Combine(BinaryOp::Max, value),
            UpdateOp::Min => Effect::Combine(BinaryOp::Min, value),
            UpdateOp::Maximum => Effect::Combine(BinaryOp::Maximum, value),
            UpdateOp::Minimum => Effect::Combine(BinaryOp::Minimum, value),
        };
        Statement {
            loops: context.loops.clone(),
            recurrences: vec![None; context.loops.len()],
            conditions: context.conditions.clone(),
            target: write.target,
            indices,
            effect,
            clock: write.clock,
            initial: false,
            location: Some(write.location),
        }
    }

    /// Every element of the tensor, in loops of its own.
    fn initialise(&mut self, target: usize, value: &Value, clock: u32, context: &Context) -> Statement {
        let Target { dtype, location, .. } = self.elaboration.targets[target];
        self.elaboration.location = location;
        let value = self.elaboration.typed(value, dtype);
        let whole = self.whole[target].clone();
        Statement {
            // A constant may as well be written where the condition does not hold.
            conditions: if reads_memory(&value) { context.conditions.clone() } else { Vec::new() },
            target,
            indices: whole.iter().map(|&var| Index::var(var)).collect(),
            recurrences: vec![None; whole.len()],
            loops: whole,
            effect: Effect::Set(value),
            clock,
            initial: true,
            location,
        }
    }

    fn bind(&mut self, number: usize, context: &Context) -> Option<Statement> {
        let target = self.buffers[number]?;
        let binding = &self.recording.bindings[number];
        self.elaboration.location = Some(binding.location);
        let value = self.elaboration.typed(&binding.value, self.elaboration.targets[target].dtype);
        Some(Statement {
            loops: context.loops.clone(),
            recurrences: vec![None; context.loops.len()],
            conditions: context.conditions.clone(),
            target,
            indices: self.elaboration.indices(target, &[]),
            effect: Effect::Set(value),
            clock: binding.clock,
            initial: false,
            location: Some(binding.location),
        })
    }

    fn branch(
        &mut self,
        condition: usize,
        then: &[Node],
        otherwise: &[Node],
        context: &Context,
    ) -> Vec<Statement> {
        self.elaboration.location = Some(self.recording.bindings[condition].location);
        let condition = self.elaboration.typed(&self.recording.bindings[condition].bound, DType::Bool);
        let mut under = |condition: Expr, nodes: &[Node]| {
            let mut inner = context.clone();
            inner.conditions.push(condition);
            self.walk(nodes, &inner)
        };
        let mut statements = under(condition.clone(), then);
        let mut others = under(negate(&condition), otherwise);
        let buffers = |statement: &Statement| statement.target >= self.recording.tensors.len();
        let (a, b) = (statements.last(), others.last());
        if let (Some(a), Some(b)) = (a, b)
            && statements.iter().rev().skip(1).all(buffers)
            && others.iter().rev().skip(1).all(buffers)
            && let Some(merged) = merge(a, b, &condition, context)
        {
            statements.pop();
            others.pop();
            statements.extend(others);
            statements.push(merged);
            return statements;
        }
        statements.extend(others);
        statements
    }
}

/// `if c { x op= a } else { x op= b }` as one assignment of `select(c, a, b)`.
fn merge(then: &Statement, otherwise: &Statement, condition: &Expr, context: &Context) -> Option<Statement> {
    let direct = |statement: &Statement| {
        statement.loops == context.loops && statement.conditions.len() == context.conditions.len() + 1
    };
    let same = then.target == otherwise.target && then.indices == otherwise.indices;
    if !same || !direct(then) || !direct(otherwise) {
        return None;
    }
    let choose = |a: &Expr, b: &Expr| Expr::select(condition.clone(), a.clone(), b.clone());
    let effect = match (&then.effect, &otherwise.effect) {
        (Effect::Set(a), Effect::Set(b)) => Effect::Set(choose(a, b)),
        (Effect::Combine(op, a), Effect::Combine(other, b)) if op == other => {
            Effect::Combine(*op, choose(a, b))
        }
        _ => return None,
    };
    Some(Statement {
        conditions: context.conditions.clone(),
        effect,
        // The loads of the second branch do not see the first branch's write.
        clock: otherwise.clock,
        ..then.clone()
    })
}

/// The condition that holds exactly when this one does not.
fn negate(condition: &Expr) -> Expr {
    let not = Expr::unary(UnaryOp::Not, condition.clone());
    crate::simplify::simplify_expr(&not, &Ranges::new()).unwrap_or(not)
}

/// The loops around the first node that is sought.
fn enclosing_loops(nodes: &[Node], sought: &dyn Fn(&Node) -> bool) -> Option<Vec<usize>> {
    nodes.iter().find_map(|node| match node {
        node if sought(node) => Some(Vec::new()),
        Node::For { number, body } => enclosing_loops(body, sought).map(|mut loops| {
            loops.insert(0, *number);
            loops
        }),
        Node::If { then, otherwise, .. } => {
            enclosing_loops(then, sought).or_else(|| enclosing_loops(otherwise, sought))
        }
        _ => None,
    })
}

/// Turns `x = x + a`, and `if a > x { x = a }`, in a loop that does not index `x` into an accumulation.
fn recognise_accumulations(kernel: &mut Kernel) {
    for at in 0..kernel.statements.len() {
        let statement = &kernel.statements[at];
        let repeats = statement
            .loops
            .iter()
            .any(|&var| !statement.indices.iter().any(|index: &Index| index.mentions(var)));
        let Effect::Set(value) = &statement.effect else { continue };
        if !repeats {
            continue;
        }
        let is_old = |expr: &Expr| kernel.is_own_read(statement, expr);
        if let Some(effect) = recognise(value, &is_old) {
            kernel.statements[at].effect = effect;
        } else if let Some(condition) = statement.conditions.last() {
            let chosen = recognise_assignment(condition, value, &is_old);
            if let Some(effect) = chosen {
                let statement = &mut kernel.statements[at];
                statement.effect = effect;
                statement.conditions.pop();
            }
        }
    }
}
