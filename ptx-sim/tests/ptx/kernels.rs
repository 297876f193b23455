//! Whole kernels against their definitions.

use crate::support::{Param, Random, bytes_of, floats, launch};

const SGEMM: &str = include_str!("../kernels/sgemm.ptx");

#[test]
fn product_of_matrices() {
    let n = 48;
    let mut random = Random(1);
    let (a, b) = (random.units(n * n), random.units(n * n));
    let params = [
        Param::Data(&bytes_of(&a)),
        Param::Data(&bytes_of(&b)),
        Param::Empty((4 * n * n) as u64),
        Param::Word(n as u32),
    ];
    let (report, buffers) = launch(SGEMM, "sgemm", [[3, 3, 1], [16, 16, 1]], 0, &params);
    assert_eq!(report.findings, []);
    let c = floats(&buffers[2]);
    for row in 0..n {
        for column in 0..n {
            let sum = (0..n).fold(0.0_f32, |sum, k| a[row * n + k].mul_add(b[k * n + column], sum));
            assert_eq!(c[row * n + column], sum);
        }
    }
}
