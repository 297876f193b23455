//! A scope that a schedule fixes is the scope of the lowered program.

use std::sync::Arc;

use crate::kernels::parse;
use tilewright_core::lower::{LowerError, LowerOptions, lower, lower_kernel};
use tilewright_core::program::{Program, Scope};
use tilewright_core::schedule::Schedule;
use tilewright_core::target::Target;

/// Two stages: `b` from a tensor, and `c` from `b`.
fn chain(access: &str, size: i64) -> Program {
    parse(&format!(
        "kernel chain({access} a: f32[{size}], out c: f32[{size}]) {{
  buffer b: f32[{size}] global
  for i in 0..{size} {{
    block b(v: spatial {size} = i) {{
      b[v] = a[v] + 1.0
    }}
  }}
  for j in 0..{size} {{
    block c(w: spatial {size} = j) {{
      c[w] = b[w] * 2.0
    }}
  }}
}}"
    ))
}

fn schedule(program: Program) -> Schedule {
    Schedule::new(program, Arc::new(Target::generic_cpu()), 1)
}

/// The scope of `b` after lowering.
fn scope_of_b(schedule: &Schedule) -> Result<Scope, LowerError> {
    let flat = lower(schedule.program(), &LowerOptions::default())?;
    let found = flat.buffers().find(|(_, buffer)| &*buffer.name == "b").map(|(_, buffer)| buffer.scope);
    Ok(found.expect("nothing removes `b`"))
}

#[test]
fn a_small_private_intermediate_is_local_unless_it_is_fixed_to_be_global() {
    let mut s = schedule(chain("in", 64));
    assert_eq!(scope_of_b(&s), Ok(Scope::Local));
    let b = s.get_block("b").unwrap();
    s.set_scope(b, 0, Scope::Global).unwrap();
    assert_eq!(scope_of_b(&s), Ok(Scope::Global));
}

#[test]
fn a_large_private_intermediate_is_global_unless_it_is_fixed_to_be_local() {
    let size = 1 + LowerOptions::default().max_local_bytes as i64 / 4;
    let mut s = schedule(chain("in", size));
    assert_eq!(scope_of_b(&s), Ok(Scope::Global));
    let b = s.get_block("b").unwrap();
    s.set_scope(b, 0, Scope::Local).unwrap();
    assert_eq!(scope_of_b(&s), Ok(Scope::Local));
}

#[test]
fn an_intermediate_that_threads_share_cannot_be_local() {
    let mut s = schedule(chain("in", 64));
    let (b, c) = (s.get_block("b").unwrap(), s.get_block("c").unwrap());
    let loops = s.get_loops(c).unwrap();
    s.parallel(loops[0]).unwrap();
    assert_eq!(scope_of_b(&s), Ok(Scope::Global), "without a fixed scope, lowering finds one");
    s.set_scope(b, 0, Scope::Local).unwrap();
    let Err(LowerError::Scope { buffer, scope, .. }) = scope_of_b(&s) else {
        panic!("the threads of the second loop read all of `b`")
    };
    assert_eq!((&*buffer, scope), ("b", "local"));
    s.compute_at(b, loops[0]).unwrap();
    assert_eq!(scope_of_b(&s), Ok(Scope::Local), "inside the loop, each thread has its own");
}

#[test]
fn a_stage_with_a_fixed_local_result_is_no_part_of_the_prologue() {
    let text = chain("constant", 64).to_string().replace("out c", "in x: f32[64], out c");
    let mut s = schedule(parse(&text.replace("b[w] * 2.0", "b[w] * x[w]")));
    let has_prologue =
        |s: &Schedule| lower_kernel(s.program(), &Target::generic_cpu()).unwrap().prologue.is_some();
    assert!(has_prologue(&s));
    let b = s.get_block("b").unwrap();
    s.set_scope(b, 0, Scope::Local).unwrap();
    assert!(!has_prologue(&s), "the results of a prologue live in ordinary memory");
    assert_eq!(scope_of_b(&s), Ok(Scope::Local));
}
