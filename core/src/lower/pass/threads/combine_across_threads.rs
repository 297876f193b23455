//! Reductions over loops that are bound to threads: the threads combine their values, first in each warp by exchanges, then across warps
//! through memory that they share.
//!
//! ```text
//! bound thread_x for t in 0..128 { s[0] = s[0] + p[t] }
//!
//! bound thread_x for t in 0..128 { part[0] = p[t] }
//! shuffle 16 { other[0] = part[0] }  part[0] = part[0] + other[0]          and with 8, 4, 2, 1
//! bound thread_x for t in 0..128 { if t % 32 < 1 { of_warps[t / 32] = part[0] } }
//! bound thread_x for t in 0..128 { part[0] = of_warps[t % 4] }
//! shuffle 2 { other[0] = part[0] }  part[0] = part[0] + other[0]           and with 1
//! s[0] = s[0] + part[0]
//! ```
//!
//! Afterwards all threads have the result ("butterfly"), so that steps that read it need it in no memory that they share. The order in
//! which values are combined differs from that of a loop.

use std::sync::Arc;

use crate::analysis::block::{Reducer, reduction_of};
use crate::analysis::condition::mentions;
use crate::dtype::DType;
use crate::expr::{BinaryOp, Expr};
use crate::ids::{BufferId, VarId};
use crate::index::Index;
use crate::lower::{LowerError, LowerOptions};
use crate::program::{Buffer, Program, Scope, VariableKind};
use crate::stmt::{Alloc, Annotations, For, LoopKind, Shuffle, Stmt, Store};
use crate::thread_axis::{ThreadAxis, WARP};

/// Replaces all reductions over loops that are bound to threads.
pub(in crate::lower) fn combine_across_threads(
    program: &mut Program,
    _: &LowerOptions,
) -> Result<(), LowerError> {
    let mut body = std::mem::replace(&mut program.body, Stmt::nothing());
    let outcome = replace(program, &mut body, &mut Vec::new());
    program.body = body;
    outcome
}

fn replace(program: &mut Program, stmt: &mut Stmt, around: &mut Vec<ThreadAxis>) -> Result<(), LowerError> {
    let axis = match stmt {
        Stmt::For(node) => match node.kind {
            LoopKind::Bound(axis) if axis.is_of_block() => Some(axis),
            _ => None,
        },
        _ => None,
    };
    if let (Some(axis), Stmt::For(node)) = (axis, &*stmt)
        && let Some(store) = combined_by(node)
    {
        *stmt = combine(program, node, &store.clone(), axis, around)?;
        return Ok(());
    }
    if let (Some(axis), Stmt::For(node)) = (axis, &*stmt)
        && updates_one_element(node.var, &node.body, &mut Vec::new())
    {
        let problem = "its iterations update one element in loops or beside statements of their own; bind the innermost loop of a reduction alone";
        let variable = program.variable(node.var).name.to_string();
        return Err(LowerError::Threads { variable, axis: axis.text(), problem });
    }
    around.extend(axis);
    let children = stmt.children_mut();
    let outcome = children.into_iter().try_for_each(|child| replace(program, child, around));
    around.truncate(around.len() - usize::from(axis.is_some()));
    outcome
}

/// The store of a loop all of whose iterations update one element.
fn combined_by(node: &For) -> Option<&Store> {
    let mut body = &node.body;
    while let Stmt::If(guard) = body
        && guard.otherwise.is_none()
        && !mentions(&guard.condition, node.var)
    {
        body = &guard.then;
    }
    let Stmt::Store(store) = body else { return None };
    let is_fixed = !store.indices.iter().any(|index| index.mentions(node.var));
    (is_fixed && !store.is_atomic() && reduction_of(store).is_some()).then_some(store)
}

/// Whether all iterations of a loop update one element of a buffer that is not allocated inside of it.
fn updates_one_element(var: VarId, stmt: &Stmt, allocated: &mut Vec<BufferId>) -> bool {
    match stmt {
        Stmt::Alloc(node) => allocated.push(node.buffer),
        Stmt::Store(store) => {
            let is_fixed = !store.indices.iter().any(|index| index.mentions(var));
            let is_combined = is_fixed && !store.is_atomic() && reduction_of(store).is_some();
            return is_combined && !allocated.contains(&store.buffer);
        }
        _ => {}
    }
    stmt.each_child().any(|child| updates_one_element(var, child, allocated))
}

fn combine(
    program: &mut Program,
    node: &For,
    store: &Store,
    axis: ThreadAxis,
    around: &[ThreadAxis],
) -> Result<Stmt, LowerError> {
    let Some(found) = reduction_of(store) else { return Ok(Stmt::For(Arc::new(node.clone()))) };
    let threads = node.extent.as_constant().unwrap_or(0);
    let problem = if axis != ThreadAxis::ThreadX {
        Some(
            "the iterations update one element, for which threads along `thread_x` alone can exchange values",
        )
    } else if threads < 1 || threads & (threads - 1) != 0 || threads > WARP * WARP {
        Some("the iterations update one element: their number must be a power of two up to 1024")
    } else if threads > WARP && !around.is_empty() {
        Some("the iterations update one element inside of another loop over threads; make them 32 at most")
    } else {
        None
    };
    if let Some(problem) = problem {
        let variable = program.variable(node.var).name.to_string();
        return Err(LowerError::Threads { variable, axis: axis.text(), problem });
    }
    let mut combination = Combination::new(program, store, found.reducer, threads);
    let mut stmts = vec![combination.own_value(node, found.value)];
    combination.exchange(threads.min(WARP), &mut stmts);
    if threads > WARP {
        combination.across_warps(threads, &mut stmts);
    }
    stmts.push(combination.update(store));
    let body = combination.allocated(Stmt::seq(stmts));
    Ok(under_guards_of(node, body))
}

/// The statement under the conditions of the loop's body.
fn under_guards_of(node: &For, inside: Stmt) -> Stmt {
    let (mut conditions, mut body) = (Vec::new(), &node.body);
    while let Stmt::If(guard) = body {
        conditions.push(guard.condition.clone());
        body = &guard.then;
    }
    conditions.into_iter().rev().fold(inside, |stmt, condition| Stmt::when(condition, stmt))
}

/// The buffers of one reduction across threads.
struct Combination<'p> {
    program: &'p mut Program,
    dtype: DType,
    op: BinaryOp,
    /// The value of each thread, and of its partner.
    part: BufferId,
    other: BufferId,
    /// The results of the warps, where there are several.
    of_warps: Option<BufferId>,
}

impl<'p> Combination<'p> {
    fn new(program: &'p mut Program, store: &Store, reducer: Reducer, threads: i64) -> Self {
        let (dtype, name) = (store.value.dtype(), program.buffer(store.buffer).name.clone());
        let mut add = |suffix: &str, extent: i64, scope: Scope| {
            let name = format!("{name}_{suffix}").into();
            program.add_buffer(Buffer { name, dtype, shape: vec![Index::constant(extent)], scope })
        };
        let (part, other) = (add("part", 1, Scope::Local), add("other", 1, Scope::Local));
        let of_warps = (threads > WARP).then(|| add("of_warps", threads / WARP, Scope::Shared));
        Combination { program, dtype, op: reducer.op(), part, other, of_warps }
    }

    fn first(&self, buffer: BufferId) -> Expr {
        Expr::load(self.dtype, buffer, [Index::constant(0)])
    }

    /// Each thread stores its own value.
    fn own_value(&self, node: &For, value: &Expr) -> Stmt {
        let body = Stmt::store(self.part, [Index::constant(0)], value.clone());
        Stmt::For(Arc::new(For { body, ..node.clone() }))
    }

    /// Groups of as many threads combine their values.
    fn exchange(&self, threads: i64, stmts: &mut Vec<Stmt>) {
        let mut mask = threads as u32 / 2;
        while mask > 0 {
            let body = Stmt::store(self.other, [Index::constant(0)], self.first(self.part));
            stmts.push(Stmt::Shuffle(Arc::new(Shuffle { mask, body })));
            let value = Expr::binary(self.op, self.first(self.part), self.first(self.other));
            stmts.push(Stmt::store(self.part, [Index::constant(0)], value));
            mask /= 2;
        }
    }

    /// The first lane of each warp stores the warp's result, and all warps combine all results.
    fn across_warps(&mut self, threads: i64, stmts: &mut Vec<Stmt>) {
        let Some(of_warps) = self.of_warps else { return };
        let warps = threads / WARP;
        let part = self.first(self.part);
        stmts.push(self.by_threads(threads, |thread| {
            let is_first =
                Expr::binary(BinaryOp::Lt, Expr::index(thread.modulo(WARP)), Expr::index(Index::constant(1)));
            Stmt::when(is_first, Stmt::store(of_warps, [thread.floor_div(WARP)], part))
        }));
        let (dtype, part) = (self.dtype, self.part);
        stmts.push(self.by_threads(threads, |thread| {
            Stmt::store(part, [Index::constant(0)], Expr::load(dtype, of_warps, [thread.modulo(warps)]))
        }));
        self.exchange(warps, stmts);
    }

    fn by_threads(&mut self, threads: i64, body: impl FnOnce(&Index) -> Stmt) -> Stmt {
        let var: VarId = self.program.add_variable(ThreadAxis::ThreadX.text(), VariableKind::Loop);
        let (id, extent) = (self.program.fresh_loop(), Index::constant(threads));
        let (kind, annotations) = (LoopKind::Bound(ThreadAxis::ThreadX), Annotations::new());
        Stmt::For(Arc::new(For { id, var, extent, kind, annotations, body: body(&Index::var(var)) }))
    }

    /// The element combined with the result.
    fn update(&self, store: &Store) -> Stmt {
        let element = Expr::load(self.dtype, store.buffer, store.indices.iter().cloned());
        let value = Expr::binary(self.op, element, self.first(self.part));
        Stmt::store(store.buffer, store.indices.iter().cloned(), value)
    }

    fn allocated(&self, body: Stmt) -> Stmt {
        let buffers = self.of_warps.into_iter().chain([self.other, self.part]);
        buffers.fold(body, |body, buffer| Stmt::Alloc(Arc::new(Alloc { buffer, body })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interp::{Interpreter, Options};
    use crate::lower::pass::threads::{bind_threads::bind_threads, insert_barriers::insert_barriers};
    use crate::target::Target;
    use crate::tensor::AnyTensor;
    use crate::verify::{Level, verify};

    fn options() -> LowerOptions {
        LowerOptions::of(&Target::generic_gpu())
    }

    /// Rows that `threads` threads combine, `rows` of which a block of threads has.
    fn kernel(dtype: &str, update: &str, initial: &str, threads: i64, rows: i64) -> Program {
        let of_rows = if rows == 1 { "for" } else { "bound thread_y for" };
        let text = format!(
            "kernel k(in x: {dtype}[3, {rows}, {threads}], out y: {dtype}[3, {rows}]) {{
  buffer s: {dtype}[1] local
  bound block_x for b in 0..3 {{ {of_rows} r in 0..{rows} {{
    alloc s {{
      s[0] = {initial}
      bound thread_x for t in 0..{threads} {{ s[0] = {update} }}
      bound thread_x for t2 in 0..{threads} {{ if t2 < 1 {{ y[b, r] = s[0] }} }}
    }}
  }} }}
}}"
        );
        text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    fn run(program: &Program, seed: Option<u64>, input: &AnyTensor, rows: usize) -> Vec<f64> {
        let output = AnyTensor::zeros(input.dtype(), &[3, rows]).unwrap();
        let mut tensors = [input.clone(), output];
        Interpreter::new(program)
            .and_then(|interpreter| {
                interpreter.run(Options { parallel_order_seed: seed }, &[], &[], &mut tensors)
            })
            .unwrap_or_else(|error| panic!("{error}\n{program}"));
        tensors[1].to_f64_vec()
    }

    /// The program of one thread.
    fn of_thread(program: &Program) -> Program {
        let mut program = program.clone();
        for pass in [combine_across_threads, insert_barriers, bind_threads] {
            pass(&mut program, &options()).unwrap_or_else(|error| panic!("{error}\n{program}"));
        }
        verify(&program, Level::Loops).unwrap_or_else(|error| panic!("{error}\n{program}"));
        program
    }

    #[test]
    fn threads_have_the_result_of_all_of_them() {
        let cases = [(32, 1), (64, 1), (1024, 1), (32, 4), (8, 4), (2, 48), (1, 32), (16, 2), (256, 1)];
        for (threads, rows) in cases {
            for (dtype, update, initial) in [
                ("i32", "s[0] + x[b, r, t]", "5i32"),
                ("i64", "x[b, r, t] + s[0]", "0i64"),
                ("f32", "max(s[0], x[b, r, t] * 2.0)", "-1.0"),
                ("u8", "min(s[0], x[b, r, t])", "200u8"),
            ] {
                let program = kernel(dtype, update, initial, threads, rows);
                let shape = [3, rows as usize, threads as usize];
                let input = AnyTensor::random(program.buffers().next().unwrap().1.dtype, &shape, 3).unwrap();
                let expected = run(&program, None, &input, rows as usize);
                let bound = of_thread(&program);
                for seed in [None, Some(1), Some(2)] {
                    assert_eq!(run(&bound, seed, &input, rows as usize), expected, "{program}\n{bound}");
                }
                let barriers = bound.to_string().matches("barrier()").count();
                assert_eq!(barriers, usize::from(threads > WARP), "{bound}");
            }
        }
    }

    #[test]
    fn numbers_of_threads_that_cannot_exchange_values_are_refused() {
        for (threads, rows, word) in [(33, 1, "power of two"), (64, 2, "32 at most")] {
            let mut program = kernel("i32", "s[0] + x[b, r, t]", "0i32", threads, rows);
            let error = combine_across_threads(&mut program, &options()).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn updates_of_one_element_beside_other_statements_are_refused() {
        let text = "kernel k(in x: f32[32], out y: f32[1]) {
  buffer s: f32[1] local
  bound block_x for b in 0..1 { alloc s {
    s[0] = 0.0
    bound thread_x for t in 0..32 { for k in 0..2 { s[0] = s[0] + x[t] } }
    y[0] = s[0]
  } }
}";
        let mut program: Program = text.parse().unwrap();
        let error = combine_across_threads(&mut program, &options()).unwrap_err().to_string();
        assert!(error.contains("beside statements"), "{error}");
    }
}
