//! How many instructions of threads the simulator executes in a second, on one core, with all its checks.
//!
//! `cargo bench -p tilewright-ptx-sim --bench speed -- [SIZE]`: the product of two square matrices, by tiles in shared memory.

use std::time::Instant;

use tilewright_ptx_sim::{Launch, Memory, Module, Options};

const SGEMM: &str = include_str!("../tests/kernels/sgemm.ptx");

/// The rows and columns of a tile.
const TILE: usize = 16;

/// How often the product is computed; the fastest time counts.
const RUNS: usize = 5;

fn main() {
    let size = std::env::args().skip(1).find_map(|text| text.parse::<usize>().ok()).unwrap_or(256);
    let size = size.next_multiple_of(TILE);
    let module = Module::parse(SGEMM).expect("it is a module");
    let data = |seed: usize| -> Vec<u8> {
        (0..size * size).flat_map(|number| ((number * seed % 97) as f32 / 97.0).to_le_bytes()).collect()
    };
    for (name, seeds) in [("one schedule", vec![0]), ("three schedules", vec![0, 1, 2])] {
        let options = Options { seeds, ..Options::default() };
        let mut best = (0.0_f64, 0);
        for _ in 0..RUNS {
            let mut memory = Memory::default();
            let mut place = |bytes: &[u8]| memory.allocate_with(bytes, "matrix").expect("enough memory");
            let tensors = [place(&data(3)), place(&data(5)), place(&vec![0; 4 * size * size])];
            let mut params: Vec<u8> = tensors.iter().flat_map(|address| address.to_le_bytes()).collect();
            params.extend((size as u32).to_le_bytes());
            let tiles = (size / TILE) as u32;
            let launch = Launch {
                grid: [tiles, tiles, 1],
                block: [TILE as u32, TILE as u32, 1],
                shared_bytes: 0,
                params,
            };
            let start = Instant::now();
            let report = module.run("sgemm", &launch, &mut memory, &options).expect("it can be run");
            let rate = report.instructions as f64 / start.elapsed().as_secs_f64();
            assert!(report.findings.is_empty(), "{:?}", report.findings);
            if rate > best.0 {
                best = (rate, report.instructions);
            }
        }
        let (rate, instructions) = best;
        println!(
            "{size}³, {name}: {instructions} instructions of threads, {:.1} million a second",
            rate / 1e6
        );
    }
}
