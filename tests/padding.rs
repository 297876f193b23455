//! Products with padding: whether they are formed changes results only where a weight is infinite or a NaN.

use tilewright::prelude::*;

/// Defines a convolution of rows, with options.
macro_rules! convolution {
    ($name:ident $(, $option:ident)?) => {
        /// A sum over taps and channels around each column, with one column of zeros on both sides.
        #[tensor_kernel($($option)?)]
        fn $name(x: &Tensor<f32, H, C>, w: &Tensor<f32, K, C, O>) -> Tensor<f32, { H + 3 - K }, O> {
            let mut padded: Tensor<f32, { H + 2 }, C> = Tensor::zeros();
            for h in 0..H + 2 {
                for c in 0..C {
                    padded[[h, c]] = if h >= 1 && h < H + 1 { x[[h - 1, c]] } else { 0.0 };
                }
            }
            let mut y = Tensor::zeros();
            for h in 0..H + 3 - K {
                for o in 0..O {
                    for k in 0..K {
                        for c in 0..C {
                            y[[h, o]] += padded[[h + k, c]] * w[[k, c, o]];
                        }
                    }
                }
            }
            y
        }
    };
}

convolution!(left_out);
convolution!(formed, multiply_padding);

/// Shapes with tiles at the border, inside, and at both borders: columns, channels, taps, outputs.
const SHAPES: [[usize; 4]; 6] =
    [[1, 1, 1, 1], [7, 17, 3, 33], [2, 16, 3, 16], [28, 8, 3, 32], [13, 32, 3, 3], [16, 3, 2, 64]];

/// Small integers other than zero: sums of their products are exact.
fn arguments([columns, channels, taps, outputs]: [usize; 4]) -> (Tensor<f32, 2>, Tensor<f32, 3>) {
    let x = Tensor::from_fn([columns, channels], |[h, c]| ((3 * h + 5 * c) % 7) as f32 - 8.0);
    let w = Tensor::from_fn([taps, channels, outputs], |[k, c, o]| ((2 * k + c + 3 * o) % 5) as f32 + 1.0);
    (x.expect("it is small"), w.expect("it is small"))
}

#[test]
fn with_finite_weights_results_are_those_of_the_definition() {
    for shape in SHAPES {
        let (x, w) = arguments(shape);
        let expected = left_out::reference(&x, &w).expect("a reference");
        assert_eq!(left_out(&x, &w).expect("a call"), expected, "{shape:?}");
        assert_eq!(formed(&x, &w).expect("a call"), expected, "{shape:?}");
    }
}

#[test]
fn an_infinite_weight_meets_padding_only_with_the_option() {
    for shape in SHAPES {
        let [columns, _, taps, outputs] = shape;
        let (x, mut w) = arguments(shape);
        w[[0, 0, outputs - 1]] = f32::INFINITY;
        let expected = formed::reference(&x, &w).expect("a reference");
        let (with, without) = (formed(&x, &w).expect("a call"), left_out(&x, &w).expect("a call"));
        let mut meets = 0;
        for h in 0..columns + 3 - taps {
            for o in 0..outputs {
                let place = format!("{shape:?} [{h}, {o}]");
                let [expected, with, without] = [&expected, &with, &without].map(|y| y[[h, o]]);
                assert_eq!(expected.is_nan(), with.is_nan(), "{place}: {expected} {with}");
                if expected.is_nan() {
                    meets += 1;
                } else {
                    assert_eq!(expected, with, "{place}");
                    assert_eq!(expected, without, "{place}");
                }
            }
        }
        assert!(meets >= 1, "{shape:?}: the first tap of the first column is padding");
    }
}
