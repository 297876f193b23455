//! Tensorized programs compute what their kernel computes, whatever is done around the marked tile.

use tilewright_core::lower::{LowerOptions, lower};
use tilewright_core::program::Scope;
use tilewright_core::schedule::{Rng, Schedule, ScheduleError, Trace};
use tilewright_core::stmt::Stmt;
use tilewright_core::visit::for_each_stmt;

use crate::dot_products;
use crate::kernels::Kernel;
use crate::{check_schedule, disagreement, steps};

const PACKED_DOT_PRODUCTS: Kernel = Kernel {
    name: "packed_dot_products",
    dims: &[&[1, 1, 1], &[3, 2, 5], &[7, 1, 3], &[2, 3, 1]],
    text: "
kernel packed_dot_products(M, N, K, in a: u8[M, 4*K], in b: i8[N, K, 8, 4], out c: i32[M, 8*N]) {
  for i in 0..M {
    for j in 0..N {
      for k in 0..K {
        for l in 0..8 {
          for r in 0..4 {
            block c(vi: spatial M = i, vj: spatial 8*N = 8*j + l, vk: reduce 4*K = 4*k + r) {
              init { c[vi, vj] = 0i32 }
              c[vi, vj] = c[vi, vj] + a[vi, vk] as i32 * b[vj/8, vk/4, vj%8, vk%4] as i32
            }
          }
        }
      }
    }
  }
}",
};

fn holds_intrinsic(schedule: &Schedule) -> bool {
    let mut found = false;
    for_each_stmt(&schedule.program().body, &mut |stmt| found |= matches!(stmt, Stmt::Intrinsic(_)));
    found
}

fn tensorized(seed: u64) -> Result<Schedule, ScheduleError> {
    let program = PACKED_DOT_PRODUCTS.program();
    let mut schedule = Schedule::new(program, dot_products::target(), seed);
    let block = schedule.get_block("c")?;
    let loops = schedule.get_loops(block)?;
    if seed.is_multiple_of(2) {
        schedule.decompose_reduction(block, loops[2])?;
    }
    schedule.tensorize(loops[3], "vpdpbusd_8")?;
    Ok(schedule)
}

#[test]
fn tensorized_programs_keep_the_meaning() {
    for seed in 0..32 {
        let mut schedule = tensorized(seed).unwrap();
        assert!(holds_intrinsic(&schedule));
        let mut random = Rng::new(seed);
        for _ in 0..random.below(8) {
            let _ = steps::random_step(&mut schedule, &mut random);
        }
        check_schedule(&PACKED_DOT_PRODUCTS, &schedule, seed);
        let text = schedule.trace().to_string();
        let trace: Trace = text.parse().unwrap();
        let again = trace.replay(&PACKED_DOT_PRODUCTS.program(), schedule.context(), 0).unwrap();
        assert_eq!(again.program(), schedule.program(), "{text}");
    }
}

const DOT_PRODUCTS: Kernel = Kernel {
    name: "dot_products",
    dims: &[&[1], &[3], &[7]],
    text: "
kernel dot_products(M, in a: u8[M, 12], in b: i8[12, 32], out c: i32[M, 32]) {
  for i in 0..M {
    for j in 0..32 {
      for k in 0..12 {
        block c(vi: spatial M = i, vj: spatial 32 = j, vk: reduce 12 = k) {
          init { c[vi, vj] = 0i32 }
          c[vi, vj] = c[vi, vj] + a[vi, vk] as i32 * b[vk, vj] as i32
        }
      }
    }
  }
}",
};

#[test]
fn a_product_of_matrices_is_packed_and_tensorized() {
    let mut schedule = Schedule::new(DOT_PRODUCTS.program(), dot_products::target(), 0);
    let schedule = &mut schedule;
    let block = schedule.get_block("c").unwrap();
    let pack = "(i, j, k) -> (j/16, k/4, j%16, k%4)".parse().unwrap();
    schedule.reindex_cache_read(block, 1, Scope::Global, pack).unwrap();
    let [i, j, k] = schedule.get_loops(block).unwrap()[..] else { panic!("three loops") };
    let [j0, j1] = schedule.split(j, &[None, Some(16)]).unwrap()[..] else { panic!("two loops") };
    let [k0, k1] = schedule.split(k, &[None, Some(4)]).unwrap()[..] else { panic!("two loops") };
    schedule.reorder(&[i, j0, k0, j1, k1]).unwrap();
    schedule.decompose_reduction(block, k0).unwrap();
    schedule.tensorize(j1, "vpdpbusd_16").unwrap();
    assert!(holds_intrinsic(schedule));
    check_schedule(&DOT_PRODUCTS, schedule, 0);
}

/// A backend that emits the intrinsic finds it marked, and its operands, in the flat program.
#[test]
fn a_wanted_intrinsic_is_still_there_in_the_flat_program() {
    let wanted: Vec<_> = ["vpdpbusd_8"].into_iter().map(Into::into).collect();
    let options = LowerOptions { intrinsics: wanted, ..LowerOptions::default() };
    let mut found = 0;
    for seed in 0..64 {
        let mut schedule = tensorized(seed).unwrap();
        let mut random = Rng::new(seed);
        for _ in 0..random.below(8) {
            let _ = steps::random_step(&mut schedule, &mut random);
        }
        let flat = lower(schedule.program(), &options).unwrap();
        if let Some(what) = disagreement(&PACKED_DOT_PRODUCTS, &flat, seed) {
            panic!("seed {seed}: {what}\n{}\n{flat}", schedule.trace());
        }
        for_each_stmt(&flat.body, &mut |stmt| {
            if let Stmt::Intrinsic(node) = stmt {
                let operands = schedule.target().descriptions().get(&node.name).unwrap().matches(&flat, stmt);
                assert!(operands.is_some(), "seed {seed}: {}\n{flat}", schedule.trace());
                found += 1;
            }
        });
    }
    assert!(found >= 40, "{found} marked statements");
}

/// A filter of three taps and a fourth without weight, which is read beyond the end of the row.
const TAPS: Kernel = Kernel {
    name: "taps",
    dims: &[&[1], &[2], &[13]],
    text: "
kernel taps(M, in a: u8[M, 13], in b: i8[2, 16, 4], out c: i32[M, 11, 32]) {
  buffer p: u8[M, 14] global
  for i in 0..M {
    for x in 0..14 {
      block p(vi: spatial M = i, vx: spatial 14 = x) { p[vi, vx] = select(index(vx) < 13, a[vi, vx], 0u8) }
    }
  }
  for i_1 in 0..M {
    for x_1 in 0..11 {
      for j in 0..2 {
        for l in 0..16 {
          for r in 0..4 {
            block c(vi: spatial M = i_1, vx: spatial 11 = x_1, vl: spatial 32 = 16*j + l, vr: reduce 4 = r) {
              init { c[vi, vx, vl] = 0i32 }
              c[vi, vx, vl] = c[vi, vx, vl] + p[vi, vx + vr] as i32 * b[vl/16, vl%16, vr] as i32
            }
          }
        }
      }
    }
  }
}",
};

/// Operands under a condition are buffers of their own in the flat program, so that the intrinsic is what its mark says.
#[test]
fn guarded_operands_of_a_wanted_intrinsic_are_staged() {
    let wanted: Vec<_> = ["vpdpbusd_16"].into_iter().map(Into::into).collect();
    let options = LowerOptions { intrinsics: wanted, ..LowerOptions::default() };
    for unrolled in [false, true] {
        let mut schedule = Schedule::new(TAPS.program(), dot_products::target(), 0);
        let block = schedule.get_block("c").unwrap();
        let [.., pixels, panels, lanes, _] = schedule.get_loops(block).unwrap()[..] else {
            panic!("five loops")
        };
        schedule.decompose_reduction(block, panels).unwrap();
        schedule.tensorize(lanes, "vpdpbusd_16").unwrap();
        let padded = schedule.get_block("p").unwrap();
        schedule.compute_inline(padded).unwrap();
        if unrolled {
            schedule.unroll(pixels).unwrap();
            schedule.unroll(panels).unwrap();
        }
        let flat = lower(schedule.program(), &options).unwrap();
        assert_eq!(disagreement(&TAPS, &flat, 0), None, "{flat}");
        let mut found = 0;
        for_each_stmt(&flat.body, &mut |stmt| {
            if let Stmt::Intrinsic(node) = stmt {
                let operands = schedule.target().descriptions().get(&node.name).unwrap().matches(&flat, stmt);
                assert!(operands.is_some(), "{flat}");
                found += 1;
            }
        });
        assert!(found > 0, "{flat}");
        // Both panels of the last pixel read the same operand.
        if unrolled {
            assert_eq!(flat.to_string().matches("buffer operand").count(), 1, "{flat}");
        }
    }
}

/// A filter whose outer taps meet the row in few places, with zeros around the row.
const DILATED: Kernel = Kernel {
    name: "dilated",
    dims: &[&[1], &[3], &[8]],
    text: "
kernel dilated(M, in a: u8[M, 7, 32], in b: i8[3, 8, 16, 4], out c: i32[M, 7, 16]) {
  buffer p: u8[M, 17, 32] global
  for i in 0..M {
    for x in 0..17 {
      for k in 0..32 {
        block p(vi: spatial M = i, vx: spatial 17 = x, vk: spatial 32 = k) {
          p[vi, vx, vk] = select((index(vx - 5) >= 0) & (index(vx - 5) < 7), a[vi, vx - 5, vk], 0u8)
        }
      }
    }
  }
  for i_1 in 0..M {
    for x_1 in 0..7 {
      for t in 0..3 {
        for q in 0..8 {
          for l in 0..16 {
            for r in 0..4 {
              block c(vi: spatial M = i_1, vx: spatial 7 = x_1, vl: spatial 16 = l, vt: reduce 3 = t, vk: reduce 32 = 4*q + r) {
                init { c[vi, vx, vl] = 0i32 }
                c[vi, vx, vl] = c[vi, vx, vl] + p[vi, vx + 5*vt, vk] as i32 * b[vt, vk/4, vl, vk%4] as i32
              }
            }
          }
        }
      }
    }
  }
}",
};

/// A branch around a marked statement leaves out its products with padding, whether the padding is stored or not.
#[test]
fn products_of_marked_statements_with_padding_are_left_out() {
    let wanted: Vec<_> = ["vpdpbusd_16"].into_iter().map(Into::into).collect();
    let options = LowerOptions { intrinsics: wanted, ..LowerOptions::default() };
    for (is_inlined, tile) in [(false, 1), (true, 1), (false, 2), (true, 7)] {
        let mut schedule = Schedule::new(DILATED.program(), dot_products::target(), 0);
        let block = schedule.get_block("c").unwrap();
        let [_, places, taps, groups, lanes, _] = schedule.get_loops(block).unwrap()[..] else {
            panic!("six loops")
        };
        let [_, of_tile] = schedule.split(places, &[None, Some(tile)]).unwrap()[..] else { panic!("two") };
        schedule.reorder(&[taps, groups, of_tile]).unwrap();
        schedule.decompose_reduction(block, taps).unwrap();
        schedule.tensorize(lanes, "vpdpbusd_16").unwrap();
        schedule.unroll(of_tile).unwrap();
        if is_inlined {
            let padded = schedule.get_block("p").unwrap();
            schedule.compute_inline(padded).unwrap();
        }
        let flat = lower(schedule.program(), &options).unwrap();
        assert_eq!(disagreement(&DILATED, &flat, 0), None, "{flat}");
        let (mut found, mut guards) = (0, 0);
        for_each_stmt(&flat.body, &mut |stmt| match stmt {
            Stmt::Intrinsic(node) => {
                let operands = schedule.target().descriptions().get(&node.name).unwrap().matches(&flat, stmt);
                assert!(operands.is_some(), "{flat}");
                found += 1;
            }
            Stmt::If(_) => guards += 1,
            _ => {}
        });
        assert!(found > 0 && (guards > 0 || found > 2), "{is_inlined} {tile} {flat}");
        assert!(!flat.to_string().contains("buffer operand"), "{flat}");
    }
}

#[test]
fn the_initial_value_of_a_tensorized_block_can_be_taken_out_afterwards() {
    let mut schedule = tensorized(1).unwrap();
    let block = schedule.get_block("c").unwrap();
    let loops = schedule.get_loops(block).unwrap();
    schedule.decompose_reduction(block, loops[2]).unwrap();
    assert!(holds_intrinsic(&schedule));
    check_schedule(&PACKED_DOT_PRODUCTS, &schedule, 0);
}

#[test]
fn refusals_say_why() {
    let mut schedule = Schedule::new(PACKED_DOT_PRODUCTS.program(), dot_products::target(), 0);
    let before = schedule.program().clone();
    let block = schedule.get_block("c").unwrap();
    let loops = schedule.get_loops(block).unwrap();
    assert_eq!(schedule.tensorize(loops[3], "no_such"), Err(ScheduleError::UnknownIntrinsic));
    for (place, intrinsic, reason) in [
        (loops[3], "vpdpbusd_16", "intrinsic_mismatch"),
        (loops[4], "vpdpbusd_8", "intrinsic_mismatch"),
        (loops[2], "vpdpbusd_8", "not_divisible"),
    ] {
        let refused = schedule.tensorize(place, intrinsic).unwrap_err();
        assert_eq!(refused.reason(), reason, "{}", refused.describe(schedule.program()));
        assert_eq!(*schedule.program(), before);
    }
    assert!(schedule.tensorize(block, "vpdpbusd_8").is_err(), "the block computes one element");
    assert!(schedule.target().descriptions().get("vpdpbusd_4").is_some());
}
