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

/// Several steps of a sum in a row, whose tile takes most of sixteen registers: the elements that all vectors of a step share are loaded once, not for
/// each vector.
#[test]
fn steps_of_a_sum_share_their_elements() {
    let (rows, lanes, depth, steps) = (3, 32, 40, 8);
    let size = rows * lanes;
    let sums: String = (0..steps * rows)
        .map(|number| {
            let (step, row) = (number / rows, number % rows);
            let (sum, element) = (row * lanes, row * depth + step);
            format!(
                "r[lane<{lanes}> + {sum}] = mul_add(x[k*{steps} + {element}], w[k*{} + lane<{lanes}> + {}], r[lane<{lanes}> + {sum}])\n",
                steps * lanes,
                step * lanes
            )
        })
        .collect();
    let of_rows = |line: &dyn Fn(usize) -> String| -> String {
        (0..rows).map(|row| line(row * lanes) + "\n").collect()
    };
    let program = program(&format!(
        "kernel tile(in x: f32[{}], in w: f32[{}], out y: f32[{size}]) {{
           buffer r: f32[{size}] local
           alloc r {{
             {}
             for k in 0..{} {{ {sums} }}
             {}
           }}
         }}",
        rows * depth,
        depth * lanes,
        of_rows(&|sum| format!("r[lane<{lanes}> + {sum}] = 0.0")),
        depth / steps,
        of_rows(&|sum| format!("y[lane<{lanes}> + {sum}] = r[lane<{lanes}> + {sum}]")),
    ));
    let tensor = |len, seed| AnyTensor::random(DType::F32, &[len], seed).expect("a small tensor");
    let result = AnyTensor::zeros(DType::F32, &[size]).expect("a small tensor");
    let tensors = vec![tensor(rows * depth, 1), tensor(depth * lanes, 2), result];
    Call { tensors, ..Call::default() }.check(&program);
    let avx2 = tilewright_cpu::CpuDevice::without_features("-avx512f").expect("known features");
    let listing = list(&avx2, &program);
    let count = |words: &str| listing.lines().filter(|line| line.contains(words)).count();
    if count("ymm") > 0 {
        assert_eq!(count("vfmadd"), steps * size / 8, "{listing}");
        assert_eq!(count("broadcast"), steps * rows, "{listing}");
    }
}

/// A tile of sums whose vectors are statements of their own, as an unrolled loop makes them: two rows of six vectors take twelve of sixteen registers, so that neither
/// the six vectors of weights of a step nor all that comes after an element can be kept. Each element and each vector is loaded once for a step all the same.
#[test]
fn rows_of_single_vectors_share_their_operands() {
    let (rows, vectors, depth, steps) = (2, 6, 24, 4);
    let (lanes, width) = (8, 8 * 6);
    let size = rows * width;
    let of_vectors = |line: &dyn Fn(usize, usize) -> String| -> String {
        (0..rows * vectors).map(|number| line(number / vectors, number % vectors * lanes) + "\n").collect()
    };
    let sums: String = (0..steps)
        .map(|step| {
            of_vectors(&|row, lane| {
                let (sum, element, weight) = (row * width + lane, row * depth + step, step * width + lane);
                format!(
                    "r[lane<{lanes}> + {sum}] = mul_add(x[k*{steps} + {element}], w[k*{} + lane<{lanes}> + {weight}], r[lane<{lanes}> + {sum}])",
                    steps * width
                )
            })
        })
        .collect();
    let program = program(&format!(
        "kernel tile(in x: f32[{}], in w: f32[{}], out y: f32[{size}]) {{
           buffer r: f32[{size}] local
           alloc r {{
             {}
             for k in 0..{} {{ {sums} }}
             {}
           }}
         }}",
        rows * depth,
        depth * width,
        of_vectors(&|row, lane| format!("r[lane<{lanes}> + {}] = 0.0", row * width + lane)),
        depth / steps,
        of_vectors(&|row, lane| {
            let sum = row * width + lane;
            format!("y[lane<{lanes}> + {sum}] = r[lane<{lanes}> + {sum}]")
        }),
    ));
    let tensor = |len, seed| AnyTensor::random(DType::F32, &[len], seed).expect("a small tensor");
    let result = AnyTensor::zeros(DType::F32, &[size]).expect("a small tensor");
    let tensors = vec![tensor(rows * depth, 1), tensor(depth * width, 2), result];
    Call { tensors, ..Call::default() }.check(&program);
    let avx2 = tilewright_cpu::CpuDevice::without_features("-avx512f").expect("known features");
    let listing = list(&avx2, &program);
    let count = |is_one: &dyn Fn(&str) -> bool| listing.lines().filter(|line| is_one(line)).count();
    if count(&|line| line.contains("ymm")) > 0 {
        let is_broadcast = |line: &str| line.contains("broadcast");
        let reads_vector = |line: &str| line.contains("ymm") && line.contains(",[") && !is_broadcast(line);
        assert_eq!(count(&|line| line.contains("vfmadd")), steps * rows * vectors, "{listing}");
        assert_eq!(count(&is_broadcast), steps * rows, "{listing}");
        assert_eq!(count(&reads_vector), steps * vectors, "{listing}");
    }
}

/// The taps of a filter, all written out: six pixels of two vectors take twelve of sixteen registers, and a pixel is an operand of several taps. The vectors of a tap are
/// loaded once for all pixels, and pixels again for each tap.
#[test]
fn taps_share_their_weights() {
    let (pixels, taps, channels) = (6, 3, 24);
    let size = pixels * 16;
    let of_pixels =
        |line: &dyn Fn(usize) -> String| -> String { (0..pixels).map(|pixel| line(pixel) + "\n").collect() };
    let sums: String = (0..taps)
        .map(|tap| {
            of_pixels(&|pixel| {
                let (sum, element, weight) = (pixel * 16, (pixel + tap) * channels, tap * 16);
                format!(
                    "r[lane<16> + {sum}] = mul_add(x[c + {element}], w[c*{} + lane<16> + {weight}], r[lane<16> + {sum}])",
                    taps * 16
                )
            })
        })
        .collect();
    let program = program(&format!(
        "kernel tile(in x: f32[{}], in w: f32[{}], out y: f32[{size}]) {{
           buffer r: f32[{size}] local
           alloc r {{
             {}
             for c in 0..{channels} {{ {sums} }}
             {}
           }}
         }}",
        (pixels + taps - 1) * channels,
        channels * taps * 16,
        of_pixels(&|pixel| format!("r[lane<16> + {}] = 0.0", pixel * 16)),
        of_pixels(&|pixel| format!("y[lane<16> + {0}] = r[lane<16> + {0}]", pixel * 16)),
    ));
    let tensor = |len, seed| AnyTensor::random(DType::F32, &[len], seed).expect("a small tensor");
    let result = AnyTensor::zeros(DType::F32, &[size]).expect("a small tensor");
    let tensors = vec![tensor((pixels + taps - 1) * channels, 1), tensor(channels * taps * 16, 2), result];
    Call { tensors, ..Call::default() }.check(&program);
    let avx2 = tilewright_cpu::CpuDevice::without_features("-avx512f").expect("known features");
    let listing = list(&avx2, &program);
    let count = |is_one: &dyn Fn(&str) -> bool| listing.lines().filter(|line| is_one(line)).count();
    if count(&|line| line.contains("ymm")) > 0 {
        let is_broadcast = |line: &str| line.contains("broadcast");
        let reads_vector = |line: &str| line.contains("ymm") && line.contains(",[") && !is_broadcast(line);
        assert_eq!(count(&|line| line.contains("vfmadd")), taps * pixels * 2, "{listing}");
        assert_eq!(count(&is_broadcast), taps * pixels, "{listing}");
        assert_eq!(count(&reads_vector), taps * 2, "{listing}");
    }
}
