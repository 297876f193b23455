//! Random definitions: what the builder makes of them computes what they say.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::executor::{Executor, show};
use super::*;
use crate::build::ScalarHandle;
use crate::build::bounds::{Case, check_in_bounds};
use crate::ids::VarId;
use crate::interp::{Interpreter, Options};
use crate::program::Access;
use crate::stmt::{IterKind, LoopKind, Stmt};
use crate::tensor::AnyTensor;

/// A small deterministic generator: a linear congruential one with the constants of Knuth's MMIX.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % end
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        if from.is_empty() { None } else { Some(&from[self.below(from.len())]) }
    }
}

/// Everything that a statement may name. Dimensions are numbered; a loop over one indexes tensors along it.
#[derive(Clone)]
struct Scope {
    dims: Vec<Value>,
    /// Loop variables with the dimension in which they stay.
    loops: Vec<(Value, usize)>,
    /// Readable tensors with their dimensions.
    tensors: Vec<(TensorHandle, Vec<usize>)>,
    writable: Vec<(TensorHandle, Vec<usize>)>,
    accumulators: Vec<ScalarHandle>,
    bindings: Vec<Value>,
    depth: usize,
}

struct Generator {
    random: Random,
    names: usize,
}

impl Generator {
    fn name(&mut self, stem: &str) -> String {
        self.names += 1;
        format!("{stem}{}", self.names)
    }

    fn index(&mut self, scope: &Scope, dim: usize) -> Value {
        let fitting: Vec<Value> =
            scope.loops.iter().filter(|(_, own)| *own == dim).map(|(var, _)| var.clone()).collect();
        let chosen = if self.random.chance(85) { fitting.last() } else { self.random.pick(&fitting) };
        match chosen {
            Some(var) if self.random.chance(4) => add(var, &int(1)),
            Some(var) if self.random.chance(4) => sub(var, &int(1)),
            Some(var) => var.clone(),
            None => int(0),
        }
    }

    fn indices(&mut self, scope: &Scope, dims: &[usize]) -> Vec<Value> {
        dims.iter().map(|dim| self.index(scope, *dim)).collect()
    }

    fn value(&mut self, b: &KernelBuilder, scope: &Scope, depth: usize) -> Value {
        let (tensors, bindings) = (&scope.tensors, &scope.bindings);
        match self.random.below(if depth == 0 { 6 } else { 10 }) {
            0..=2 if !tensors.is_empty() => {
                let (tensor, dims) = self.random.pick(tensors).expect("not empty").clone();
                let indices = self.indices(scope, &dims);
                b.load(tensor, &indices)
            }
            3 if !scope.accumulators.is_empty() => {
                b.read(*self.random.pick(&scope.accumulators).expect("not empty"))
            }
            4 if !bindings.is_empty() => self.random.pick(bindings).expect("not empty").clone(),
            5 if !scope.loops.is_empty() => {
                let (var, _) = self.random.pick(&scope.loops).expect("not empty");
                var.cast(DType::I32)
            }
            6 | 7 => {
                let (left, right) = (self.value(b, scope, depth - 1), self.value(b, scope, depth - 1));
                let op = [BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul, BinaryOp::Max][self.random.below(4)];
                left.binary(op, right)
            }
            8 => {
                let condition = self.condition(b, scope);
                condition.select(self.value(b, scope, depth - 1), self.value(b, scope, depth - 1))
            }
            _ => Value::typed_int(DType::I32, self.random.below(5) as i64),
        }
    }

    fn condition(&mut self, b: &KernelBuilder, scope: &Scope) -> Value {
        let op = [BinaryOp::Lt, BinaryOp::Ge, BinaryOp::Eq][self.random.below(3)];
        if scope.loops.len() >= 2 && self.random.chance(50) {
            let left = self.random.pick(&scope.loops).expect("not empty").0.clone();
            let right = self.random.pick(&scope.loops).expect("not empty").0.clone();
            return left.binary(op, right);
        }
        let value = self.value(b, scope, 1);
        compare(&value, op, &Value::typed_int(DType::I32, self.random.below(4) as i64))
    }

    fn op(&mut self, accumulates: bool) -> UpdateOp {
        let percent = if accumulates { 15 } else { 60 };
        if self.random.chance(percent) {
            return UpdateOp::Set;
        }
        [UpdateOp::Add, UpdateOp::Add, UpdateOp::Mul, UpdateOp::Max, UpdateOp::Min][self.random.below(5)]
    }

    fn body(&mut self, b: &mut KernelBuilder, scope: &Scope) {
        let mut scope = scope.clone();
        for _ in 0..1 + self.random.below(3) {
            self.statement(b, &mut scope);
        }
    }

    fn statement(&mut self, b: &mut KernelBuilder, scope: &mut Scope) {
        match self.random.below(12) {
            0..=3 if scope.depth < 3 => self.for_loop(b, scope),
            4 => {
                let name = self.name("let");
                let value = self.value(b, scope, 2);
                scope.bindings.push(b.bind(&name, value, at(1)));
            }
            5 => {
                let name = self.name("acc");
                let value = self.value(b, scope, 0);
                scope.accumulators.push(b.accumulator(&name, value, at(1)));
            }
            6 | 7 if !scope.accumulators.is_empty() => {
                let scalar = *scope.accumulators.last().expect("not empty");
                let value = self.value(b, scope, 1);
                let op = self.op(true);
                b.update(scalar, op, value, at(2));
            }
            8 if scope.depth < 3 => {
                let condition = self.condition(b, scope);
                let both = self.random.chance(50);
                let cell = std::cell::RefCell::new(&mut *self);
                let inner = Scope { depth: scope.depth + 1, ..scope.clone() };
                b.if_else(
                    condition,
                    at(3),
                    |b| cell.borrow_mut().body(b, &inner),
                    |b| {
                        if both {
                            cell.borrow_mut().body(b, &inner);
                        }
                    },
                );
            }
            9 if scope.depth < 2 => {
                let name = self.name("t");
                let dims: Vec<usize> = (0..self.random.below(3)).map(|_| self.random.below(3)).collect();
                let shape: Vec<Value> = dims.iter().map(|dim| scope.dims[*dim].clone()).collect();
                let initial = Value::typed_int(DType::I32, self.random.below(3) as i64);
                let tensor = b.tensor(&name, DType::I32, &shape, Some(initial), at(4));
                scope.tensors.push((tensor, dims.clone()));
                scope.writable.push((tensor, dims));
            }
            _ => {
                let Some((tensor, dims)) = self.random.pick(&scope.writable).cloned() else { return };
                let indices = self.indices(scope, &dims);
                let indexed = scope.loops.len() > dims.len();
                let value = self.value(b, scope, 2);
                let op = self.op(indexed);
                b.store(tensor, &indices, op, value, at(5));
            }
        }
    }

    fn for_loop(&mut self, b: &mut KernelBuilder, scope: &Scope) {
        let name = self.name("i");
        let dim = self.random.below(3);
        let end = scope.dims[dim].clone();
        let outer: Vec<Value> =
            scope.loops.iter().filter(|(_, own)| *own == dim).map(|(var, _)| var.clone()).collect();
        let (start, end, step) = match (self.random.below(10), outer.last()) {
            (0, _) => (int(1), end, 1),
            (1, _) => (int(0), end, 2),
            (2, _) => (int(0), sub(&end, &int(1)), 1),
            (3 | 4, Some(outer)) => (int(0), add(outer, &int(1)), 1),
            (5, Some(outer)) => (outer.clone(), end, 1),
            (6, Some(outer)) => (outer.clone(), end, 2),
            _ => (int(0), end, 1),
        };
        let mut inner = Scope { depth: scope.depth + 1, ..scope.clone() };
        b.for_loop(&name, start, end, step, at(6), |b, var| {
            inner.loops.push((var, dim));
            self.body(b, &inner);
        });
    }
}

/// A random definition over three dimensions, with an input matrix, an input vector, an inout vector and
/// an output of two dimensions.
fn generate(seed: u64) -> KernelBuilder {
    let mut generator = Generator { random: Random(seed), names: 0 };
    let mut b = KernelBuilder::new("random");
    let dims = vec![b.dim("M"), b.dim("N"), b.dim("K")];
    let shape = |at: &[usize]| at.iter().map(|at| dims[*at].clone()).collect::<Vec<Value>>();
    let x = b.input("x", DType::I32, &shape(&[0, 1]));
    let v = b.input("v", DType::I32, &shape(&[2]));
    let z = b.inout("z", DType::I32, &shape(&[1]));
    let y = b.tensor("y", DType::I32, &shape(&[0, 1]), Some(Value::typed_int(DType::I32, 1)), at(0));
    let scope = Scope {
        dims: dims.clone(),
        loops: Vec::new(),
        tensors: vec![(x, vec![0, 1]), (v, vec![2]), (z, vec![1]), (y, vec![0, 1])],
        writable: vec![(z, vec![1]), (y, vec![0, 1])],
        accumulators: Vec::new(),
        bindings: Vec::new(),
        depth: 0,
    };
    for _ in 0..2 {
        generator.for_loop(&mut b, &scope);
    }
    b.output(y);
    b
}

fn contents(random: &mut Random, len: i64) -> Vec<i64> {
    (0..len).map(|_| random.below(7) as i64 - 3).collect()
}

/// Runs a random definition as written and as built. `None` when it is wrong for these sizes.
fn compare_runs(seed: u64, program: &Program, sizes: [i64; 3]) -> Option<()> {
    let [m, n, k] = sizes;
    let mut random = Random(seed);
    let arguments = [contents(&mut random, m * n), contents(&mut random, k), contents(&mut random, n)];
    agrees_with_definition(generate(seed), program, &sizes, &arguments, seed)
}

/// Runs a definition as written and as built, with loops whose iterations must be independent in the order of a seed. `None` when
/// it is wrong for these sizes.
pub(super) fn agrees_with_definition(
    mut b: KernelBuilder,
    program: &Program,
    sizes: &[i64],
    arguments: &[Vec<i64>],
    seed: u64,
) -> Option<()> {
    let body = std::mem::take(&mut b.current);
    let mut executor = Executor::new(&b.recording, sizes, arguments).ok()?;
    executor.run(&body).ok()?;
    let named: Vec<(VarId, i64)> = program.dims().map(|(var, _)| var).zip(sizes.iter().copied()).collect();
    let bound = program.bind_dims(&named);
    let checked = match check_in_bounds(&bound) {
        Ok(checked) => checked,
        // A store whose condition depends on data.
        Err(errors) if errors.errors.iter().all(|error| error.case == Case::Possible) => return None,
        Err(errors) => panic!("seed {seed}, sizes {sizes:?}: {errors}\n{bound}"),
    };
    if let Err(errors) = verify(&checked, Level::Blocks) {
        panic!("seed {seed}, sizes {sizes:?}: {}", errors.render(&checked));
    }
    let mut buffers: Vec<AnyTensor> = Vec::new();
    let mut expected: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    let mut inputs = arguments.iter();
    for (position, (id, access)) in checked.buffer_params().enumerate() {
        let shape: Vec<usize> =
            checked.buffer(id).shape.iter().map(|e| e.as_constant().expect("bound") as usize).collect();
        let values: Vec<f64> = match access {
            Access::Output => vec![99.0; shape.iter().product()],
            _ => inputs.next().expect("one per argument").iter().map(|v| *v as f64).collect(),
        };
        buffers.push(AnyTensor::from_f64s(DType::I32, &values, &shape).expect("the shape fits"));
        let number = b.recording.tensors.iter().position(|t| *t.name == *checked.buffer(id).name)?;
        let elements = executor.tensors[number].elements.iter();
        expected.insert(position, elements.map(|e| e.expect("all is initialised") as f64).collect());
    }
    let mut parallel = checked.clone();
    run_spatial_loops_in_any_order(&mut parallel.body);
    let options = Options { parallel_order_seed: Some(seed) };
    Interpreter::new(&parallel)
        .and_then(|interpreter| interpreter.run(options, &[], &[], &mut buffers))
        .unwrap_or_else(|error| panic!("seed {seed}, sizes {sizes:?}: {error}\n{checked}"));
    for (position, expected) in expected {
        assert_eq!(
            buffers[position].to_f64_vec(),
            expected,
            "seed {seed}, sizes {sizes:?}, argument {position}\n{}\n{program}\n{checked}",
            show(&b.recording, &body, 0)
        );
    }
    Some(())
}

/// Loops whose iterations must be independent run in a random order.
fn run_spatial_loops_in_any_order(stmt: &mut Stmt) -> Vec<VarId> {
    let mut spatial: Vec<VarId> = Vec::new();
    if let Stmt::Block(block) = stmt {
        for iter in block.iters.iter().filter(|iter| iter.kind == IterKind::Spatial) {
            spatial.extend(iter.binding.as_var());
        }
    }
    for child in stmt.children_mut() {
        spatial.extend(run_spatial_loops_in_any_order(child));
    }
    if let Stmt::For(node) = stmt
        && spatial.contains(&node.var)
    {
        Arc::make_mut(node).kind = LoopKind::Parallel;
    }
    spatial
}

#[test]
fn what_is_built_computes_what_was_written() {
    let (mut built, mut compared) = (0, 0);
    for seed in 0..8000 {
        let Ok(program) = generate(seed).finish() else { continue };
        if let Err(errors) = verify(&program, Level::Blocks) {
            panic!("seed {seed}: {}", errors.render(&program));
        }
        built += 1;
        for sizes in [[2, 3, 2], [1, 1, 1], [3, 2, 5], [0, 2, 1], [2, 4, 0], [4, 4, 4]] {
            compared += usize::from(compare_runs(seed, &program, sizes).is_some());
        }
    }
    assert!(built > 300 && compared > 1000, "only {built} were built and {compared} compared");
}
