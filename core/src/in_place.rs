//! Writing a result over a tensor that nobody needs afterwards.

use std::sync::Arc;

use crate::access::rewrite_accesses;
use crate::analysis::block::loads;
use crate::analysis::scope::writers;
use crate::expr::Indices;
use crate::ids::BufferId;
use crate::index::Index;
use crate::program::{Access, Param, Program};
use crate::stmt::{Block, IterKind, Stmt};

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
        let &[writer] = &writers(self, result)[..] else { return None };
        let places = places_of_points(writer, result)?;
        let reads = loads(&self.body);
        let own = loads(&writer.body);
        let count = |buffer| reads.iter().filter(|read| read.buffer == buffer).count();
        let in_place = own.iter().filter(|read| read.buffer == tensor && read.indices == places).count();
        if in_place != count(tensor) || count(result) > 0 {
            return None;
        }
        let mut program = self.clone();
        let params = Arc::make_mut(&mut program.params);
        params.retain(|param| *param != Param::Buffer(tensor, Access::Input));
        for param in params.iter_mut().filter(|param| **param == Param::Buffer(result, Access::Output)) {
            *param = Param::Buffer(tensor, Access::InOut);
        }
        rewrite_accesses(&mut program.body, &|buffer, indices| {
            (buffer == result).then(|| (tensor, indices.clone()))
        });
        Some(program)
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
