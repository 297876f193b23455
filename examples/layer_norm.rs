//! Layer normalisation: three passes over each row, which the schedule may fuse.
//!
//! `cargo run --release --example layer_norm`

use std::time::Duration;

use tilewright::prelude::*;
use tilewright::tuning::Tuner;

/// Each row with mean 0 and variance 1, scaled and shifted.
#[tensor_kernel]
pub fn layer_norm(
    x: &Tensor<f32, R, C>,
    scale: &Tensor<f32, C>,
    shift: &Tensor<f32, C>,
    epsilon: f32,
) -> Tensor<f32, R, C> {
    let mut y = Tensor::zeros();
    for r in 0..R {
        let mut sum = 0.0;
        for c in 0..C {
            sum += x[[r, c]];
        }
        let mean = sum / C as f32;
        let mut squares = 0.0;
        for c in 0..C {
            squares += (x[[r, c]] - mean) * (x[[r, c]] - mean);
        }
        let inverse = (squares / C as f32 + epsilon).rsqrt();
        for c in 0..C {
            y[[r, c]] = (x[[r, c]] - mean) * inverse * scale[[c]] + shift[[c]];
        }
    }
    y
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    tilewright::init();
    let tuned = Tuner::new()
        .trials(48)
        .time_limit(Duration::from_secs(15))
        .progress(true)
        .tune(layer_norm::kernel(), &[("R", 512), ("C", 768)])?;
    println!("\n{tuned}");

    let x = Tensor::from_fn([512, 768], |[r, c]| ((r * 31 + c * 7) % 101) as f32 / 50.0)?;
    let (scale, shift) = (Tensor::full([768], 1.5)?, Tensor::full([768], 0.25)?);
    let y = layer_norm(&x, &scale, &shift, 1e-5)?;
    let expected = layer_norm::reference(&x, &scale, &shift, 1e-5)?;
    let error = y.as_slice().iter().zip(expected.as_slice()).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    println!("largest error against the definition: {error:.1e}");
    assert!(error < 1e-4);

    println!(
        "\nThe scheduled program:\n{}",
        tilewright::explain(layer_norm::kernel(), &[("R", 512), ("C", 768)])?.scheduled
    );
    Ok(())
}
