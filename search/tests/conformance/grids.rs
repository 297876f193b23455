//! The published design spaces of MetaSchedule's CUDA workloads, against ours: 17 sketches. `README.md` says what is compared.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use tilewright_core::analysis::scope::{blocks, loops_around};
use tilewright_core::annotation::{TILED_LOOPS, TILING};
use tilewright_core::program::{Program, Scope};
use tilewright_core::schedule::{BlockRv, Decision, Instruction, Schedule, Step, Trace};
use tilewright_core::stmt::{For, LoopKind};
use tilewright_core::target::{RunContext, Target};
use tilewright_search::gpu::rules;
use tilewright_search::gpu::rules::multi_level_thread_tiling::MultiLevelThreadTiling;
use tilewright_search::rule::{RuleEntry, RuleResult, RuleSet};
use tilewright_search::space::design_spaces;
use tilewright_search::space::rules as neutral;

use crate::case::read;

/// The longest innermost loop of a tile.
const MAX_INNERMOST: i64 = 64;

/// The data of one workload.
enum Grid {
    /// The one sketch of a tiled workload.
    Tiled {
        tiles: Vec<Vec<i64>>,
        /// Blocks, virtual threads, threads.
        extents: [i64; 3],
        /// The elements of each copy in shared memory.
        copies: Vec<i64>,
        /// The elements that a thread writes.
        written: i64,
    },
    /// The number of reductions, each of which is made by one thread or by many: as many sketches as combinations.
    Reductions(usize),
}

impl Grid {
    fn read(text: &str) -> Grid {
        let numbers =
            |line: &str| -> Vec<i64> { line.split(' ').filter_map(|word| word.parse().ok()).collect() };
        let of = |word: &str| -> Vec<Vec<i64>> {
            text.lines().filter_map(|line| line.strip_prefix(word)).map(numbers).collect()
        };
        if let Some(count) = of("reductions ").first() {
            return Grid::Reductions(count[0] as usize);
        }
        let [grid, virtual_threads, threads] = of("grid ")[0][..] else { panic!("three extents: {text}") };
        Grid::Tiled {
            tiles: of("tile "),
            extents: [grid, virtual_threads, threads],
            // Ours, where there is a line that says why they are others.
            copies: of("ours ").first().unwrap_or(&of("copies ")[0]).clone(),
            written: of("written ")[0].iter().product(),
        }
    }
}

fn tiling(schedule: &mut Schedule, block: BlockRv) -> RuleResult {
    MultiLevelThreadTiling { max_innermost: Some(MAX_INNERMOST), of_device: false }.apply(schedule, block)
}

/// MetaSchedule's rules for CUDA, in our order.
fn rule_set() -> RuleSet {
    let built_in = rules::multi_level_thread_tiling::multi_level_thread_tiling::ENTRY;
    let tiling =
        RuleEntry { apply: tiling, module: module_path!(), file: file!(), line: line!(), ..built_in };
    let own = [
        neutral::inline_constant_scalars::inline_constant_scalars::ENTRY,
        neutral::auto_inline::auto_inline::ENTRY,
        tiling,
        rules::inline_into_copies::inline_into_copies::ENTRY,
        rules::cross_thread_reduction::cross_thread_reduction::ENTRY,
        rules::auto_bind::auto_bind::ENTRY,
    ];
    own.into_iter().fold(RuleSet::new(), |set, rule| set.with(rule).expect("the rules are in order"))
}

/// A workload's program and its published sketches.
fn case(name: &str) -> (Program, Grid) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance");
    let text =
        |part: &str| fs::read_to_string(folder.join(part).join(format!("{name}.txt"))).expect("it is there");
    (read(&text("sketches")).program, Grid::read(&text("grids")))
}

fn extent(node: &For) -> i64 {
    node.extent.as_constant().expect("the shapes are known")
}

/// The loops of a tiled block: the product of the extents of each level, `S` first.
fn levels(program: &Program) -> ([i64; 5], Vec<i64>, Vec<i64>) {
    let all = blocks(&program.body);
    let tiled = all.iter().find(|block| TILING.is_in(&block.annotations)).expect("a tiled block");
    assert_eq!(TILING.get(&tiled.annotations).as_deref(), Some("SSSRRSRS"));
    let counts = TILED_LOOPS.get(&tiled.annotations).expect("the number of loops");
    let (spatial, reduce) = (counts[0] as usize, counts[1] as usize);
    let path: Vec<i64> = loops_around(&program.body, tiled.id)
        .expect("it is there")
        .into_iter()
        .map(|node| extent(node))
        .collect();
    assert_eq!(path.len(), 5 * spatial + 3 * reduce);
    let (inside, virtual_threads) = (spatial + reduce, 2 * spatial + 2 * reduce);
    let product = |start: usize| path[start..start + spatial].iter().product();
    let spatial_levels = [
        product(0),
        product(virtual_threads),
        product(inside),
        product(virtual_threads + spatial),
        product(virtual_threads + 2 * spatial + reduce),
    ];
    let shared = |block: &&&std::sync::Arc<tilewright_core::stmt::Block>| {
        let written = tilewright_core::analysis::block::writes(block);
        written.iter().any(|buffer| program.buffer(*buffer).scope == Scope::Shared)
    };
    let own_loops = |block: &std::sync::Arc<tilewright_core::stmt::Block>, around: usize| -> i64 {
        let path = loops_around(&program.body, block.id).expect("it is there");
        path[around..].iter().map(|node| node.extent.as_constant().unwrap_or(0)).product()
    };
    // Copies stand in the order in which they were made: that of the last operand first.
    let copies = all.iter().filter(shared).rev().map(|block| own_loops(block, spatial + reduce)).collect();
    let others = all.iter().filter(|block| block.id != tiled.id).filter(|block| !shared(block));
    let written = others.map(|block| own_loops(block, spatial)).collect();
    (spatial_levels, copies, written)
}

fn check_tiled(name: &str, program: &Program, grid: &Grid) {
    let Grid::Tiled { tiles, extents, copies, written } = grid else { panic!("{name} is tiled") };
    let context = RunContext::from(Target::generic_gpu());
    let spaces: Vec<Trace> = design_spaces(program, &context, &rule_set(), 1);
    assert_eq!(spaces.len(), 1, "{name}");
    let mut given = tiles.iter();
    let decide = |_: usize, step: &Step| match step.decision.as_ref()? {
        Decision::Tile(_) => Some(Decision::Tile(given.next().expect("as many tiles").clone())),
        other => Some(other.clone()),
    };
    let schedule = spaces[0].replay_with(program, &context, 0, decide);
    let schedule = schedule.unwrap_or_else(|error| panic!("{name}: {error:?}"));
    assert_eq!(given.next(), None, "{name}: fewer tiles");
    let kept = schedule.trace().decisions().filter_map(|(_, decision)| match decision {
        Decision::Tile(factors) => Some(factors.clone()),
        _ => None,
    });
    assert!(kept.eq(tiles.iter().cloned()), "{name}: tiles are repaired");
    // One choice for each copy, and one for unrolling.
    let choices = schedule.trace().steps().iter();
    let choices =
        choices.filter(|step| matches!(step.instruction, Instruction::SampleCategorical(_))).count();
    assert_eq!(choices, copies.len() + 1, "{name}");
    let (spatial, found_copies, found_written) = levels(schedule.program());
    assert_eq!([spatial[0], spatial[1], spatial[2]], *extents, "{name}: blocks, virtual threads, threads");
    assert_eq!(spatial[3] * spatial[4], *written, "{name}: elements of a thread");
    assert_eq!(found_copies, *copies, "{name}: copies");
    // All threads of a block write together here, and each on its own there.
    assert_eq!(found_written, [written * extents[1] * extents[2]], "{name}: results\n{}", schedule.program());
}

/// The reductions that many threads make, in each space.
fn check_reductions(name: &str, program: &Program, count: usize) {
    let context = RunContext::from(Target::generic_gpu());
    let spaces = design_spaces(program, &context, &rule_set(), 1);
    let combinations: BTreeSet<Vec<String>> = spaces
        .iter()
        .map(|space| {
            let schedule = space.replay(program, &context, 0).expect("it replays");
            let program = schedule.program();
            let by_threads = blocks(&program.body).into_iter().filter(|block| {
                let path = loops_around(&program.body, block.id).unwrap_or_default();
                let is_bound =
                    path.iter().any(|node| matches!(node.kind, LoopKind::Bound(axis) if axis.is_of_block()));
                let is_partial = block.name.ends_with("_partial");
                is_bound && is_partial && !block.name.contains("_partial_partial")
            });
            by_threads.map(|block| block.name.to_string()).collect()
        })
        .collect();
    assert_eq!(combinations.len(), 1 << count, "{name}: {combinations:?}");
}

#[test]
fn grids_are_those_of_metaschedule() {
    let names = ["C1D", "C2D", "C3D", "CAP", "DEP", "DIL", "GMM", "GRP", "T2D", "NRM", "SFM", "CBR", "TBG"];
    let mut sketches = 0;
    for name in names {
        let (program, grid) = case(name);
        match &grid {
            Grid::Tiled { .. } => {
                check_tiled(name, &program, &grid);
                sketches += 1;
            }
            Grid::Reductions(count) => {
                check_reductions(name, &program, *count);
                sketches += 1 << count;
            }
        }
    }
    assert_eq!(sketches, 17);
}
