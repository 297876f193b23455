//! Leaving out the first and the last iterations of a reduction that add nothing at any point, such as the outer taps of a dilated
//! filter on a small plane, which meet nothing but padding.

use std::sync::Arc;

use crate::analysis::block::{reads, single_store};
use crate::analysis::neutral::{Products, conditions_of_term};
use crate::analysis::scope::blocks;
use crate::analysis::zeros::ZeroElements;
use crate::ids::{BufferId, VarId};
use crate::index::{Index, Ranges};
use crate::program::Program;
use crate::specialize::crop::crop_to_reads;
use crate::specialize::single_block;
use crate::stmt::{Block, For, Iter, IterKind, Stmt};
use crate::visit::substitute_stmt;

/// The longest reduction that is looked at, iteration by iteration: filters have fewer taps.
const MOST_TAPS: i64 = 64;

impl Program {
    /// The same program for given sizes, as [`Program::bind_dims`] gives it, in which each reduction begins with the first iteration that
    /// adds something and ends with the last. All loops stay, so that the same schedule applies to every size. A product with
    /// padding adds nothing, unless the kernel is to form it.
    pub fn for_sizes(&self, sizes: &[(VarId, i64)]) -> Program {
        let mut bound = self.bind_dims(sizes);
        leave_out_outer_taps(&mut bound);
        bound
    }
}

fn leave_out_outer_taps(program: &mut Program) {
    let zeros = ZeroElements::of_blocks(program, blocks(&program.body).into_iter().map(|block| &**block));
    let terms = Terms { products: Products::of(program), zeros };
    let mut body = std::mem::replace(&mut program.body, Stmt::nothing());
    let mut read = Vec::new();
    terms.shorten(&mut body, &mut read);
    program.body = body;
    // The padding that these taps met need not be stored.
    crop_to_reads(program, &read);
}

/// The facts that decide whether an iteration of a reduction adds something.
struct Terms {
    products: Products,
    zeros: ZeroElements,
}

/// Iterations of a loop that add nothing, at its front and at its back.
struct Outer {
    front: i64,
    back: i64,
}

impl Terms {
    /// Shortens loops, and adds the buffers that blocks in these read.
    fn shorten(&self, stmt: &mut Stmt, read: &mut Vec<BufferId>) {
        if let Stmt::For(node) = stmt
            && let Some(outer) = self.outer_iterations(node)
        {
            outer.leave_out(node);
            read.extend(single_block(&node.body).into_iter().flat_map(|block| reads(block)));
        }
        stmt.children_mut().into_iter().for_each(|child| self.shorten(child, read));
    }

    /// The outer iterations of a loop that add nothing to the reduction of the only block inside; `None` when each may add something.
    fn outer_iterations(&self, node: &For) -> Option<Outer> {
        let extent = node.extent.as_constant().filter(|extent| (2..=MOST_TAPS).contains(extent))?;
        let block = single_block(&node.body)?;
        let iter = iter_of(block, node.var)?;
        if !iter.extent.is(extent) || !block.guards.is_empty() {
            return None;
        }
        let conditions = conditions_of_term(single_store(block)?, self.products, &self.zeros);
        let others: Ranges = block
            .iters
            .iter()
            .filter(|other| other.var != iter.var)
            .map(|other| (other.var, other.extent.clone()))
            .collect();
        let adds_something = |iteration: &i64| {
            let at = |var: VarId| (var == iter.var).then(|| Index::constant(*iteration));
            conditions.iter().all(|condition| condition.substitute(&at).interval(&others).min < 0)
        };
        let front = (0..extent).find(adds_something)?;
        let back = extent - 1 - (0..extent).rfind(adds_something)?;
        (front + back > 0).then_some(Outer { front, back })
    }
}

impl Outer {
    fn leave_out(&self, node: &mut Arc<For>) {
        let node = Arc::make_mut(node);
        node.extent = node.extent.offset(-self.front - self.back);
        change_block(&mut node.body, &|block| {
            let place = block.iters.iter().position(|iter| iter.binding.mentions(node.var));
            let iter = &mut block.iters[place.expect("the loop is one of its iterators")];
            iter.extent = node.extent.clone();
            let (var, moved) = (iter.var, Index::var(iter.var).offset(self.front));
            let later = |other: VarId| (other == var).then(|| moved.clone());
            substitute_stmt(&mut block.body, &later);
        });
    }
}

fn change_block(stmt: &mut Stmt, change: &dyn Fn(&mut Block)) {
    match stmt {
        Stmt::For(node) => change_block(&mut Arc::make_mut(node).body, change),
        Stmt::Block(block) => change(Arc::make_mut(block)),
        _ => {}
    }
}

/// The iterator of a reduction that is a loop's variable, if no other iterator depends on the loop.
fn iter_of(block: &Block, var: VarId) -> Option<&Iter> {
    let mut depend = block.iters.iter().filter(|iter| iter.binding.mentions(var));
    let (iter, None) = (depend.next()?, depend.next()) else { return None };
    (iter.kind == IterKind::Reduce && iter.binding.as_var() == Some(var)).then_some(iter)
}

#[cfg(test)]
mod tests {
    use crate::dtype::DType;
    use crate::interp::{Interpreter, Options};
    use crate::program::Program;
    use crate::tensor::AnyTensor;
    use crate::verify::{Level, verify};

    /// A filter of 3 taps with a dilation of 4, over a row of `N` elements with as much padding.
    const FILTER: &str = "kernel filter(N, in x: f32[N], in w: f32[3], out y: f32[N]) {
  for i in 0..N {
    for k in 0..3 {
      block y(vi: spatial N = i, vk: reduce 3 = k) {
        init {
          y[vi] = 0.0
        }
        y[vi] = y[vi] + select((index(vi + vk*4 - 4) >= 0) & (index(vi + vk*4 - 4) < N), x[vi + vk*4 - 4], 0.0) * w[vk]
      }
    }
  }
}
";

    fn at(text: &str, size: i64) -> String {
        let program: Program = text.parse().expect("the text is a program");
        let sizes: Vec<_> = program.dims().map(|(var, _)| (var, size)).collect();
        program.for_sizes(&sizes).to_string()
    }

    #[test]
    fn taps_that_meet_nothing_but_padding_are_left_out() {
        assert!(at(FILTER, 5).contains("for k in 0..3"), "{}", at(FILTER, 5));
        let short = at(FILTER, 4);
        assert!(short.contains("for k in 0..1") && short.contains("vk: reduce 1 = k"), "{short}");
        assert!(short.contains("w[vk + 1]"), "{short}");
        // The last tap alone reaches beyond the end.
        let ahead = at(&FILTER.replace("vk*4 - 4", "vk*4"), 6);
        assert!(ahead.contains("for k in 0..2") && ahead.contains("w[vk]"), "{ahead}");
        let formed = at(&FILTER.replace(") {\n  for i", ") multiply_padding {\n  for i"), 4);
        assert!(formed.contains("for k in 0..3"), "{formed}");
    }

    /// The same with the padded row as an intermediate, and two columns.
    const STORED: &str = "kernel filter(N, in x: f32[N, 2], in w: f32[3], out y: f32[N, 2]) {
  buffer p: f32[N + 8, 2] global
  for i in 0..N + 8 {
    for j in 0..2 {
      block p(vi: spatial N + 8 = i, vj: spatial 2 = j) {
        p[vi, vj] = select((index(vi - 4) >= 0) & (index(vi - 4) < N), x[vi - 4, vj], 0.0)
      }
    }
  }
  for i in 0..N {
    for j in 0..2 {
      for k in 0..3 {
        block y(vi: spatial N = i, vj: spatial 2 = j, vk: reduce 3 = k) {
          init {
            y[vi, vj] = 0.0
          }
          y[vi, vj] = y[vi, vj] + p[vi + vk*4, vj] * w[vk]
        }
      }
    }
  }
}
";

    #[test]
    fn padding_that_no_tap_meets_is_not_stored() {
        let short = at(STORED, 3);
        assert!(short.contains("buffer p: f32[3, 2]"), "{short}");
        assert!(short.contains("y[vi_1, vj_1] + p[vi_1 + vk*4, vj_1] * w[vk + 1]"), "{short}");
        assert!(short.contains("p[vi, vj] = select"), "{short}");
        assert!(short.contains("x[vi, vj]"), "{short}");
        assert!(at(STORED, 5).contains("buffer p: f32[13, 2]"), "{}", at(STORED, 5));
    }

    #[test]
    fn an_intermediate_whose_elements_data_choose_stays_whole() {
        let text = "kernel filter(N, in x: f32[N], in n: i64[N], out y: f32[N]) {
  buffer p: f32[N] global
  for i in 0..N {
    block p(vi: spatial N = i) {
      p[vi] = x[vi] + 1.0
    }
  }
  for i in 0..N {
    for k in 0..3 {
      block y(vi: spatial N = i, vk: reduce 3 = k) {
        init {
          y[vi] = 0.0
        }
        y[vi] = y[vi] + select((index(vi + vk*4 - 4) >= 0) & (index(vi + vk*4 - 4) < N), x[vi + vk*4 - 4], 0.0) * p[n[vi]]
      }
    }
  }
}
";
        let short = at(text, 4);
        assert!(short.contains("for k in 0..1") && short.contains("buffer p: f32[4]"), "{short}");
    }

    #[test]
    fn results_stay_the_same() {
        for text in
            [FILTER, &FILTER.replace("vk*4 - 4", "vk*4"), &FILTER.replace("vk*4 - 4", "vk*3 - 5"), STORED]
        {
            for size in [0, 1, 2, 3, 4, 5, 7] {
                let program: Program = text.parse().expect("the text is a program");
                let sizes: Vec<_> = program.dims().map(|(var, _)| (var, size)).collect();
                let run = |program: &Program| {
                    let mut tensors: Vec<AnyTensor> = program
                        .buffer_params()
                        .enumerate()
                        .map(|(seed, (buffer, _))| {
                            let shape = &program.buffer(buffer).shape;
                            let shape: Vec<usize> =
                                shape.iter().map(|extent| extent.as_constant().unwrap() as usize).collect();
                            AnyTensor::random(DType::F32, &shape, seed as u64).unwrap()
                        })
                        .collect();
                    Interpreter::new(program)
                        .unwrap()
                        .run(Options::default(), &[], &[], &mut tensors)
                        .unwrap();
                    tensors.pop().unwrap().to_f64_vec()
                };
                let short = program.for_sizes(&sizes);
                verify(&short, Level::Blocks).unwrap_or_else(|errors| panic!("{}", errors.render(&short)));
                assert_eq!(run(&short), run(&program.bind_dims(&sizes)), "{size}: {short}");
            }
        }
    }
}
