//! Which values registers hold where there are more of them than registers.

use tilewright_core::dtype::DType;
use tilewright_core::tensor::AnyTensor;

use crate::support::{Call, host, list, program};

/// A tile of sums that begins as a copy of another one of the same size, and goes back there: both would fit into registers, though not
/// beside the vectors that the products share.
#[test]
fn a_tile_of_sums_shares_loads_beside_its_copy() {
    let (rows, depth) = (14, 24);
    let size = rows * 32;
    let lines = |step: usize, line: &dyn Fn(usize) -> String| -> String {
        (0..size).step_by(step).map(|place| line(place) + "\n").collect()
    };
    let sums = lines(16, &|place| {
        let element = format!("x[i*{} + k + {}]", rows * depth, place / 32 * depth);
        let weights = format!("w[k*32 + lane<16> + {}]", place % 32);
        format!("r[lane<16> + {place}] = mul_add({element}, {weights}, r[lane<16> + {place}])")
    });
    let text = format!(
        "kernel tile(in x: f32[{}], in w: f32[{}], out y: f32[{}]) {{
           buffer t: f32[{size}] local
           buffer r: f32[{size}] local
           for i in 0..3 {{
             alloc t {{
               {}
               alloc r {{
                 {}
                 for k in 0..{depth} {{ {sums} }}
                 {}
               }}
               {}
             }}
           }}
         }}",
        3 * rows * depth,
        depth * 32,
        3 * size,
        lines(32, &|place| format!("t[lane<32> + {place}] = 0.0f32")),
        lines(16, &|place| format!("r[lane<16> + {place}] = t[lane<16> + {place}]")),
        lines(16, &|place| format!("t[lane<16> + {place}] = r[lane<16> + {place}]")),
        lines(32, &|place| format!("y[i*{size} + lane<32> + {place}] = t[lane<32> + {place}]")),
    );
    let program = program(&text);
    let tensor = |len, seed| AnyTensor::random(DType::F32, &[len], seed).expect("a small tensor");
    let result = AnyTensor::zeros(DType::F32, &[3 * size]).expect("a small tensor");
    let tensors = vec![tensor(3 * rows * depth, 1), tensor(depth * 32, 2), result];
    Call { tensors, ..Call::default() }.check(&program);
    let listing = list(host(), &program);
    // With 32 registers, the sums leave room for two vectors of weights and an element of `x`.
    if listing.contains("zmm28") {
        let products = listing.lines().filter(|line| line.contains("vfmadd"));
        let (loading, plain): (Vec<&str>, Vec<&str>) = products.partition(|line| line.contains('['));
        assert!(loading.len() < plain.len(), "{} products load an operand:\n{listing}", loading.len());
    }
}
