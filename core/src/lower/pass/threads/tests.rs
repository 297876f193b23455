//! Barriers are enough and no more than needed, and grids compute what the nests before them computed.

use super::bind_threads::bind_threads;
use super::insert_barriers::insert_barriers;
use crate::analysis::condition::difference;
use crate::index::Index;
use crate::interp::{InterpError, Interpreter, Options};
use crate::lower::{LowerError, LowerOptions};
use crate::program::Program;
use crate::stmt::{LoopKind, Stmt};
use crate::tensor::{AnyTensor, Random};
use crate::verify::{Level, verify};
use crate::visit::substitute_stmt;

/// The number of threads.
const THREADS: usize = 4;

fn parse(text: &str) -> Program {
    text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn options() -> LowerOptions {
    LowerOptions::of(&crate::target::Target::generic_gpu())
}

/// The program of one thread.
fn bound(program: &Program) -> Program {
    let mut program = program.clone();
    bind_threads(&mut program, &options()).unwrap_or_else(|error| panic!("{error}\n{program}"));
    program
}

/// Runs a kernel from one tensor to another.
fn run(program: &Program, seed: Option<u64>) -> Result<Vec<f64>, InterpError> {
    let len = 4 * THREADS;
    let input: Vec<f64> = (0..len).map(|number| (number * number % 23) as f64).collect();
    let dtype = crate::dtype::DType::F32;
    let mut tensors =
        [AnyTensor::from_f64s(dtype, &input, &[len]).unwrap(), AnyTensor::zeros(dtype, &[len]).unwrap()];
    Interpreter::new(program)?.run(Options { parallel_order_seed: seed }, &[], &[], &mut tensors)?;
    Ok(tensors[1].to_f64_vec())
}

/// A kernel of loops over threads one after the other, some of them inside a serial loop. Each fills one of the shared buffers
/// from the input or from another one.
fn random_kernel(random: &mut Random) -> Program {
    let mut names = 0;
    let mut stage = |random: &mut Random| {
        names += 1;
        let (to, from) = (random.below(3), random.below(3));
        let place = |random: &mut Random| match random.below(4) {
            0 => format!("t{names}"),
            1 => format!("{} - t{names}", THREADS - 1),
            2 => format!("(t{names} + 1) % {THREADS}"),
            _ => format!("t{names} / 2"),
        };
        let target =
            if random.below(2) == 0 { format!("t{names}") } else { format!("{} - t{names}", THREADS - 1) };
        // Two threads must not store one element, nor one thread load what another one stores in the same loop.
        let value = if to == from {
            format!("s{to}[{target}] + 1.0")
        } else {
            format!("s{from}[{}] + 1.0", place(random))
        };
        format!("bound thread_x for t{names} in 0..{THREADS} {{ s{to}[{target}] = {value} }}\n")
    };
    let sequence = |count: u64,
                    random: &mut Random,
                    stage: &mut dyn FnMut(&mut Random) -> String|
     -> String { (0..count).map(|_| stage(random)).collect() };
    let before = sequence(random.below(3), random, &mut stage);
    let count = 1 + random.below(4);
    let inside = sequence(count, random, &mut stage);
    let iterations = 1 + random.below(3);
    let kind = if random.below(2) == 0 { "" } else { "unrolled " };
    let behind = sequence(random.below(3), random, &mut stage);
    let fill: String = (0..3)
        .map(|s| format!("bound thread_x for f{s} in 0..{THREADS} {{ s{s}[f{s}] = x[f{s} + {s}] }}\n"))
        .collect();
    let result: String = (0..3)
        .map(|s| {
            format!("bound thread_x for r{s} in 0..{THREADS} {{ y[r{s} + {}] = s{s}[r{s}] }}\n", s * THREADS)
        })
        .collect();
    parse(&format!(
        "kernel k(in x: f32[{len}], out y: f32[{len}]) {{
  buffer s0: f32[{THREADS}] shared
  buffer s1: f32[{THREADS}] shared
  buffer s2: f32[{THREADS}] shared
  bound block_x for b in 0..2 {{
    alloc s0 {{ alloc s1 {{ alloc s2 {{
      {fill} {before}
      {kind}for k in 0..{iterations} {{ {inside} }}
      {behind} {result}
      bound thread_x for z in 0..{THREADS} {{ y[z + {rest}] = 0.0 }}
    }} }} }}
  }}
}}",
        len = 4 * THREADS,
        rest = 3 * THREADS,
    ))
}

/// How often a statement executes a barrier.
fn executed(stmt: &Stmt) -> i64 {
    match stmt {
        Stmt::Barrier => 1,
        Stmt::For(node) if matches!(node.kind, LoopKind::Serial | LoopKind::Unrolled) => {
            let iteration = |value: i64| {
                let mut body = node.body.clone();
                substitute_stmt(&mut body, &|var| (var == node.var).then(|| Index::constant(value)));
                executed(&body)
            };
            (0..node.extent.as_constant().expect("a constant extent")).map(iteration).sum()
        }
        Stmt::If(node) => match difference(&node.condition).and_then(|difference| difference.as_constant()) {
            Some(0..) => 0,
            _ => executed(&node.then),
        },
        _ => stmt.each_child().map(executed).sum(),
    }
}

/// The program with barriers where a number has ones, among all places in front of statements of sequences.
fn with_barriers(program: &Program, places: u32) -> Program {
    let mut program = program.clone();
    program.body = insert_at(&program.body, &mut { places });
    program
}

fn insert_at(stmt: &Stmt, places: &mut u32) -> Stmt {
    let mut stmt = stmt.clone();
    if let Stmt::Seq(stmts) = &stmt {
        let mut next = || {
            let is_chosen = *places & 1 == 1;
            *places >>= 1;
            is_chosen
        };
        let chosen: Vec<bool> = stmts.iter().map(|_| next()).collect();
        let with = stmts.iter().zip(chosen).flat_map(|(stmt, is_chosen)| {
            let barrier = is_chosen.then_some(Stmt::Barrier);
            let stmt = insert_at(stmt, places);
            barrier.into_iter().chain([stmt])
        });
        return Stmt::Seq(std::sync::Arc::new(with.collect()));
    }
    if matches!(&stmt, Stmt::For(node) if matches!(node.kind, crate::stmt::LoopKind::Bound(axis) if axis.is_of_block()))
    {
        return stmt;
    }
    for child in stmt.children_mut() {
        *child = insert_at(child, places);
    }
    stmt
}

/// How many places there are.
fn places(stmt: &Stmt) -> u32 {
    let own = match stmt {
        Stmt::Seq(stmts) => stmts.len() as u32,
        _ => 0,
    };
    own + stmt.each_child().map(places).sum::<u32>()
}

#[test]
fn barriers_are_enough_and_as_few_as_possible() {
    let cases = std::env::var("TILEWRIGHT_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(40);
    let mut random = Random::new(7);
    let mut compared = 0;
    for case in 0..cases {
        let program = random_kernel(&mut random);
        let expected = run(&program, None).unwrap_or_else(|error| panic!("case {case}: {error}\n{program}"));
        let mut synchronised = program.clone();
        insert_barriers(&mut synchronised, &options()).unwrap();
        let grid = bound(&synchronised);
        verify(&grid, Level::Loops).unwrap_or_else(|errors| panic!("case {case}: {}", errors.render(&grid)));
        for seed in [None, Some(1), Some(2)] {
            assert_eq!(run(&grid, seed).as_ref(), Ok(&expected), "case {case}\n{program}\n{grid}");
        }
        // All choices of places, where they are few enough, in the order of how often barriers are executed.
        let count = places(&program.body);
        if count > 11 {
            continue;
        }
        compared += 1;
        let own = executed(&synchronised.body);
        let better = (0..1_u32 << count)
            .map(|choice| with_barriers(&program, choice))
            .find(|other| executed(&other.body) < own && run(&bound(other), None).as_ref() == Ok(&expected));
        assert!(better.is_none(), "case {case}: {own} barriers\n{synchronised}\nfewer:\n{}", better.unwrap());
    }
    assert!(compared * 5 > cases, "too few programs are small enough to try all places");
}

#[test]
fn two_versions_of_a_buffer_need_one_barrier_in_each_iteration() {
    let program = parse(
        "kernel k(in x: f32[16], out y: f32[16]) {
  buffer s: f32[2, 4] shared
  alloc s {
    for k in 0..4 {
      bound thread_x for t in 0..4 { s[k % 2, t] = x[k*4 + t] }
      bound thread_x for u in 0..4 { y[k*4 + u] = s[k % 2, 3 - u] }
    }
  }
}",
    );
    let mut synchronised = program.clone();
    insert_barriers(&mut synchronised, &options()).unwrap();
    assert_eq!(executed(&synchronised.body), 4, "{synchronised}");
    assert_eq!(run(&bound(&synchronised), None), run(&program, None));
}

#[test]
fn the_first_copy_of_a_loop_waits_for_nothing() {
    let program = |kind: &str, before: &str| {
        parse(&format!(
            "kernel k(in x: f32[16], out y: f32[16]) {{
  buffer s: f32[4] shared
  alloc s {{
    {before}
    {kind} k in 0..4 {{
      bound thread_x for t in 0..4 {{ s[t] = x[k*4 + t] }}
      bound thread_x for u in 0..4 {{ y[k*4 + u] = s[3 - u] }}
    }}
  }}
}}"
        ))
    };
    let uses =
        "bound thread_x for v in 0..4 { s[v] = x[v] } bound thread_x for w in 0..4 { y[w] = s[3 - w] }";
    for (kind, before, barriers) in
        [("for", "", 8), ("unrolled for", "", 7), ("bound virtual_x for", "", 7), ("unrolled for", uses, 9)]
    {
        let program = program(kind, before);
        let mut synchronised = program.clone();
        insert_barriers(&mut synchronised, &options()).unwrap();
        let grid = bound(&synchronised);
        assert_eq!(executed(&grid.body), barriers, "{synchronised}");
        assert_eq!(run(&grid, None), run(&program, None));
    }
}

#[test]
fn conditions_add_no_barriers() {
    let count = |condition: &str, element: &str, inner: &str| {
        let program = parse(&format!(
            "kernel k(in x: f32[16], out y: f32[16]) {{
  buffer s: f32[4, 4] shared
  alloc s {{
    for k in 0..4 {{
      if {condition} {{
        {inner} {{
          bound thread_x for t in 0..4 {{ s[{element}, t] = x[k*4 + t] }}
          bound thread_x for u in 0..4 {{ y[k*4 + u] = s[{element}, 3 - u] }}
        }}
      }}
    }}
  }}
}}"
        ));
        let mut synchronised = program.clone();
        insert_barriers(&mut synchronised, &options()).unwrap();
        assert_eq!(run(&bound(&synchronised), None), run(&program, None), "{synchronised}");
        synchronised.to_string().matches("barrier()").count()
    };
    // Every iteration has elements of its own.
    assert_eq!(count("k < 3", "k", "for j in 0..1"), 1);
    // The next iteration stores what this one loads.
    assert_eq!(count("k < 3", "0", "for j in 0..1"), 2);
    // The barriers of the inner loop separate the iterations of the outer one as well.
    assert_eq!(count("k < 3", "0", "for j in 0..2"), 2);
    assert_eq!(count("k < 3", "k", "for j in 0..2"), 2);
}

#[test]
fn a_statement_outside_of_loops_over_threads_is_made_by_the_first_thread() {
    let program = parse(
        "kernel k(in x: f32[16], out y: f32[16]) {
  buffer s: f32[1] shared
  bound block_x for b in 0..4 {
    alloc s {
      s[0] = x[b]
      bound thread_x for t in 0..4 { y[b*4 + t] = s[0] }
    }
  }
}",
    );
    let mut synchronised = program.clone();
    insert_barriers(&mut synchronised, &options()).unwrap();
    let grid = bound(&synchronised);
    assert_eq!(executed(&synchronised.body), 1, "{synchronised}");
    assert_eq!(run(&grid, None), run(&program, None));
}

#[test]
fn values_that_threads_pass_to_each_other_cannot_be_local() {
    let program = |scope: &str, load: &str| {
        parse(&format!(
            "kernel k(in x: f32[16], out y: f32[16]) {{
  buffer r: f32[16] {scope}
  alloc r {{
    bound thread_x for t in 0..16 {{ r[t] = x[t] }}
    bound thread_x for u in 0..16 {{ y[u] = r[{load}] }}
  }}
}}"
        ))
    };
    let lowered = |scope: &str, load: &str| {
        let mut program = program(scope, load);
        insert_barriers(&mut program, &options()).unwrap();
        bind_threads(&mut program, &options()).map(|()| program)
    };
    assert!(lowered("local", "15 - u").is_err());
    for (scope, load, barriers) in [("local", "u", 0), ("shared", "u", 0), ("shared", "15 - u", 1)] {
        let grid = lowered(scope, load).unwrap();
        assert_eq!(executed(&grid.body), barriers, "{grid}");
        assert_eq!(run(&grid, None), run(&program(scope, load), None));
    }
}

#[test]
fn values_that_pass_along_one_axis_cannot_be_local() {
    let lowered = |load: &str| {
        let mut program = parse(&format!(
            "kernel k(in x: f32[16], out y: f32[16]) {{
  buffer r: f32[4] local
  bound thread_x for t in 0..4 {{
    alloc r {{
      bound thread_y for u in 0..4 {{ r[u] = x[t*4 + u] }}
      bound thread_y for v in 0..4 {{ y[t*4 + v] = r[{load}] }}
    }}
  }}
}}"
        ));
        let before = program.clone();
        insert_barriers(&mut program, &options()).unwrap();
        bind_threads(&mut program, &options()).map(|()| (before, program))
    };
    assert!(lowered("3 - v").is_err());
    let (before, grid) = lowered("v").unwrap();
    assert_eq!(run(&grid, None), run(&before, None));
}

#[test]
fn threads_of_one_loop_cannot_store_the_same_shared_elements() {
    let lowered = |step: i64| {
        let mut program = parse(&format!(
            "kernel k(in x: i32[40], out y: i32[13]) {{
  buffer s: i32[40] shared
  alloc s {{
    bound thread_x for t in 0..13 {{
      for v in 0..{step} {{ s[t*3 + v] = x[t*3 + v] }}
      y[t] = s[t*3] + s[t*3 + {step} - 1]
    }}
  }}
}}"
        ));
        insert_barriers(&mut program, &options())
    };
    assert!(matches!(lowered(4), Err(LowerError::Scope { scope: "shared", .. })));
    lowered(3).unwrap();
}

#[test]
fn the_first_thread_stores_before_all_load() {
    let mut program = parse(
        "kernel k(in x: f32[16], out y: f32[16]) {
  buffer s: f32[4] shared
  buffer r: f32[16] local
  alloc s {
    alloc r {
      for c in 0..4 {
        for v in 0..4 { s[v] = x[c*4 + v] }
        for v in 0..4 { r[c*4 + v] = s[v] }
      }
      bound thread_x for t in 0..4 {
        for u in 0..4 { y[t*4 + u] = r[15 - t*4 - u] }
      }
    }
  }
}",
    );
    let before = program.clone();
    insert_barriers(&mut program, &options()).unwrap();
    assert_eq!(program.to_string().matches("barrier()").count(), 2, "{program}");
    bind_threads(&mut program, &options()).unwrap();
    assert_eq!(run(&program, None), run(&before, None));
}

#[test]
fn threads_that_copy_rows_at_a_distance_do_not_race() {
    let lowered = |distance: i64| {
        let mut program = parse(&format!(
            "kernel k(in x: f32[256], out y: f32[256]) {{
  buffer s: f32[16, 16] shared
  alloc s {{
    bound thread_z for z in 0..2 {{ bound thread_y for w in 0..2 {{ bound thread_x for t in 0..32 {{
      for p in 0..2 {{ s[z*4 + w*2 + t/16 + p*{distance}, t%16] = x[z*64 + w*32 + t + p*{distance}*16] }}
    }} }} }}
    bound thread_x for u in 0..32 {{ for v in 0..8 {{ y[v*32 + u] = s[v*2 + u/16, u%16] }} }}
  }}
}}"
        ));
        insert_barriers(&mut program, &options()).map(|()| program)
    };
    assert_eq!(executed(&lowered(8).unwrap().body), 1);
    assert!(matches!(lowered(4), Err(LowerError::Scope { scope: "shared", .. })));
}

#[test]
fn no_race_of_random_strides_is_missed() {
    const LOOPS: [i64; 2] = [3, 2];
    let mut random = Random::new(11);
    let [mut races, mut accepted, mut refused_without_race] = [0; 3];
    for case in 0..600 {
        let strides: Vec<i64> = (0..3).map(|_| random.below(13) as i64).collect();
        let first = random.below(5) as i64;
        let [by_thread, by_v, by_w] = strides[..] else { panic!("three strides") };
        let mut program = parse(&format!(
            "kernel k(in x: i32[1], out y: i32[4]) {{
  buffer s: i32[100] shared
  alloc s {{
    bound thread_x for t in 0..{THREADS} {{
      for v in 0..{} {{ for w in 0..{} {{ s[t*{by_thread} + v*{by_v} + w*{by_w} + {first}] = x[0] }} }}
      y[t] = 0i32
    }}
  }}
}}",
            LOOPS[0], LOOPS[1]
        ));
        let elements = |thread: i64| -> Vec<i64> {
            (0..LOOPS[0])
                .flat_map(|v| (0..LOOPS[1]).map(move |w| thread * by_thread + v * by_v + w * by_w))
                .collect()
        };
        let threads = || 0..THREADS as i64;
        let is_race = threads()
            .any(|a| threads().any(|b| a != b && elements(a).iter().any(|one| elements(b).contains(one))));
        let is_accepted = insert_barriers(&mut program, &options()).is_ok();
        assert!(!(is_race && is_accepted), "case {case}\n{program}");
        races += i32::from(is_race);
        accepted += i32::from(is_accepted);
        refused_without_race += i32::from(!is_race && !is_accepted);
    }
    assert!(races > 50 && accepted > 50, "{races} races, {accepted} accepted");
    assert!(refused_without_race < accepted, "{refused_without_race} refused, {accepted} accepted");
}
