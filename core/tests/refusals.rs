//! Refusals of primitives, with their reasons. A refusal leaves the program as it was.

#[path = "support/dot_products.rs"]
mod dot_products;

use std::sync::Arc;

use tilewright_core::accuracy::Accuracy;
use tilewright_core::program::{Program, Scope};
use tilewright_core::schedule::{Schedule, ScheduleError, Trace};
use tilewright_core::target::Target;

/// `d = relu-like of (a · b + bias)`, with a padded copy of `a` and a block that updates `e` in place.
const KERNEL: &str = "
kernel k(M, in a: f32[8, 12], in b: f32[12, 6], in bias: f32[6], in ids: i64[8], out d: f32[8, 6], inout e: f32[M], out g: f32[8]) {
  buffer p: f32[10, 12] global
  buffer c: f32[8, 6] global
  for i in 0..10 {
    for k in 0..12 {
      block p(vi: spatial 10 = i, vk: spatial 12 = k) {
        p[vi, vk] = select((index(vi) >= 1) & (index(vi) < 9), a[vi - 1, vk], 0.0)
      }
    }
  }
  for i in 0..8 {
    for j in 0..6 {
      for k in 0..12 {
        block c(vi: spatial 8 = i, vj: spatial 6 = j, vk: reduce 12 = k) {
          init { c[vi, vj] = 0.0 }
          c[vi, vj] = c[vi, vj] + p[vi + 1, vk] * b[vk, vj]
        }
      }
    }
  }
  for i in 0..8 {
    for j in 0..6 {
      block d(vi: spatial 8 = i, vj: spatial 6 = j) {
        d[vi, vj] = max(c[vi, vj] + bias[vj], 0.0)
      }
    }
  }
  for i in 0..M {
    block e(vi: spatial M = i) {
      e[vi] = e[vi] * 2.0
    }
  }
  for i in 0..8 {
    block g(vi: spatial 8 = i) {
      g[vi] = a[bounded(ids[vi], 0..8), 0] + a[vi, 1]
    }
  }
}";

/// The last step, after those that fetch every block and loop, is refused for a reason.
fn check(step: &str, reason: &str) {
    let program: Program = KERNEL.parse().unwrap_or_else(|error| panic!("{error}"));
    let prefix = "trace v1
%0 = get_block \"p\"
%1, %2 = get_loops %0
%3 = get_block \"c\"
%4, %5, %6 = get_loops %3
%7 = get_block \"d\"
%8, %9 = get_loops %7
%10 = get_block \"e\"
%11 = get_loops %10
%12 = get_block \"g\"
%13 = get_loops %12
";
    let target = dot_products::target();
    let steps: Trace = format!("{prefix}{step}").parse().unwrap_or_else(|error| panic!("{error}\n{step}"));
    let mut schedule = Schedule::new(program, target, 0);
    let (last, before) = steps.steps().split_last().expect("a step");
    for step in before {
        let fetched = schedule.push(step.instruction.clone(), step.decision.clone());
        fetched.unwrap_or_else(|error| panic!("{step}: {error}"));
    }
    let unchanged = schedule.program().clone();
    let error = schedule.push(last.instruction.clone(), last.decision.clone()).expect_err(step);
    assert_eq!(error.reason(), reason, "{step}: {}", error.describe(schedule.program()));
    assert!(!error.describe(schedule.program()).is_empty());
    assert_eq!(*schedule.program(), unchanged, "{step}");
}

#[test]
fn tiles_must_be_whole_and_alone() {
    check("%14, %15 = split %4, [none, 3]\n%16 = blockize %15", "guarded");
    check("%14, %15 = split %4, [2, 4]\nreorder [%15, %14]\n%16 = blockize %14", "not_divisible");
    check("parallel %5\n%14 = blockize %4", "not_serial");
    check("%14 = merge [%4, %8]\n%15 = blockize %14", "not_one_block");
    check("%14 = blockize %4\n%15 = blockize %4", "missing_loop");
    check("tensorize loop %5, \"no_such\"", "unknown_intrinsic");
    check("tensorize loop %5, \"vpdpbusd_4\"", "intrinsic_mismatch");
}

#[test]
fn threads_have_each_axis_once() {
    check("bind %4, \"warp\"", "unknown_axis");
    check("bind %6, \"thread_y\"", "reduction_loop");
    check("bind %6, \"thread_x\"", "not_combined");
    check("parallel %4\nbind %4, \"thread_x\"", "not_serial");
    check("bind %4, \"thread_x\"\nbind %5, \"thread_x\"", "axis_taken");
    check("bind %5, \"thread_x\"\nbind %4, \"thread_x\"", "axis_taken");
    // Nests of one grid, for rows and for columns.
    let merged = "%14 = merge [%4, %8]\n%15, %16, %17 = get_loops %3\n%18, %19 = get_loops %7\n";
    check(
        &format!("{merged}%20, %21 = split %19, [3, 2]\nbind %16, \"thread_y\"\nbind %20, \"thread_y\""),
        "axis_extent",
    );
    check(
        "bind %5, \"thread_x\"\n%14, %15 = split %9, [2, 3]\nbind %14, \"thread_x\"\n%16 = merge [%4, %8]",
        "axis_extent",
    );
}

#[test]
fn maps_must_fit() {
    check("transform_layout %3, \"write\", 0, (i) -> (i)", "bad_map");
    check("transform_layout %3, \"write\", 0, (i, j) -> (i)", "bad_map");
    check("transform_layout %3, \"write\", 1, (i, j) -> (j, i)", "no_such_access");
    check("transform_layout %3, \"use\", 0, (i, j) -> (j, i)", "bad_decision");
    check("transform_layout %7, \"write\", 0, (i, j) -> (j, i)", "parameter_buffer");
    check("transform_block_layout %3, (i, j, k) -> (i/3, i%3, j, k)", "bad_map");
    check("transform_block_layout %3, (i, j, k) -> (i, j*12 + k)", "mixed_iterators");
    check("transform_block_layout %10, (i) -> (i + 1)", "bad_map");
    check("%14 = merge [%4, %8]\ntransform_block_layout %3, (i, j, k) -> (j, i, k)", "shared_loops");
    check("parallel %8\ntransform_block_layout %7, (i, j) -> (j, i)", "not_serial");
    check("reorder_block_iter_var %7, [0, 0]", "bad_order");
    check("reorder_block_iter_var %7, [0]", "bad_order");
}

#[test]
fn copies_need_one_element_at_a_point() {
    check("%14 = reindex %12, \"read\", 1", "several_elements");
    check("%14 = reindex %12, \"read\", 7", "no_such_access");
    check("%14 = reindex %0, \"read\", 0", "conditional_access");
    check("%14 = reindex %10, \"write\", 0", "not_reduction");
    check("%14 = reindex_cache_read %3, 0, \"local\", (i, j, k) -> (i)", "bad_map");
    check("%14 = reindex_cache_read %3, 0, \"nowhere\", (i, j, k) -> (i, k)", "bad_decision");
    check("%14 = reindex_cache_read %10, 0, \"local\", (i) -> (i)", "updates_in_place");
    check("%14 = reindex_cache_write %3, \"local\", (i, j, k) -> (i, j, k)", "bad_map");
    check("%14 = reindex_cache_write %3, \"local\", (i, j, k) -> (i)", "bad_map");
    check("%14, %15 = cache_inplace %7, 0, \"local\"", "not_update");
    check("set_scope %7, 0, \"local\"", "parameter_buffer");
    check(
        "transform_layout %3, \"write\", 0, (i, j) -> (i/3, i%3, j)\n%14 = cache_read %7, 0, \"local\"",
        "partly_written",
    );
    check("stream_writes %3, 0", "not_result");
    check("stream_writes %10, 0", "read_again");
    check("stream_writes %7, 1", "no_such_access");
    check("software_pipeline %4, [0, 1], [0, 1]", "pipeline");
    check("software_pipeline %4, [16], [0]", "pipeline");
    check("software_pipeline %4, [0], [1]", "pipeline");
    check("software_pipeline %4, [0], [0, 1]", "pipeline");
    check("parallel %4\nsoftware_pipeline %4, [0], [0]", "pipeline");
    check("%14 = merge [%4, %8]\nsoftware_pipeline %14, [1, 0], [0, 1]", "pipeline");
    check("%14 = merge [%4, %8]\nsoftware_pipeline %14, [0, 0], [1, 0]", "pipeline");
    check("prefetch %4, 0", "bad_distance");
    check("prefetch %4, 1025", "bad_distance");
    check("parallel %4\nprefetch %4, 4", "not_serial");
    check("parallel %4\nprefetch %4, \"siblings\"", "not_serial");
    check("storage_align %7, 0, 0, 4, 0", "parameter_buffer");
    check("storage_align %3, 0, 1, 4, 0", "axis_out_of_range");
    check("storage_align %3, 0, -3, 4, 0", "axis_out_of_range");
    check("storage_align %3, 0, 0, 4, 4", "bad_alignment");
    check("storage_align %3, 0, 0, 8192, 4", "bad_alignment");
    check("storage_swizzle %7, 0", "parameter_buffer");
    check("storage_swizzle %3, 1", "no_such_access");
    check("%14 = cache_read %3, 4, \"local\"", "no_such_access");
    check("%14 = cache_read %3, 1, \"local\"\ncompute_at %14, %8", "consumer_outside");
    check("%14 = cache_write %3, \"local\"\nreverse_compute_at %14, %8", "no_neighbour");
}

#[test]
fn composed_steps_are_made_together_or_not_at_all() {
    let mut schedule = Schedule::new(KERNEL.parse().expect("a kernel"), Arc::new(Target::generic_cpu()), 0);
    let (c, d) = (schedule.get_block("c").expect("a block"), schedule.get_block("d").expect("a block"));
    let target = schedule.get_loops(d).expect("a block")[0];
    let (program, trace) = (schedule.program().clone(), schedule.trace().clone());
    let refused = schedule.read_at(target, c, 1, Scope::Local).expect_err("`c` is not in the loop");
    assert_eq!(refused.reason(), "consumer_outside");
    let refused = schedule.write_at(target, c, Scope::Local).expect_err("`c` is not in the loop");
    assert_eq!(refused.reason(), "no_neighbour");
    assert_eq!((schedule.program(), schedule.trace()), (&program, &trace));
    let copy = schedule.read_at(target, d, 1, Scope::Local).expect("`d` is in the loop");
    let around = schedule.get_loops(copy).expect("a block")[0];
    let id = |name| schedule.values().target_loop(name).expect("a loop");
    assert_eq!(id(around), id(target), "the copy is made in the loop");
}

#[test]
fn nests_must_go_together() {
    check("%14 = merge [%4]", "bad_loop_list");
    check("%14 = merge [%4, %4]", "bad_loop_list");
    check("%14 = merge [%1, %8]", "not_siblings");
    check("%14 = merge [%1, %4]", "not_siblings");
    check("reorder [%9, %8]\n%14 = merge [%4, %9]", "not_siblings");
    check("vectorize %8\n%14 = merge [%4, %8]", "not_serial");
    check(
        "%14, %15 = split %1, [5, 2]\n%16, %17 = split %4, [none, 2]\n%18 = merge [%14, %16]",
        "not_siblings",
    );
    check(
        "%14, %15 = split %8, [4, 2]\n%16, %17 = split %4, [4, 2]\nreorder [%17, %16]\n%18 = merge [%17, %14]",
        "not_siblings",
    );
}

#[test]
fn lanes_are_independent_or_one_update() {
    check("vectorize %6", "reduction_loop");
    check("%14 = decompose_reduction %3, %6\nunroll %6\nvectorize %6", "not_serial");
}

#[test]
fn merged_iterations_must_not_meet_elsewhere() {
    let text = "kernel shifted(in a: f32[8], out b: f32[8], out c: f32[8]) {
        for i in 0..8 { block b(v: spatial 8 = i) { b[v] = a[v] } }
        for i in 0..8 { block c(v: spatial 8 = i) { c[v] = b[7 - v] } }
      }";
    let mut schedule = Schedule::new(text.parse().unwrap(), Arc::new(Target::generic_cpu()), 0);
    let loops = ["b", "c"].map(|name| {
        let block = schedule.get_block(name).unwrap();
        schedule.get_loops(block).unwrap()[0]
    });
    assert_eq!(schedule.merge(&loops).unwrap_err().reason(), "crossing_dependence");
}

#[test]
fn parts_must_sum_to_the_whole() {
    check("%14, %15 = loop_partition %4, [4, 3]", "bad_factors");
    check("%14, %15 = loop_partition %4, [none, none]", "bad_factors");
    check("%14, %15 = loop_partition %4, [none, 8]", "bad_factors");
    check("%14, %15 = loop_partition %11, [2, none]", "symbolic_extent");
    check("unroll %4\n%14, %15 = loop_partition %4, [2, none]", "not_serial");
    check("%14, %15 = split %4, [2, 4]\n%16, %17 = loop_partition %15, [1, 3]", "not_consecutive");
    check("%14, %15, %16 = sample_partitioned_tile %4, 3, 1, 3", "bad_factors");
    check("%14, %15, %16 = sample_partitioned_tile %4, 3, 3, 2", "bad_factors");
    check("%14, %15, %16 = sample_partitioned_tile %11, 3, 1, 2", "symbolic_extent");
    check("%14, %15, %16 = sample_partitioned_tile %4, 3, 1, 2 !decision [4, 2]", "bad_decision");
}

#[test]
fn sums_epilogues_and_paddings_have_their_forms() {
    check("fuse_reduction_epilogue %7", "not_epilogue");
    check("fuse_reduction_epilogue %3", "not_complete");
    check("pad_einsum %3, [4, 4]", "bad_padding");
    check("pad_einsum %3, [4, 0, 4]", "bad_padding");
    check("pad_einsum %7, [4, 4]", "not_einsum");
    check("%14 = decompose_padding %7", "not_padding");
    check("%14 = decompose_padding %3", "not_padding");
    check("parallel %1\n%14 = decompose_padding %0", "not_serial");
}

#[test]
fn rows_chosen_by_data_are_not_padded() {
    let text = "kernel chosen(in x: f32[9, 4], in ids: i64[5], in w: f32[4, 6], out y: f32[5, 6]) {
        for i in 0..5 { for j in 0..6 { for k in 0..4 {
          block y(vi: spatial 5 = i, vj: spatial 6 = j, vk: reduce 4 = k) {
            init { y[vi, vj] = 0.0 }
            y[vi, vj] = y[vi, vj] + x[bounded(ids[vi], 0..9), vk] * w[vk, vj]
          }
        } } }
      }";
    let mut schedule = Schedule::new(text.parse().unwrap(), Arc::new(Target::generic_cpu()), 0);
    let block = schedule.get_block("y").unwrap();
    assert_eq!(schedule.pad_einsum(block, &[16, 1, 1]).unwrap_err().reason(), "not_einsum");
}

#[test]
fn a_consumer_does_not_overtake_its_producers() {
    let text = "kernel rows(in x: f32[4, 6], out y: f32[4, 6]) {
        buffer a: f32[4] global
        buffer b: f32[4, 6] global
        for i in 0..4 {
          block a(v: spatial 4 = i) { a[v] = x[v, 0] }
          for j in 0..6 { block b(v: spatial 4 = i, w: spatial 6 = j) { b[v, w] = x[v, w] } }
        }
        for i in 0..4 {
          for j in 0..6 { block y(v: spatial 4 = i, w: spatial 6 = j) { y[v, w] = b[v, w] + a[3 - v] } }
        }
      }";
    let mut schedule = Schedule::new(text.parse().unwrap(), Arc::new(Target::generic_cpu()), 0);
    let (b, y) = (schedule.get_block("b").unwrap(), schedule.get_block("y").unwrap());
    let loops = schedule.get_loops(b).unwrap();
    for place in loops {
        let moved = schedule.reverse_compute_at(y, place);
        assert!(moved.is_err(), "{}", schedule.program());
    }
}

#[test]
fn a_consumer_goes_where_its_producers_have_made_its_part() {
    let text = "kernel rows(in x: f32[4, 6], out y: f32[4, 6]) {
        buffer a: f32[4] global
        buffer b: f32[4, 6] global
        for i in 0..4 {
          block a(v: spatial 4 = i) { a[v] = x[v, 0] }
          for j in 0..6 { block b(v: spatial 4 = i, w: spatial 6 = j) { b[v, w] = x[v, w] } }
        }
        for i in 0..4 {
          for j in 0..6 { block y(v: spatial 4 = i, w: spatial 6 = j) { y[v, w] = b[v, w] + a[v] } }
        }
      }";
    for depth in 0..2 {
        let mut schedule = Schedule::new(text.parse().unwrap(), Arc::new(Target::generic_cpu()), 0);
        let (b, y) = (schedule.get_block("b").unwrap(), schedule.get_block("y").unwrap());
        let loops = schedule.get_loops(b).unwrap();
        schedule.reverse_compute_at(y, loops[depth]).unwrap();
    }
}

#[test]
fn products_are_split_only_where_the_kernel_allows_it() {
    check("%14, %15 = split_products %3, 9", "beyond_accuracy");
    check("%14, %15 = split_products %3, 4", "bad_decision");
    check("%14, %15 = split_products %7, 3", "not_products");
    check("%14, %15 = split_products %12, 3", "not_products");
    check("round_products %3", "beyond_accuracy");
    check("round_products %7", "not_products");
    let mut program: Program = KERNEL.parse().unwrap();
    program.accuracy = Accuracy::new(1e-6);
    let schedule = Schedule::new(program, Arc::new(Target::generic_cpu()), 0);
    let split = |products, prepare: &dyn Fn(&mut Schedule) -> Result<(), ScheduleError>| {
        let mut schedule = schedule.clone();
        let block = schedule.get_block("c").unwrap();
        prepare(&mut schedule).unwrap();
        let unchanged = schedule.program().clone();
        let refused = schedule.split_products(block, products).map(drop);
        if let Err(error) = refused {
            assert_eq!(*schedule.program(), unchanged);
            assert!(!error.describe(&unchanged).is_empty());
        }
        refused.map_err(|error| error.reason())
    };
    assert_eq!(split(3, &|_| Ok(())), Err("beyond_accuracy"));
    assert_eq!(split(6, &|_| Ok(())), Ok(()));
    let moved = |schedule: &mut Schedule| {
        let (padded, block) = (schedule.get_block("p")?, schedule.get_block("c")?);
        let loops = schedule.get_loops(block)?;
        schedule.compute_at(padded, loops[0])
    };
    assert_eq!(split(6, &moved), Err("shared_loops"));
    let in_parallel = |schedule: &mut Schedule| {
        let block = schedule.get_block("c")?;
        let loops = schedule.get_loops(block)?;
        schedule.parallel(loops[0])
    };
    assert_eq!(split(6, &in_parallel), Err("not_serial"));
}

#[test]
fn only_products_of_integers_have_offsets() {
    check("%14 = offset_products %3, 0, 128", "not_integer_products");
    check("%14 = offset_products %12, 0, 128", "not_integer_products");
    let text = KERNEL.replace("f32", "i32").replace("0.0", "0i32").replace("2.0", "2i32");
    let schedule = Schedule::new(text.parse().unwrap(), Arc::new(Target::generic_cpu()), 0);
    let offset = |factor, offset, prepare: &dyn Fn(&mut Schedule) -> Result<(), ScheduleError>| {
        let mut schedule = schedule.clone();
        let block = schedule.get_block("c").unwrap();
        prepare(&mut schedule).unwrap();
        let unchanged = schedule.program().clone();
        let refused = schedule.offset_products(block, factor, offset).map(drop);
        if let Err(error) = refused {
            assert_eq!(*schedule.program(), unchanged);
            assert!(!error.describe(&unchanged).is_empty());
        }
        refused.map_err(|error| error.reason())
    };
    let nothing = |_: &mut Schedule| Ok(());
    for (factor, number) in [(2, 1), (-1, 1), (0, 0), (0, 1 << 31), (1, -(1 << 31))] {
        assert_eq!(offset(factor, number, &nothing), Err("bad_decision"), "{factor}, {number}");
    }
    assert_eq!(offset(0, (1 << 31) - 1, &nothing), Ok(()));
    assert_eq!(offset(1, -128, &nothing), Ok(()));
    let moved = |schedule: &mut Schedule| {
        let (padded, block) = (schedule.get_block("p")?, schedule.get_block("c")?);
        let loops = schedule.get_loops(block)?;
        schedule.compute_at(padded, loops[0])
    };
    assert_eq!(offset(1, 128, &moved), Err("shared_loops"));
    let in_parallel = |schedule: &mut Schedule| {
        let block = schedule.get_block("c")?;
        let loops = schedule.get_loops(block)?;
        schedule.parallel(loops[0])
    };
    assert_eq!(offset(0, 128, &in_parallel), Err("not_serial"));
}

#[test]
fn what_is_made_in_part_is_not_copied_as_a_whole() {
    // The product reads 8 of the 10 rows of `p`.
    let left = "compute_at %0, %4\ncompute_at %3, %8\n";
    check(&format!("{left}%14 = cache_write %0, \"local\""), "not_filled");
    check(&format!("{left}%14 = cache_read %3, 0, \"local\""), "partly_written");
}

#[test]
fn a_record_of_a_kernel_that_allows_more_cannot_be_replayed() {
    let mut program: Program = KERNEL.parse().unwrap();
    let target = Arc::new(Target::generic_cpu());
    let trace: Trace = "trace v1\n%0 = get_block \"c\"\n%1, %2 = split_products %0, 3".parse().unwrap();
    for (accuracy, is_allowed) in [(None, false), (Some(1e-5), false), (Some(1e-4), true)] {
        program.accuracy = accuracy.and_then(Accuracy::new);
        assert_eq!(trace.replay(&program, &target, 0).is_ok(), is_allowed, "{accuracy:?}");
    }
    let trace: Trace = "trace v1\n%0 = get_block \"c\"\nround_products %0".parse().unwrap();
    for (accuracy, is_allowed) in [(None, false), (Some(9e-4), false), (Some(1e-3), true)] {
        program.accuracy = accuracy.and_then(Accuracy::new);
        assert_eq!(trace.replay(&program, &target, 0).is_ok(), is_allowed, "{accuracy:?}");
    }
}

#[test]
fn a_sum_that_may_be_empty_is_not_fused_with_its_elements() {
    let sum = "kernel k(K, in a: f32[K, 6], out c: f32[6]) {
  for k in 0..K {
    for j in 0..6 {
      block c(vj: spatial 6 = j, vk: reduce K = k) {
        init { c[vj] = 0.0 }
        c[vj] = c[vj] + a[vk, vj]
      }
    }
  }
}";
    let fuse = |text: &str| {
        let program: Program = text.parse().unwrap_or_else(|error| panic!("{error}"));
        let mut schedule = Schedule::new(program, Arc::new(Target::generic_cpu()), 0);
        let block = schedule.get_block("c").unwrap();
        let loops = schedule.get_loops(block).unwrap();
        schedule.fuse(&loops).map_err(|error| error.reason())
    };
    assert_eq!(fuse(sum).unwrap_err(), "symbolic_extent");
    assert!(fuse(&sum.replace("kernel k(K, ", "kernel k(").replace('K', "5")).is_ok());
}
