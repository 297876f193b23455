//! Programs that update a tensor in place, and the same with a result of its own.

use std::sync::Arc;

use crate::access::rewrite_accesses;
use crate::analysis::block::{loads, writes};
use crate::analysis::pipeline::statements;
use crate::analysis::scope::{blocks, writers};
use crate::expr::{ExprKind, Indices};
use crate::ids::BufferId;
use crate::index::Index;
use crate::program::{Access, Param, Program};
use crate::schedule::edit::{copy_nest, fresh_block_name, insert_statement};
use crate::stmt::{Block, For, IterKind, Stmt};

impl Program {
    /// The program, at the `Blocks` level, with a result in the memory of a tensor that it reads: the tensor is updated in place, and takes
    /// the result's place among the parameters. `None` where that would change the meaning: either each element of the tensor is read for
    /// the same element of the result alone, which is computed once, or the result begins as a copy of the tensor, which nothing else reads.
    ///
    /// ```
    /// # use tilewright_core::program::Program;
    /// let program: Program = "kernel relu(N, in x: f32[N], out y: f32[N]) {
    ///     for i in 0..N { block b(v: spatial N = i) { y[v] = max(x[v], 0.0) } }
    /// }".parse()?;
    /// let [x, y] = [0, 1].map(|place| program.buffer_params().nth(place).unwrap().0);
    /// let updating = program.in_place(x, y).expect("each element is read for itself");
    /// assert!(updating.to_string().contains("inout x: f32[N]"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn in_place(&self, tensor: BufferId, result: BufferId) -> Option<Program> {
        let (old, new) = (self.buffer(tensor), self.buffer(result));
        let is_alike = old.dtype == new.dtype && old.shape == new.shape && old.scope == new.scope;
        let is_read = self.access(tensor) == Some(Access::Input) && self.strides(tensor).is_none();
        if !is_alike || !is_read || self.access(result) != Some(Access::Output) {
            return None;
        }
        if let Some(copy) = initial_copy(self, tensor, result) {
            let mut updating = self.clone();
            let others = statements(&self.body).iter().enumerate().filter(|(place, _)| *place != copy);
            updating.body = Stmt::seq(others.map(|(_, stmt)| stmt.clone()));
            return Some(updating.merged(tensor, result));
        }
        let &[writer] = &writers(self, result)[..] else { return None };
        let places = places_of_points(writer, result)?;
        let reads = loads(&self.body);
        let own = loads(&writer.body);
        let count = |buffer| reads.iter().filter(|read| read.buffer == buffer).count();
        let in_place = own.iter().filter(|read| read.buffer == tensor && read.indices == places).count();
        if in_place != count(tensor) || count(result) > 0 {
            return None;
        }
        Some(self.clone().merged(tensor, result))
    }

    /// The program with a tensor in the place of a result.
    fn merged(mut self, tensor: BufferId, result: BufferId) -> Program {
        let params = Arc::make_mut(&mut self.params);
        params.retain(|param| *param != Param::Buffer(tensor, Access::Input));
        for param in params.iter_mut().filter(|param| **param == Param::Buffer(result, Access::Output)) {
            *param = Param::Buffer(tensor, Access::InOut);
        }
        rewrite_accesses(&mut self.body, &|buffer, indices| {
            (buffer == result).then(|| (tensor, indices.clone()))
        });
        self
    }

    /// The program, at the `Blocks` level, without updates in place: a tensor that it updates is read alone, and a result behind all others,
    /// which begins as a copy of it, is updated instead. Results are in the order of the tensors.
    ///
    /// ```
    /// # use tilewright_core::program::Program;
    /// let program: Program = "kernel store(N, in place: i64[1], inout x: f32[N]) {
    ///     block b() { x[place[0]] = 1.0 }
    /// }".parse()?;
    /// let separate = program.out_of_place().to_string();
    /// assert!(separate.contains("(N, in place: i64[1], in x: f32[N], out x_out: f32[N])"), "{separate}");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn out_of_place(&self) -> Program {
        let mut program = self.clone();
        let updated: Vec<BufferId> = self
            .buffer_params()
            .filter(|(_, access)| *access == Access::InOut)
            .map(|(buffer, _)| buffer)
            .collect();
        for (place, &tensor) in updated.iter().enumerate() {
            let mut own = self.buffer(tensor).clone();
            own.name = format!("{}_out", own.name).into();
            let result = program.add_buffer(own);
            for param in Arc::make_mut(&mut program.params) {
                if *param == Param::Buffer(tensor, Access::InOut) {
                    *param = Param::Buffer(tensor, Access::Input);
                }
            }
            program.add_param(Param::Buffer(result, Access::Output));
            rewrite_accesses(&mut program.body, &|buffer, indices| {
                (buffer == tensor).then(|| (result, indices.clone()))
            });
            let name = fresh_block_name(&program, "copy");
            let copy = copy_nest(&mut program, name, tensor, result);
            insert_statement(&mut program.body, place, copy);
        }
        program
    }
}

/// The place of the statement, among those of the body, that makes a result a copy of a tensor before anything else is stored to the result;
/// `None` where there is none, or the tensor is read elsewhere.
fn initial_copy(program: &Program, tensor: BufferId, result: BufferId) -> Option<usize> {
    let stmts = statements(&program.body);
    let is_written = |stmt: &Stmt| blocks(stmt).into_iter().any(|block| writes(block).contains(&result));
    let place = stmts.iter().position(is_written)?;
    let reads = loads(&program.body);
    let is_read_once = reads.iter().filter(|read| read.buffer == tensor).count() == 1;
    (is_read_once && copies_all(program, &stmts[place], tensor, result)).then_some(place)
}

/// Whether a statement copies every element of a tensor to the same element of a result.
fn copies_all(program: &Program, stmt: &Stmt, tensor: BufferId, result: BufferId) -> bool {
    let (mut loops, mut inner) = (Vec::new(), stmt);
    while let Stmt::For(node) = inner {
        loops.push(node);
        inner = &node.body;
    }
    let Stmt::Block(block) = inner else { return false };
    let Some(places) = places_of_points(block, result) else { return false };
    let Stmt::Store(store) = &block.body else { return false };
    let is_copy = matches!(store.value.kind(), ExprKind::Load(from, at) if *from == tensor && at == places);
    // Each loop runs over a dimension of the result, and each dimension has a loop.
    let shape = &program.buffer(result).shape;
    let dimension_of = |node: &For| {
        let iter = block.iters.iter().find(|iter| iter.binding.as_var() == Some(node.var))?;
        places.iter().position(|place| place.as_var() == Some(iter.var) && iter.extent == node.extent)
    };
    let mut dimensions: Vec<usize> = loops
        .iter()
        .filter_map(|node| dimension_of(node).filter(|&dimension| node.extent == shape[dimension]))
        .collect();
    dimensions.sort_unstable();
    let covers_all = dimensions.into_iter().eq(0..shape.len()) && loops.len() == shape.len();
    is_copy && covers_all && block.guards.is_empty()
}

/// The indices at which a block stores to a buffer, if these are its iterators, each once: different points write different elements.
fn places_of_points(block: &Block, buffer: BufferId) -> Option<&Indices> {
    let Stmt::Store(store) = &block.body else { return None };
    let is_plain = store.buffer == buffer
        && block.init.is_none()
        && store.indices.len() == block.iters.len()
        && block.iters.iter().all(|iter| {
            let is_own = |index: &&Index| index.as_var() == Some(iter.var);
            iter.kind == IterKind::Spatial && store.indices.iter().filter(is_own).count() == 1
        });
    is_plain.then_some(&store.indices)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The program with its first parameter updated in place of its last one.
    fn updated(text: &str) -> Option<String> {
        let program: Program = text.parse().expect("the program is well-formed");
        let buffers: Vec<BufferId> = program.buffer_params().map(|(id, _)| id).collect();
        let program = program.in_place(buffers[0], *buffers.last().expect("it has parameters"))?;
        crate::verify::verify(&program, crate::verify::Level::Blocks).expect("it is well-formed");
        Some(program.to_string())
    }

    #[test]
    fn a_tensor_that_is_added_to_a_product_takes_the_sum() {
        let text = updated(
            "kernel f(N, K, in x: f32[N, 4], in a: f32[N, K], in b: f32[K, 4], out y: f32[N, 4]) {
                    buffer s: f32[N, 4] global
                    for i in 0..N { for j in 0..4 { for k in 0..K {
                        block p(v: spatial N = i, w: spatial 4 = j, u: reduce K = k) {
                            init { s[v, w] = 0.0 }
                            s[v, w] = s[v, w] + a[v, u] * b[u, w]
                        }
                    } } }
                    for i in 0..N { for j in 0..4 {
                        block q(v: spatial N = i, w: spatial 4 = j) { y[v, w] = s[v, w] + x[v, w] * x[v, w] }
                    } }
            }",
        );
        let text = text.expect("each element is read for itself");
        assert!(text.contains("in b: f32[K, 4], inout x: f32[N, 4])"), "{text}");
        assert!(!text.contains('y'), "{text}");
    }

    #[test]
    fn updates_are_taken_apart_and_together_again() {
        let text = "kernel f(N, in place: i64[1], inout x: f32[N, 4], in a: f32[N, 4], inout z: f32[N], out y: f32[N]) {
            for i in 0..N { for j in 0..4 {
                block p(v: spatial N = i, w: spatial 4 = j) { x[v, w] = x[v, w] + a[v, w] }
            } }
            block q() { z[place[0]] = 1.0 }
            for i in 0..N { block r(v: spatial N = i) { y[v] = x[v, 0] + z[v] } }
        }";
        let program: Program = text.parse().expect("the program is well-formed");
        let separate = program.out_of_place();
        crate::verify::verify(&separate, crate::verify::Level::Blocks).expect("it is well-formed");
        let in_a_line =
            |program: &Program| program.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
        let shown = in_a_line(&separate);
        let params = "in place: i64[1], in x: f32[N, 4], in a: f32[N, 4], in z: f32[N], out y: f32[N], out x_out: f32[N, 4], out z_out: f32[N]";
        assert!(shown.contains(params), "{shown}");
        let named = |program: &Program, name: &str| {
            program.buffers().find(|(_, buffer)| &*buffer.name == name).expect("it has the buffer").0
        };
        // The first copy stands in front of the second one: both can be left out, one after the other.
        let once = separate
            .in_place(named(&separate, "x"), named(&separate, "x_out"))
            .expect("the result begins as a copy");
        let twice =
            once.in_place(named(&once, "z"), named(&once, "z_out")).expect("the result begins as a copy");
        crate::verify::verify(&twice, crate::verify::Level::Blocks).expect("it is well-formed");
        let shown = in_a_line(&twice);
        assert!(shown.contains("out y: f32[N], inout x: f32[N, 4], inout z: f32[N]"), "{shown}");
        assert!(!shown.contains("copy"), "{shown}");
    }

    #[test]
    fn what_reads_other_elements_stays() {
        let body =
            |text: &str| updated(&format!("kernel f(N, in x: f32[N, N], out y: f32[N, N]) {{ {text} }}"));
        let block = |value: &str| {
            body(&format!(
                "for i in 0..N {{ for j in 0..N {{ block b(v: spatial N = i, w: spatial N = j) {{ y[v, w] = {value} }} }} }}"
            ))
        };
        assert!(block("x[v, w]").is_some());
        assert!(block("x[w, v]").is_none());
        assert!(block("x[v, w] + x[v, 0]").is_none());
        // A block before reads all elements of a row.
        let other = "for i in 0..N { for j in 0..N { block a(v: spatial N = i, w: reduce N = j) {
            init { s[v] = 0.0 } s[v] = s[v] + x[v, w] } } }";
        let last = "for i in 0..N { for j in 0..N { block b(v: spatial N = i, w: spatial N = j) {
            y[v, w] = x[v, w] / s[v] } } }";
        assert!(body(&format!("buffer s: f32[N] global\n {other} {last}")).is_none());
    }
}
