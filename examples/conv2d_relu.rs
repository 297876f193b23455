//! A convolution with bias and rectifier: the epilogue is part of the definition, and part of the tuned loop nest.
//!
//! `cargo run --release --example conv2d_relu`

use std::time::{Duration, Instant};

use tilewright::prelude::*;
use tilewright::tuning::Tuner;

/// A 2-D convolution over channel-last images, plus bias, rectified.
#[tensor_kernel]
pub fn conv2d_relu(
    image: &Tensor<f32, N, H, W, CI>,
    weight: &Tensor<f32, KH, KW, CI, CO>,
    bias: &Tensor<f32, CO>,
    pad: usize,
) -> Tensor<f32, N, { H + 2 * pad - KH + 1 }, { W + 2 * pad - KW + 1 }, CO> {
    let mut padded: Tensor<f32, N, { H + 2 * pad }, { W + 2 * pad }, CI> = Tensor::zeros();
    for n in 0..N {
        for h in 0..H + 2 * pad {
            for w in 0..W + 2 * pad {
                for c in 0..CI {
                    padded[[n, h, w, c]] = if h >= pad && h < H + pad && w >= pad && w < W + pad {
                        image[[n, h - pad, w - pad, c]]
                    } else {
                        0.0
                    };
                }
            }
        }
    }
    let mut y = Tensor::zeros();
    for n in 0..N {
        for h in 0..H + 2 * pad - KH + 1 {
            for w in 0..W + 2 * pad - KW + 1 {
                for co in 0..CO {
                    let mut sum = 0.0;
                    for kh in 0..KH {
                        for kw in 0..KW {
                            for ci in 0..CI {
                                sum += padded[[n, h + kh, w + kw, ci]] * weight[[kh, kw, ci, co]];
                            }
                        }
                    }
                    y[[n, h, w, co]] = (sum + bias[[co]]).max(0.0);
                }
            }
        }
    }
    y
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    tilewright::init();
    let shape = [("N", 1), ("H", 56), ("W", 56), ("CI", 32), ("KH", 3), ("KW", 3), ("CO", 64), ("pad", 1)];
    let tuned = Tuner::new()
        .trials(48)
        .time_limit(Duration::from_secs(15))
        .progress(true)
        .tune(conv2d_relu::kernel(), &shape)?;
    println!("\n{tuned}");

    let image = Tensor::from_fn([1, 56, 56, 32], |[_, h, w, c]| ((h + 2 * w + 3 * c) % 9) as f32 - 4.0)?;
    let weight = Tensor::from_fn([3, 3, 32, 64], |[h, w, i, o]| ((h + w + i + o) % 5) as f32 - 2.0)?;
    let bias = Tensor::from_fn([64], |[o]| o as f32 - 32.0)?;
    let start = Instant::now();
    let y = conv2d_relu(&image, &weight, &bias, 1)?;
    println!("one call: {:.0?}", start.elapsed());
    assert_eq!(y.as_slice(), conv2d_relu::reference(&image, &weight, &bias, 1)?.as_slice());

    // Shapes are checked on every call.
    let error = conv2d_relu(&image, &weight, &Tensor::<f32, 1>::zeros([63])?, 1).expect_err("63 is not 64");
    println!("a wrong bias is refused: {error}");
    Ok(())
}
