//! The design spaces of the usual kernels: how many, and that random points of them stay legal.

use std::sync::Arc;

use tilewright_core::analysis::block::{BufferAccess, loads};
use tilewright_core::analysis::scope::{blocks, loops_around};
use tilewright_core::program::{Program, Scope};
use tilewright_core::schedule::{BlockRv, Decision, Schedule, Trace};
use tilewright_core::stmt::{For, LoopKind};
use tilewright_core::target::{CpuTarget, Target, TargetKind};
use tilewright_search::postproc::{Postprocessors, Rejection};
use tilewright_search::rule::{RuleEntry, RuleOutcome, RuleResult, RuleSet};
use tilewright_search::space::{MAX_SPACES, design_spaces};

const MATMUL: &str = r#"
kernel matmul(in a: f32[128, 128], in b: f32[128, 128], out c: f32[128, 128]) {
  for i in 0..128 {
    for j in 0..128 {
      for k in 0..128 {
        block c(vi: spatial 128 = i, vj: spatial 128 = j, vk: reduce 128 = k) {
          init { c[vi, vj] = 0.0f32 }
          c[vi, vj] = c[vi, vj] + a[vi, vk] * b[vk, vj]
        }
      }
    }
  }
}
"#;

/// A program with its design spaces.
fn spaces(text: &str) -> (Program, Arc<Target>, Vec<Trace>) {
    let program: Program = text.trim().parse().unwrap_or_else(|error| panic!("{error}"));
    let target = Arc::new(Target::generic_cpu());
    let rules = RuleSet::built_in(TargetKind::Cpu).expect("the built-in rules are in order");
    let spaces = design_spaces(&program, &target, &rules, 1);
    (program, target, spaces)
}

#[test]
fn a_matmul_has_nine_spaces() {
    // Three places to write a tile back, each without packing, and with one or both operands packed.
    let (_, _, spaces) = spaces(MATMUL);
    assert_eq!(spaces.len(), 9);
    for space in &spaces {
        let tiles = space.decisions().filter(|(_, decision)| matches!(decision, Decision::Tile(_))).count();
        assert_eq!(tiles, 3, "{space}");
    }
}

#[test]
fn a_matrix_times_its_own_transpose_is_tiled_without_packing() {
    let product = MATMUL.replace("b[vk, vj]", "a[vj, vk]").replace("in b: f32[128, 128], ", "");
    let (_, _, spaces) = spaces(&product);
    let tiled = spaces.iter().filter(|space| space.to_string().contains("\"tiling\"")).count();
    assert!(tiled > 0 && tiled == spaces.len(), "{tiled} of {}", spaces.len());
    assert!(!spaces.iter().any(|space| space.to_string().contains("cache_read")), "one copy, two tiles");
}

#[test]
fn what_stays_the_same_during_a_reduction_is_no_reason_to_tile() {
    let (_, _, spaces) = spaces(
        r#"
kernel scaled_maxima(in x: f32[96, 8, 128], in scales: f32[96], out y: f32[96, 8]) {
  for i in 0..96 {
    for j in 0..8 {
      for k in 0..128 {
        block y(vi: spatial 96 = i, vj: spatial 8 = j, vk: reduce 128 = k) {
          init { y[vi, vj] = -1000.0f32 }
          y[vi, vj] = max(y[vi, vj], x[vi, vj, vk] * scales[vi])
        }
      }
    }
  }
}
"#,
    );
    assert!(!spaces.is_empty());
    for space in &spaces {
        assert!(!space.to_string().contains("\"tiling\""), "{space}");
    }
}

/// Applies the built-in postprocessors.
fn postprocess(schedule: &mut Schedule) -> Result<(), Rejection> {
    Postprocessors::built_in(schedule.target().kind()).apply(schedule)
}

/// Whether some point of a space has the block in vector lanes.
fn can_run_in_lanes(program: &Program, target: &Arc<Target>, space: &Trace, name: &str) -> bool {
    (0..20).any(|seed| {
        let mut drawn = space
            .replay_with(program, target, seed, |_, _| None)
            .unwrap_or_else(|error| panic!("seed {seed}: {error}\n{space}"));
        let is_legal = postprocess(&mut drawn).is_ok();
        let body = &drawn.program().body;
        let block = blocks(body).into_iter().find(|block| *block.name == *name).expect("it is in the space");
        let path = loops_around(body, block.id).expect("it is in the program");
        is_legal && path.iter().any(|node| node.kind == LoopKind::Vectorized)
    })
}

#[test]
fn operands_along_the_reduction_are_transposed_or_reduced_in_lanes() {
    let (program, target, spaces) = spaces(&MATMUL.replace("b[vk, vj]", "b[vj, vk]"));
    let mut ways = [0, 0, 0];
    for space in &spaces {
        let text = space.to_string();
        let (is_packed, is_spread) = (text.contains("transform_layout"), text.contains("rfactor"));
        let (way, block) = match (is_packed, is_spread) {
            (true, false) => (0, "c"),
            (false, true) => (1, "c_partial"),
            (false, false) => (2, "c"),
            (true, true) => panic!("partial sums lie along both operands already\n{text}"),
        };
        ways[way] += 1;
        assert_eq!(can_run_in_lanes(&program, &target, space, block), way != 2, "{text}");
    }
    // Three places to write a tile back each; partial sums have one place.
    assert_eq!(ways, [6, 1, 3]);
}

const TRANSPOSE: &str = r#"
kernel transpose(in x: f32[96, 256], out y: f32[256, 96]) {
  for i in 0..256 {
    for j in 0..96 {
      block y(vi: spatial 256 = i, vj: spatial 96 = j) {
        y[vi, vj] = x[vj, vi]
      }
    }
  }
}
"#;

#[test]
fn a_transposition_has_lanes_inside_a_loop_along_its_rows() {
    let (program, target, spaces) = spaces(TRANSPOSE);
    // From tile to tile along what is read, or along what is written.
    assert_eq!(spaces.len(), 2);
    for (space, seed) in spaces.iter().flat_map(|space| (0..20).map(move |seed| (space, seed))) {
        let mut drawn = space.replay_with(&program, &target, seed, |_, _| None).expect("a legal point");
        if postprocess(&mut drawn).is_err() {
            continue;
        }
        let body = &drawn.program().body;
        let block = blocks(body)[0];
        let path = loops_around(body, block.id).expect("it is in the program");
        let [.., rows, lanes] = &path[..] else { panic!("two loops at least\n{}", drawn.program()) };
        let is_bound = |node: &For, place: usize| block.iters[place].binding.mentions(node.var);
        let is_blocked = lanes.kind == LoopKind::Vectorized && is_bound(lanes, 1) && is_bound(rows, 0);
        // A tile of one row, or of one column, is no block.
        let is_one =
            |decision: &Decision| matches!(decision, Decision::Tile(factors) if factors.last() == Some(&1));
        let is_thin = drawn.trace().decisions().any(|(_, decision)| is_one(decision));
        assert!(is_blocked || is_thin, "{}", drawn.program());
    }
}

/// Lines are of 64 bytes, so that vectors of half of them are written in pairs.
#[test]
fn blocks_of_a_transposition_complete_lines() {
    let (program, target, spaces) = spaces(TRANSPOSE);
    let cpu = target.cpu().expect("a CPU").clone();
    let target = Arc::new(Target::from(CpuTarget { vector_bits: 256, ..cpu }));
    let mut seen = 0;
    for (space, seed) in spaces.iter().flat_map(|space| (0..40).map(move |seed| (space, seed))) {
        let mut drawn = space.replay_with(&program, &target, seed, |_, _| None).expect("a legal point");
        if postprocess(&mut drawn).is_err() {
            continue;
        }
        let innermost = |decision: &Decision| match decision {
            Decision::Tile(factors) => factors.last().copied(),
            _ => None,
        };
        let tile: Vec<i64> =
            drawn.trace().decisions().filter_map(|(_, decision)| innermost(decision)).collect();
        let [rows, columns] = tile[..] else { panic!("two tiles\n{}", drawn.trace()) };
        if rows % 8 == 0 && rows > 8 && columns % 16 == 0 {
            let path =
                loops_around(&drawn.program().body, blocks(&drawn.program().body)[0].id).expect("a block");
            let extents: Vec<_> =
                path[path.len() - 3..].iter().map(|node| node.extent.as_constant()).collect();
            assert_eq!(extents, [Some(2), Some(8), Some(8)], "{}", drawn.program());
            seen += 1;
        }
    }
    assert!(seen > 0, "no point has such a tile");
}

#[test]
fn a_product_along_the_output_is_not_spread() {
    let (_, _, spaces) = spaces(MATMUL);
    for space in &spaces {
        let text = space.to_string();
        assert!(!text.contains("rfactor") && !text.contains("transform_layout"), "{text}");
    }
}

#[test]
fn equal_seeds_make_equal_spaces() {
    let (_, _, first) = spaces(MATMUL);
    let (_, _, second) = spaces(MATMUL);
    assert_eq!(first, second);
}

#[test]
fn every_point_of_a_space_replays_from_its_text() {
    let (program, target, spaces) = spaces(MATMUL);
    for (number, space) in spaces.iter().enumerate() {
        for seed in 0..20 {
            let mut drawn = space
                .replay_with(&program, &target, seed, |_, _| None)
                .unwrap_or_else(|error| panic!("space {number}, seed {seed}: {error}"));
            if postprocess(&mut drawn).is_err() {
                continue;
            }
            let text = drawn.trace().to_string();
            let parsed: Trace = text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"));
            assert_eq!(&parsed, drawn.trace(), "space {number}, seed {seed}");
            let again = parsed.replay(&program, &target, 0).unwrap_or_else(|error| panic!("{error}\n{text}"));
            assert_eq!(again.program(), drawn.program(), "space {number}, seed {seed}");
        }
    }
}

#[test]
fn a_tile_is_repaired_for_another_extent() {
    let (_, target, spaces) = spaces(MATMUL);
    let (program, ..) = self::spaces(&MATMUL.replace("128", "96"));
    for space in &spaces {
        let schedule = space.replay(&program, &target, 0).unwrap_or_else(|error| panic!("{error}"));
        for (_, decision) in schedule.trace().decisions() {
            if let Decision::Tile(factors) = decision {
                assert_eq!(factors.iter().product::<i64>(), 96, "{factors:?}");
            }
        }
    }
}

#[test]
fn only_large_results_that_nothing_reads_may_be_streamed() {
    let copy = |len: i64| {
        format!(
            "kernel copy(in a: f32[{len}], out b: f32[{len}]) {{
               for i in 0..{len} {{ block b(vi: spatial {len} = i) {{ b[vi] = a[vi] + 1.0f32 }} }}
             }}"
        )
    };
    let read_again = "kernel twice(in a: f32[16777216], out b: f32[16777216], out c: f32[16777216]) {
      for i in 0..16777216 { block b(vi: spatial 16777216 = i) { b[vi] = exp(a[vi]) } }
      for i in 0..16777216 { block c(vi: spatial 16777216 = i) { c[vi] = b[vi] + b[vi] } }
    }";
    // Of four cores with caches of 512 KiB each, 16 MiB are large.
    for (text, streamable) in [(&*copy(4 << 20), 1), (&copy((4 << 20) - 1), 0), (read_again, 1)] {
        let (program, target, spaces) = spaces(text);
        let mut most = 0;
        for space in &spaces {
            for seed in 0..20 {
                let mut drawn = space.replay_with(&program, &target, seed, |_, _| None).expect("it is legal");
                if postprocess(&mut drawn).is_ok() {
                    let buffers = drawn.program().buffers();
                    most = most.max(buffers.filter(|(_, own)| own.scope == Scope::Streamed).count());
                }
            }
        }
        assert_eq!(most, streamable, "{text}");
    }
}

#[test]
fn only_what_reads_a_large_tensor_may_ask_ahead() {
    let sums = |len: i64| {
        format!(
            "kernel sums(in a: f32[{len}, 512], out b: f32[{len}]) {{
               for i in 0..{len} {{ for k in 0..512 {{
                 block b(vi: spatial {len} = i, vk: reduce 512 = k) {{
                   init {{ b[vi] = 0.0f32 }}
                   b[vi] = b[vi] + a[vi, vk]
                 }}
               }} }}
             }}"
        )
    };
    // Beyond four caches of 512 KiB.
    for (len, expected) in [(1025, true), (1024, false)] {
        let (program, target, spaces) = spaces(&sums(len));
        let mut found = false;
        for space in &spaces {
            for seed in 0..40 {
                // A point of a space that forks on what it draws need not be legal.
                let Ok(mut drawn) = space.replay_with(&program, &target, seed, |_, _| None) else { continue };
                found |= postprocess(&mut drawn).is_ok() && drawn.program().to_string().contains("@prefetch");
            }
        }
        assert_eq!(found, expected, "{len} rows");
    }
}

#[test]
fn a_block_that_writes_a_large_result_asks_for_what_others_read() {
    // Rows are read by one block, and another one writes as many elements.
    let program = |len: usize| {
        format!(
            "kernel means(in a: f32[{len}, 512], out b: f32[{len}, 512]) {{
               buffer s: f32[{len}] global
               for i in 0..{len} {{ for k in 0..512 {{
                 block s(vi: spatial {len} = i, vk: reduce 512 = k) {{
                   init {{ s[vi] = 0.0f32 }}
                   s[vi] = s[vi] + a[vi, vk]
                 }}
               }} }}
               for i in 0..{len} {{ for j in 0..512 {{
                 block b(vi: spatial {len} = i, vj: spatial 512 = j) {{ b[vi, vj] = s[vi] }}
               }} }}
             }}"
        )
    };
    // Beyond four caches of 512 KiB.
    for (len, expected) in [(1025, true), (1024, false)] {
        let (program, target, spaces) = spaces(&program(len));
        let is_found = spaces.iter().any(|space| {
            (0..40).any(|seed| {
                let Ok(mut drawn) = space.replay_with(&program, &target, seed, |_, _| None) else {
                    return false;
                };
                postprocess(&mut drawn).is_ok() && drawn.program().to_string().contains("@prefetch_beside")
            })
        });
        assert_eq!(is_found, expected, "{len} rows");
    }
}

#[test]
fn a_transposition_is_tiled_and_a_copy_is_not() {
    let text = |read: &str| {
        format!(
            "kernel move(in a: f32[96, 96], out b: f32[96, 96]) {{
               for i in 0..96 {{ for j in 0..96 {{
                 block b(vi: spatial 96 = i, vj: spatial 96 = j) {{ b[vi, vj] = a[{read}] }}
               }} }}
             }}"
        )
    };
    for (read, tiled) in [("vj, vi", true), ("vi, vj", false), ("vi, 0", false)] {
        let (program, target, spaces) = spaces(&text(read));
        for space in &spaces {
            let mut drawn = space.replay_with(&program, &target, 3, |_, _| None).expect("it is legal");
            postprocess(&mut drawn).expect("it is within the limits");
            assert_eq!(space.to_string().contains("reorder"), tiled, "{space}");
        }
    }
}

/// A transposed convolution of rows, of which `out` are written.
fn transposed(out: i64, stride: i64) -> String {
    let (rows, taps) = (out / stride + 3, 2 * stride);
    format!(
        "kernel transposed(in x: f32[{rows}, 32], in w: f32[{taps}, 32, 48], out y: f32[{out}, 48]) {{
           for i in 0..{out} {{ for c in 0..48 {{ for t in 0..2 {{ for k in 0..32 {{
             block y(vi: spatial {out} = i, vc: spatial 48 = c, vt: reduce 2 = t, vk: reduce 32 = k) {{
               init {{ y[vi, vc] = 0.0f32 }}
               y[vi, vc] = y[vi, vc]
                 + x[(vi + 1)/{stride} - vt + 1, vk] * w[(vi + 1)%{stride} + vt*{stride}, vk, vc]
             }}
           }} }} }} }}
         }}"
    )
}

#[test]
fn rows_that_share_weights_may_be_tiled_together() {
    for (out, stride) in [(16, 2), (24, 3), (17, 2), (2, 2), (16, 1)] {
        let (program, target, spaces) = spaces(&transposed(out, stride));
        let quotients = out / stride;
        let is_separable = stride > 1 && out % stride == 0 && quotients > 1;
        let is_separate = |space: &&Trace| space.to_string().contains("transform_block_layout");
        let expected = if is_separable { spaces.len() / 2 } else { 0 };
        assert_eq!(spaces.iter().filter(is_separate).count(), expected, "{out} rows, stride {stride}");
        for space in spaces.iter().filter(is_separate) {
            let drawn = space.replay_with(&program, &target, 3, |_, _| None).expect("it is legal");
            let block = blocks(&drawn.program().body).into_iter().find(|block| &*block.name == "y");
            let block = block.expect("no rule renames it");
            let rows = block.iters.iter().find(|iter| iter.extent.is(quotients)).expect("quotients").var;
            let moves = |access: &BufferAccess| access.indices[0].mentions(rows);
            let moving = loads(&block.body).iter().filter(|access| moves(access)).count();
            assert_eq!(moving, 2, "rows of the sum and of x, none of w\n{}", drawn.program());
        }
    }
}

/// Variants that differ in a note of the block.
fn fork(schedule: &Schedule, block: BlockRv, key: &str) -> RuleResult {
    let variant = |number| {
        let mut variant = schedule.clone();
        variant.annotate(block, key, number)?;
        Ok(variant)
    };
    Ok(RuleOutcome::Variants((0..2).map(variant).collect::<Result<_, _>>()?))
}

#[test]
fn too_many_spaces_are_left_out_evenly() {
    let stages: String = (0..6)
        .map(|stage| {
            format!("for i in 0..8 {{ block s{stage}(v: spatial 8 = i) {{ y{stage}[v] = x[v] }} }}\n")
        })
        .collect();
    let outputs: Vec<String> = (0..6).map(|stage| format!("out y{stage}: f32[8]")).collect();
    let text = format!("kernel stages(in x: f32[8], {}) {{\n{stages}}}\n", outputs.join(", "));
    let program: Program = text.parse().unwrap_or_else(|error| panic!("{error}"));
    let rule = |name, apply| RuleEntry {
        name,
        target: "cpu",
        after: &[],
        before: &[],
        replace: None,
        apply,
        module: "space",
        file: "space.rs",
        line: 1,
    };
    let first = rule("first", |schedule, block| fork(schedule, block, "first"));
    let second = rule("second", |schedule, block| fork(schedule, block, "second"));
    let rules = RuleSet::new().with(first).and_then(|rules| rules.with(second)).expect("they are in order");
    let spaces = |seed| design_spaces(&program, Arc::new(Target::generic_cpu()), &rules, seed);
    let kept = spaces(1);
    assert_eq!(kept.len(), MAX_SPACES);
    assert_eq!(kept, spaces(1), "one seed, one choice");
    assert_ne!(kept, spaces(2));
    // There are 2^12. Each of the twelve choices is open among those that stay.
    let is_chosen = |space: &Trace, key: &str, stage: usize| {
        let text = space.to_string();
        let fetched = format!(" = get_block \"s{stage}\"");
        let variables: Vec<&str> = text.lines().filter_map(|line| line.strip_suffix(&*fetched)).collect();
        variables.iter().any(|variable| text.contains(&format!("annotate block {variable}, \"{key}\", 1\n")))
    };
    for key in ["first", "second"] {
        for stage in 0..6 {
            let ones = kept.iter().filter(|space| is_chosen(space, key, stage)).count();
            assert!((MAX_SPACES / 3..=2 * MAX_SPACES / 3).contains(&ones), "{key} of s{stage}: {ones}");
        }
    }
}
