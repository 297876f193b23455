//! Writing a result over a tensor that nobody needs afterwards.

use std::sync::Arc;

use crate::expr::Indices;
use crate::ids::BufferId;
use crate::index::Index;
use crate::program::{Access, Param, Program};
use crate::stmt::{Block, IterKind, Stmt};
use crate::visit::{
    for_each_block, for_each_load, for_each_load_in_index, for_each_root_expr, for_each_stmt,
};

impl Program {
    /// The program, at the `Blocks` level, with a result in the memory of a tensor that it reads: the tensor is updated in place, and takes
    /// the result's place among the parameters. `None` where that would change the meaning: each element of the tensor has to be read for
    /// the same element of the result alone, which is computed once.
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
        let writer = self.only_writer(result)?;
        let places = places_of_points(writer, result)?;
        let (mut reads, mut own) = (0, 0);
        for_each_read(&self.body, tensor, &mut |_| reads += 1);
        for_each_read(&writer.body, tensor, &mut |indices| own += usize::from(indices == places));
        let mut results = 0;
        for_each_read(&self.body, result, &mut |_| results += 1);
        if own != reads || results > 0 {
            return None;
        }
        let mut program = self.clone();
        let params = Arc::make_mut(&mut program.params);
        params.retain(|param| *param != Param::Buffer(tensor, Access::Input));
        for param in params.iter_mut().filter(|param| **param == Param::Buffer(result, Access::Output)) {
            *param = Param::Buffer(tensor, Access::InOut);
        }
        let is_written = store_elsewhere(&mut program.body, result, tensor);
        is_written.then_some(program)
    }

    /// The block that stores to a buffer, if there is one alone.
    fn only_writer(&self, buffer: BufferId) -> Option<&Block> {
        let mut writers = Vec::new();
        for_each_block(&self.body, &mut |block| {
            let mut is_writer = false;
            let mut look =
                |stmt: &Stmt| is_writer |= matches!(stmt, Stmt::Store(store) if store.buffer == buffer);
            for_each_stmt(&block.body, &mut look);
            block.init.iter().for_each(|init| for_each_stmt(init, &mut look));
            if is_writer {
                writers.push(&**block);
            }
        });
        match writers[..] {
            [writer] => Some(writer),
            _ => None,
        }
    }
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

/// Calls `visit` with the indices of each load of a buffer, also of those that decide where something is stored and how often.
fn for_each_read<'s>(stmt: &'s Stmt, buffer: BufferId, visit: &mut dyn FnMut(&'s Indices)) {
    let mut load = |own: BufferId, indices: &'s Indices| {
        if own == buffer {
            visit(indices);
        }
    };
    for_each_root_expr(stmt, &mut |expr| for_each_load(expr, &mut load));
    for_each_stmt(stmt, &mut |stmt| match stmt {
        Stmt::Store(store) => store.indices.iter().for_each(|index| for_each_load_in_index(index, &mut load)),
        Stmt::For(node) => for_each_load_in_index(&node.extent, &mut load),
        Stmt::Block(node) => {
            let iters = node.iters.iter().flat_map(|iter| [&iter.extent, &iter.binding]);
            let guards = node.guards.iter().flat_map(|guard| [&guard.index, &guard.bound]);
            iters.chain(guards).for_each(|index| for_each_load_in_index(index, &mut load));
        }
        _ => {}
    });
}

/// Has stores to one buffer go to another one. Whether there is one.
fn store_elsewhere(stmt: &mut Stmt, from: BufferId, to: BufferId) -> bool {
    if let Stmt::Store(store) = stmt
        && store.buffer == from
    {
        Arc::make_mut(store).buffer = to;
        return true;
    }
    // Every child is visited.
    stmt.children_mut().into_iter().fold(false, |found, child| store_elsewhere(child, from, to) | found)
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
