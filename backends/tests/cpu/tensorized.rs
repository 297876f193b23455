//! Tensorized programs run where no rule emits the intrinsic: their marked statements are executed.

use std::sync::Arc;

use tilewright_core::dtype::DType;
use tilewright_core::lower::{LowerOptions, lower};
use tilewright_core::program::Program;
use tilewright_core::schedule::{Schedule, ScheduleError};
use tilewright_core::target::Target;
use tilewright_core::tensor::AnyTensor;

use crate::support::Call;

const DOT_PRODUCTS: &str = "
kernel dot_products(M, N, K, in a: u8[M, 4*K], in b: i8[N, K, 16, 4], out c: i32[M, 16*N]) {
  for i in 0..M {
    for j in 0..N {
      for k in 0..K {
        for l in 0..16 {
          for r in 0..4 {
            block c(vi: spatial M = i, vj: spatial 16*N = 16*j + l, vk: reduce 4*K = 4*k + r) {
              init { c[vi, vj] = 0i32 }
              c[vi, vj] = c[vi, vj] + a[vi, vk] as i32 * b[vj/16, vk/4, vj%16, vk%4] as i32
            }
          }
        }
      }
    }
  }
}";

fn scheduled() -> Result<Program, ScheduleError> {
    let program = DOT_PRODUCTS.parse().expect("a program");
    let mut schedule = Schedule::new(program, Arc::new(Target::generic_cpu()), 0);
    let block = schedule.get_block("c")?;
    let loops = schedule.get_loops(block)?;
    schedule.parallel(loops[0])?;
    schedule.vectorize(loops[3])?;
    schedule.decompose_reduction(block, loops[2])?;
    schedule.tensorize(loops[3], "vpdpbusd_16")?;
    Ok(schedule.program().clone())
}

#[test]
fn a_tensorized_product_of_matrices_is_exact() {
    let flat = lower(&scheduled().unwrap(), &LowerOptions::default()).unwrap();
    for dims in [[1, 1, 1], [3, 2, 5], [7, 3, 1], [5, 1, 9]] {
        let [m, n, k] = dims.map(|dim| dim as usize);
        let tensors = vec![
            AnyTensor::random(DType::U8, &[m * 4 * k], 1).unwrap(),
            AnyTensor::random(DType::I8, &[n * k * 64], 2).unwrap(),
            AnyTensor::zeros(DType::I32, &[m * 16 * n]).unwrap(),
        ];
        Call { dims: dims.to_vec(), tensors, ..Call::default() }.check(&flat);
    }
}
