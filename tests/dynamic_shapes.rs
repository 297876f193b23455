//! A kernel that meets many shapes does not compile for ever: further ones share a version with symbolic dimensions.

use tilewright::prelude::*;
use tilewright::{Source, explain};

/// The sums of rows.
#[tensor_kernel]
fn row_sums(x: &Tensor<f32, M, N>) -> Tensor<f32, M> {
    let mut y = Tensor::zeros();
    for i in 0..M {
        for j in 0..N {
            y[[i]] += x[[i, j]];
        }
    }
    y
}

#[test]
fn shapes_beyond_the_limit_share_one_version() {
    const OWN: usize = 3;
    tilewright::set_specialized_shapes(OWN);
    for (number, shape) in
        [[4, 5], [1, 1], [16, 2], [7, 9], [31, 64], [1, 1000], [3, 0], [2, 2]].iter().enumerate()
    {
        let x = Tensor::from_fn(*shape, |[i, j]| (i * j % 7) as f32).unwrap();
        assert_eq!(row_sums(&x).unwrap(), row_sums::reference(&x).unwrap(), "{shape:?}");
        let dims = [("M", shape[0] as i64), ("N", shape[1] as i64)];
        let source = explain(row_sums::kernel(), &dims).unwrap().source;
        let expected = if number < OWN { Source::Default } else { Source::Symbolic };
        assert_eq!(source, expected, "{shape:?}");
    }
}
