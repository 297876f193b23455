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

/// A tile of sums in registers, with rows of some vectors each, which a loop adds to.
struct Tile {
    rows: usize,
    /// The vectors of a row that are statements of their own.
    vectors: usize,
    /// The lanes of each.
    lanes: usize,
    /// Iterations of the loop.
    iterations: usize,
    /// Steps of the sum in each of them, written out.
    steps: usize,
    /// The elements of `x`.
    elements: usize,
}

/// How often the code of a tile does something in an iteration.
struct Counts {
    products: usize,
    broadcasts: usize,
    vectors_read: usize,
}

impl Tile {
    fn width(&self) -> usize {
        self.vectors * self.lanes
    }

    /// A line for each vector of each row, given the row and the vector's first lane.
    fn lines(&self, line: &dyn Fn(usize, usize) -> String) -> String {
        (0..self.rows * self.vectors)
            .map(|number| line(number / self.vectors, number % self.vectors * self.lanes) + "\n")
            .collect()
    }

    /// Compares the results of the tile with the interpreter's, and counts in its code for AVX2. `element` gives the place in `x` of a row's element in a step; `None`
    /// where the machine has no AVX2.
    fn check(&self, element: &dyn Fn(usize, usize) -> String) -> Option<(Counts, String)> {
        let Tile { rows, lanes, iterations, steps, elements, .. } = *self;
        let (width, size) = (self.width(), rows * self.width());
        let sum = |row: usize, lane: usize| format!("r[lane<{lanes}> + {}]", row * width + lane);
        let product = |step: usize, row: usize, lane: usize| {
            let weights = format!("w[k*{} + lane<{lanes}> + {}]", steps * width, step * width + lane);
            let sum = sum(row, lane);
            format!("{sum} = mul_add(x[{}], {weights}, {sum})", element(row, step))
        };
        let sums: String = (0..steps).map(|step| self.lines(&|row, lane| product(step, row, lane))).collect();
        let program = program(&format!(
            "kernel tile(in x: f32[{elements}], in w: f32[{}], out y: f32[{size}]) {{
               buffer r: f32[{size}] local
               alloc r {{
                 {}
                 for k in 0..{iterations} {{ {sums} }}
                 {}
               }}
             }}",
            iterations * steps * width,
            self.lines(&|row, lane| format!("{} = 0.0", sum(row, lane))),
            self.lines(&|row, lane| format!(
                "y[lane<{lanes}> + {}] = {}",
                row * width + lane,
                sum(row, lane)
            )),
        ));
        let tensor = |len, seed| AnyTensor::random(DType::F32, &[len], seed).expect("a small tensor");
        let result = AnyTensor::zeros(DType::F32, &[size]).expect("a small tensor");
        let tensors = vec![tensor(elements, 1), tensor(iterations * steps * width, 2), result];
        Call { tensors, ..Call::default() }.check(&program);
        let avx2 = tilewright_cpu::CpuDevice::without_features("-avx512f").expect("known features");
        let listing = list(&avx2, &program);
        let count = |is_one: &dyn Fn(&str) -> bool| listing.lines().filter(|line| is_one(line)).count();
        let is_broadcast = |line: &str| line.contains("broadcast");
        let counts = Counts {
            products: count(&|line| line.contains("vfmadd")),
            broadcasts: count(&is_broadcast),
            vectors_read: count(&|line| line.contains("ymm") && line.contains(",[") && !is_broadcast(line)),
        };
        listing.contains("ymm").then_some((counts, listing))
    }
}

/// Several steps of a sum in a row, whose tile takes most of sixteen registers: the elements that all vectors of a step share are loaded once, not for
/// each vector.
#[test]
fn steps_of_a_sum_share_their_elements() {
    let tile = Tile { rows: 3, vectors: 1, lanes: 32, iterations: 5, steps: 8, elements: 120 };
    if let Some((counts, listing)) = tile.check(&|row, step| format!("k*8 + {}", row * 40 + step)) {
        assert_eq!(counts.products, 8 * 3 * 4, "{listing}");
        assert_eq!(counts.broadcasts, 8 * 3, "{listing}");
    }
}

/// A tile of sums whose vectors are statements of their own, as an unrolled loop makes them: two rows of six vectors take twelve of sixteen registers, which leaves no
/// room for the six vectors of weights of a step. Each element and each vector is loaded once for a step all the same.
#[test]
fn rows_of_single_vectors_share_their_operands() {
    let tile = Tile { rows: 2, vectors: 6, lanes: 8, iterations: 6, steps: 4, elements: 48 };
    if let Some((counts, listing)) = tile.check(&|row, step| format!("k*4 + {}", row * 24 + step)) {
        assert_eq!(counts.products, 4 * 2 * 6, "{listing}");
        assert_eq!(counts.broadcasts, 4 * 2, "{listing}");
        assert_eq!(counts.vectors_read, 4 * 6, "{listing}");
    }
}

/// The taps of a filter, all written out: six pixels of two vectors take twelve of sixteen registers, and a pixel is an operand of several taps. The vectors of a tap are
/// loaded once for all pixels, and pixels again for each tap.
#[test]
fn taps_share_their_weights() {
    let tile = Tile { rows: 6, vectors: 1, lanes: 16, iterations: 24, steps: 3, elements: 8 * 24 };
    if let Some((counts, listing)) = tile.check(&|pixel, tap| format!("k + {}", (pixel + tap) * 24)) {
        assert_eq!(counts.products, 3 * 6 * 2, "{listing}");
        assert_eq!(counts.broadcasts, 3 * 6, "{listing}");
        assert_eq!(counts.vectors_read, 3 * 2, "{listing}");
    }
}
