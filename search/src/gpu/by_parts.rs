//! A schedule whose tiled products are each searched for alone.
//!
//! The points of a program's design spaces decide on all of its kernels at once, so that few of them are good for each of several
//! products. Kernels that follow each other take as long as the sum of them: the best schedule of each one alone is the best one
//! together with the others.

use std::sync::Arc;

use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use tilewright_core::analysis::block::{is_spatial, reads, writes};
use tilewright_core::analysis::scope::{blocks, consumers, writes_parameter};
use tilewright_core::ids::BufferId;
use tilewright_core::program::{Access, Param, Program};
use tilewright_core::schedule::{Schedule, Trace};
use tilewright_core::stmt::{Block, Stmt};
use tilewright_core::target::RunContext;

use super::default_schedule::{complete_with, inlined, joined_with, names, schedule_by_ways, score};
use crate::space::rules::block::{has_own_loops, needs_multi_level_tiling};
use crate::space::spec::SearchSpec;

/// The most products that are searched for alone, each of which takes as long as a whole program.
const MOST_PARTS: usize = 4;

/// A joint search is as good for a single product with copies around it.
const LEAST_PARTS: usize = 2;

/// A schedule of no design space: each block in the first way that suits it, or, where the draft model expects more of that, each product by
/// the steps that `search` finds for it alone.
pub(crate) fn schedule_by_blocks(
    program: &Program,
    context: &RunContext,
    spec: &SearchSpec,
    search: &dyn Fn(&Program) -> Option<Trace>,
) -> Schedule {
    let by_ways = schedule_by_ways(program, context);
    let by_parts = schedule_by_parts(program, context, spec, search);
    by_parts.filter(|by_parts| score(by_parts) > score(&by_ways)).unwrap_or(by_ways)
}

/// The schedule of a program with several kernels, of which `search` gives the steps of a product alone. Steps of rows around the products are
/// one kernel where they can be. `None` for a program of products alone, or with too few or too many of them.
fn schedule_by_parts(
    program: &Program,
    context: &RunContext,
    spec: &SearchSpec,
    search: &dyn Fn(&Program) -> Option<Trace>,
) -> Option<Schedule> {
    let start = inlined(program, context);
    let parts = parts(start.program());
    let of_parts: Vec<&String> = parts.iter().flat_map(|part| &part.blocks).collect();
    let others: Vec<String> = names(&start).into_iter().filter(|name| !of_parts.contains(&name)).collect();
    if !(LEAST_PARTS..=MOST_PARTS).contains(&parts.len()) || others.is_empty() {
        return None;
    }
    let mut schedule = complete_with(joined_with(&start, &others), &others);
    for part in &parts {
        let steps = search(&part.program)?;
        let mut attempt = schedule.clone();
        if steps.replay_applicable(&mut attempt).into_iter().all(|is_repeated| is_repeated) {
            schedule = attempt;
        }
    }
    spec.postprocessors.apply(&mut schedule).ok()?;
    super::is_executable(&schedule).then_some(schedule)
}

/// A product with its epilogue, as a program of its own.
struct Part {
    program: Program,
    /// The names of its blocks.
    blocks: Vec<String>,
}

/// The products of a program.
fn parts(program: &Program) -> Vec<Part> {
    let products = blocks(&program.body)
        .into_iter()
        .filter(|block| needs_multi_level_tiling(program, block) && has_own_loops(program, block));
    products.filter_map(|product| part(program, product)).collect()
}

/// The nests of a product, and of its only consumer where that is element-wise.
fn part(program: &Program, product: &Arc<Block>) -> Option<Part> {
    let mut chosen = vec![product.id];
    match &consumers(program, product)[..] {
        [epilogue] if is_spatial(epilogue) && !writes_parameter(program, product) => chosen.push(epilogue.id),
        _ => {}
    }
    let nests = nests(&program.body);
    let holds = |nest: &&Stmt| blocks(nest).iter().any(|block| chosen.contains(&block.id));
    let (inside, outside): (Vec<&Stmt>, Vec<&Stmt>) = nests.into_iter().partition(holds);
    let own: Vec<&Arc<Block>> = inside.iter().flat_map(|nest| blocks(nest)).collect();
    // A nest of several blocks may need others.
    if own.iter().any(|block| !chosen.contains(&block.id)) {
        return None;
    }
    let names = own.iter().map(|block| block.name.to_string()).collect();
    let buffers = |nests: &[&Stmt], of: fn(&Block) -> SmallVec<[BufferId; 4]>| -> FxHashSet<BufferId> {
        nests.iter().flat_map(|nest| blocks(nest)).flat_map(|block| of(block)).collect()
    };
    let (read, written) = (buffers(&inside, reads), buffers(&inside, writes));
    let used_outside: FxHashSet<BufferId> =
        buffers(&outside, reads).union(&buffers(&outside, writes)).copied().collect();
    let mut params: Vec<Param> =
        program.params.iter().filter(|param| !matches!(param, Param::Buffer(..))).copied().collect();
    let mut all: Vec<BufferId> = read.union(&written).copied().collect();
    all.sort_unstable();
    for buffer in all {
        let access = match (program.access(buffer), written.contains(&buffer)) {
            (Some(Access::Constant), false) => Access::Constant,
            (_, false) => Access::Input,
            (None, true) if !used_outside.contains(&buffer) => continue,
            // A product adds to what its own beginning has stored.
            (_, true) => Access::Output,
        };
        params.push(Param::Buffer(buffer, access));
    }
    let body = Stmt::Seq(Arc::new(inside.into_iter().cloned().collect()));
    let mut program = program.clone();
    (program.params, program.body) = (Arc::new(params), body);
    Some(Part { program, blocks: names })
}

/// The statements of a program that follow each other.
fn nests(stmt: &Stmt) -> Vec<&Stmt> {
    match stmt {
        Stmt::Seq(stmts) => stmts.iter().flat_map(nests).collect(),
        _ => vec![stmt],
    }
}

#[cfg(test)]
mod tests {
    use tilewright_core::target::Target;
    use tilewright_core::verify::{Level, verify};

    use super::*;

    /// Weights of rows from a product, and a product with these weights that is divided by their sum.
    const ATTENTION: &str = "kernel attention(in q: f32[64, 32], constant k: f32[96, 32], in v: f32[96, 32], out z: f32[64, 32]) {
  buffer s: f32[64, 96] global
  buffer w: f32[64, 96] global
  buffer t: f32[64] global
  buffer y: f32[64, 32] global
  for i in 0..64 { for j in 0..96 { for d in 0..32 {
    block s(vi: spatial 64 = i, vj: spatial 96 = j, vd: reduce 32 = d) {
      init { s[vi, vj] = 0.0 }
      s[vi, vj] = s[vi, vj] + q[vi, vd] * k[vj, vd]
    }
  } } }
  for i in 0..64 { for j in 0..96 {
    block w(vi: spatial 64 = i, vj: spatial 96 = j) { w[vi, vj] = exp(s[vi, vj]) }
  } }
  for i in 0..64 { for j in 0..96 {
    block t(vi: spatial 64 = i, vj: reduce 96 = j) { init { t[vi] = 0.0 } t[vi] = t[vi] + w[vi, vj] }
  } }
  for i in 0..64 { for d in 0..32 { for j in 0..96 {
    block y(vi: spatial 64 = i, vd: spatial 32 = d, vj: reduce 96 = j) {
      init { y[vi, vd] = 0.0 }
      y[vi, vd] = y[vi, vd] + w[vi, vj] * v[vj, vd]
    }
  } } }
  for i in 0..64 { for d in 0..32 {
    block z(vi: spatial 64 = i, vd: spatial 32 = d) { z[vi, vd] = y[vi, vd] / t[vi] }
  } }
}";

    fn described(part: &Part) -> String {
        let accesses = part
            .program
            .buffer_params()
            .map(|(buffer, access)| format!("{} {}", access.text(), part.program.buffer(buffer).name));
        format!("{}: {}", part.blocks.join(" "), accesses.collect::<Vec<_>>().join(", "))
    }

    #[test]
    fn products_are_programs_of_their_own_with_their_epilogues() {
        let program: Program = ATTENTION.parse().unwrap();
        let found = parts(&program);
        let described: Vec<String> = found.iter().map(described).collect();
        // Weights follow their product element by element.
        assert_eq!(described, ["s w: in q, constant k, out w", "y z: in v, out z, in w, in t"]);
        for part in &found {
            verify(&part.program, Level::Blocks)
                .unwrap_or_else(|errors| panic!("{errors}\n{}", part.program));
        }
    }

    #[test]
    fn each_product_is_searched_for_and_repeated() {
        let program: Program = ATTENTION.parse().unwrap();
        let context = RunContext::from(Target::generic_gpu());
        let spec = SearchSpec::built_in(tilewright_core::target::TargetKind::Gpu).unwrap();
        let searched = std::cell::Cell::new(0);
        // A search that finds one thread for each element of a product.
        let search = |part: &Program| {
            searched.set(searched.get() + 1);
            let mut schedule = Schedule::new(part.clone(), &context, 0);
            let block = schedule.get_block(if searched.get() == 1 { "s" } else { "y" }).ok()?;
            let loops = schedule.get_loops(block).ok()?;
            schedule.split(loops[0], &[None, Some(16)]).ok()?;
            Some(schedule.trace().clone())
        };
        let schedule =
            schedule_by_parts(&program, &context, &spec, &search).expect("two products and their rows");
        assert_eq!(searched.get(), 2);
        let splits =
            schedule.trace().steps().iter().filter(|step| step.instruction.name() == "split").count();
        assert!(splits >= 2, "{}", schedule.trace());
        // A product alone is left to the search of the whole.
        let single = &parts(&program)[0].program;
        assert!(schedule_by_parts(single, &context, &spec, &search).is_none());
    }
}
