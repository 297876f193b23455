//! Kernels at and beyond the limits of GPUs: indices of more than 32 bits, grids, blocks, and memory that threads share.

use tilewright_core::device::{CallError, CompileError};
use tilewright_core::lower::{LowerOptions, lower};
use tilewright_core::program::Program;
use tilewright_core::target::{GpuTarget, Target};
use tilewright_gpu::{GpuCode, LaunchArgument, emit};
use tilewright_ptx_sim::{self as sim, Memory, Module, Options};
use tilewright_search::schedule_by_default;

use crate::assembler::assemble;
use crate::support::{code_of, parse};
use crate::texts;

/// Runs the only kernel of a program on two tensors of which a few bytes are there: those from a distance on. The bytes of the second one
/// afterwards.
fn run_far_away(text: &str, dims: &[i64], distances: [u64; 2], source: &[u8], len: u64) -> Vec<u8> {
    let code = code_of(&parse(text));
    assemble(&code.ptx);
    let [launch] = &code.launches[..] else { panic!("one kernel\n{}", code.ptx) };
    let module = Module::parse(&code.ptx).unwrap_or_else(|error| panic!("{error}\n{}", code.ptx));
    let mut memory = Memory::default();
    let places = [
        memory.allocate_with(source, "source").expect("enough memory"),
        memory.allocate(len, "target").expect("enough memory"),
    ];
    let param = |argument: &LaunchArgument| match argument {
        LaunchArgument::Tensor(number) => places[*number].wrapping_sub(distances[*number]).to_le_bytes(),
        LaunchArgument::Dimension(number) => dims[*number].to_le_bytes(),
        other => panic!("{other:?}"),
    };
    let params: Vec<u8> = launch.arguments.iter().flat_map(param).collect();
    let grid = code.grid(launch, dims).expect("a small grid");
    let launched = sim::Launch { grid, block: launch.threads, shared_bytes: 0, params };
    let report = module.run(&launch.entry, &launched, &mut memory, &Options::default()).expect("it is right");
    assert_eq!(report.findings, [], "{}", code.ptx);
    memory.read(places[1], len).expect("it was allocated").to_vec()
}

/// The last row lies 63 · 2^26 elements behind the first one, more than 32 bits hold; in bytes of four, yet more.
#[test]
fn elements_beyond_the_range_of_32_bits_are_found() {
    for (dtype, bytes) in [("u8", 1), ("f32", 4)] {
        let text = format!(
            "kernel last(in x: {dtype}[4294967296], inout y: {dtype}[4294967296]) {{
  bound thread_x for i in 0..64 {{
    for j in 0..4 {{
      if 62 < i {{ y[i*67108864 + j] = x[i*67108864 + j] }}
    }}
  }}
}}"
        );
        let distance = 63 * (1 << 26) * bytes;
        let source: Vec<u8> = (1..=4 * bytes as u8).collect();
        let found = run_far_away(&text, &[], [distance; 2], &source, 4 * bytes);
        assert_eq!(found, source, "{dtype}");
    }
}

#[test]
fn rows_of_symbolic_length_beyond_the_range_of_32_bits_are_found() {
    let text = "kernel last(M, N, in x: f32[M*N], inout y: f32[M*N]) {
  bound block_x for i in 0..M {
    bound thread_x for j in 0..4 {
      if M - 2 < i { y[i*N + j] = x[i*N + j] }
    }
  }
}";
    let dims = [4_i64, 1 << 33];
    let distance = 3 * (1 << 33) * 4;
    let source: Vec<u8> = (1..=16).collect();
    assert_eq!(run_far_away(text, &dims, [distance; 2], &source, 16), source);
}

/// An index that fits, multiplied by a size that does not.
#[test]
fn digits_of_large_indices_are_right() {
    let text = "kernel digits(in x: u8[4294967296], inout y: u8[16]) {
  bound thread_x for i in 0..16 {
    y[i] = x[((i*1000000007)/3)%4000000000]
  }
}";
    let code = code_of(&parse(text));
    assemble(&code.ptx);
    let places: Vec<u64> = (0..16).map(|i| i * 1_000_000_007 / 3 % 4_000_000_000).collect();
    let module = Module::parse(&code.ptx).expect("it is right");
    for (thread, place) in places.iter().enumerate() {
        // Only the element of one thread is there.
        let mut memory = Memory::default();
        let source = memory.allocate_with(&[77], "source").expect("enough memory");
        let target = memory.allocate_with(&[0; 16], "target").expect("enough memory");
        let params = [source.wrapping_sub(*place).to_le_bytes(), target.to_le_bytes()].concat();
        let launched = sim::Launch { grid: [1; 3], block: [16, 1, 1], shared_bytes: 0, params };
        let options = Options::default();
        let report = module.run(&code.launches[0].entry, &launched, &mut memory, &options).expect("it runs");
        assert!(!report.findings.is_empty(), "the other threads read what is not there");
        let found = memory.read(target, 16).expect("it was allocated")[thread];
        assert_eq!(found, 77, "thread {thread}\n{}", code.ptx);
    }
}

fn refused(text: &str) -> String {
    match emit(&parse(text), &GpuTarget::generic()) {
        Err(CompileError::Unsupported { what, .. }) => what,
        other => panic!("{other:?}"),
    }
}

/// A copy whose loop over blocks or threads is bound to an axis.
fn bound(axis: &str, extent: i64) -> String {
    let [outer, inner] = if axis.starts_with("block") { [axis, "thread_x"] } else { ["block_x", axis] };
    let [blocks, threads] = if axis.starts_with("block") { [extent, 1] } else { [1, extent] };
    format!(
        "kernel copy(in x: f32[{extent}], out y: f32[{extent}]) {{
  bound {outer} for b in 0..{blocks} {{
    bound {inner} for t in 0..{threads} {{ y[b*{threads} + t] = x[b*{threads} + t] }}
  }}
}}"
    )
}

#[test]
fn grids_and_blocks_beyond_the_limits_are_refused_with_the_limit() {
    for (axis, most, words) in [
        ("block_x", (1_i64 << 31) - 1, "along axis x; at most 2147483647 are possible"),
        ("block_y", 65_535, "along axis y; at most 65535 are possible"),
        ("block_z", 65_535, "along axis z; at most 65535 are possible"),
        ("thread_x", 1024, "a block has at most 1024"),
        ("thread_y", 1024, "a block has at most 1024"),
        ("thread_z", 64, "and 64 along `thread_z`"),
    ] {
        let code = code_of(&parse(&bound(axis, most)));
        assemble(&code.ptx);
        let what = refused(&bound(axis, most + 1));
        assert!(what.contains("`tw_copy_0`") && what.contains(words), "{axis}: {what}");
    }
}

#[test]
fn a_grid_that_a_call_makes_too_large_is_an_error_that_names_it() {
    for (axis, most) in [("x", (1_i64 << 31) - 1), ("y", 65_535), ("z", 65_535)] {
        let code: GpuCode = code_of(&parse(&format!(
            "kernel copy(N, in x: f32[N], out y: f32[N]) {{
  bound block_{axis} for b in 0..N {{ bound thread_x for t in 0..1 {{ y[b + t] = x[b + t] }} }}
}}"
        )));
        let launch = &code.launches[0];
        let grid = code.grid(launch, &[most]).expect("the largest grid");
        assert_eq!(i64::from(grid.into_iter().max().expect("three extents")), most);
        let name = format!("grid axis {axis} of `tw_copy_0`");
        assert_eq!(code.grid(launch, &[most + 1]), Err(CallError::Dimension { name, value: most + 1 }));
    }
}

#[test]
fn more_shared_memory_than_a_block_has_is_refused_with_both_sizes() {
    let text = |len: i64| {
        format!(
            "kernel reverse(in x: f32[{len}], out y: f32[{len}]) {{
  buffer s: f32[{len}] shared
  alloc s {{
    bound thread_x for t in 0..32 {{
      for k in 0..{} {{ s[k*32 + t] = x[k*32 + t] }}
      barrier()
      for k in 0..{} {{ y[k*32 + t] = s[{len} - 1 - k*32 - t] }}
    }}
  }}
}}",
            len / 32,
            len / 32
        )
    };
    let most = i64::from(GpuTarget::generic().shared_bytes_per_block_opt_in) / 4;
    let code = code_of(&parse(&text(most / 32 * 32)));
    assemble(&code.ptx);
    let what = refused(&text(most / 32 * 32 + 32));
    let sizes = [4 * (most / 32 * 32 + 32), 4 * most].map(|bytes| bytes.to_string());
    assert!(sizes.iter().all(|size| what.contains(size)), "{what}");
}

/// Large shapes do not exceed limits by default: grids go along the axis that has room.
#[test]
fn default_schedules_of_large_shapes_are_within_the_limits() {
    let batches =
        "kernel batches(in x: f32[200000, 8, 8], in y: f32[200000, 8, 8], out z: f32[200000, 8, 8]) {
  for b in 0..200000 { for i in 0..8 { for j in 0..8 { for k in 0..8 {
    block z(vb: spatial 200000 = b, vi: spatial 8 = i, vj: spatial 8 = j, vk: reduce 8 = k) {
      init { z[vb, vi, vj] = 0.0 }
      z[vb, vi, vj] = z[vb, vi, vj] + x[vb, vi, vk] * y[vb, vk, vj]
    }
  } } } }
}";
    let programs: Vec<Program> = [
        texts::matmul(8_000_000, 64, 16),
        texts::matmul(64, 8_000_000, 16),
        texts::matmul(3, 1, 5_000_000_000),
        texts::transpose(100_000, 100_000),
        texts::transpose(3, 5_000_000_000),
        texts::softmax(5_000_000, 64),
        texts::softmax(1, 3_000_000_000),
        texts::sum(1 << 36),
        texts::columns(1 << 33),
        batches.to_owned(),
    ]
    .iter()
    .map(|text| parse(text))
    .collect();
    for program in programs {
        let schedule = schedule_by_default(&program, Target::generic_gpu());
        let flat = lower(schedule.program(), &LowerOptions::of(&Target::generic_gpu()))
            .unwrap_or_else(|error| panic!("{error}\n{program}"));
        let code = emit(&flat, &GpuTarget::generic()).unwrap_or_else(|error| panic!("{error}\n{flat}"));
        for launch in &code.launches {
            code.grid(launch, &[]).unwrap_or_else(|error| panic!("{error}\n{flat}"));
        }
        assemble(&code.ptx);
    }
}
