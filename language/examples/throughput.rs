//! Measures how fast a model reads a prompt and continues it, once all kernels have been made.
//!
//! `cargo run --release -p tilewright-language --example throughput -- [MODEL [PROMPT_TOKENS [TOKENS [THREADS]]]]`
//!
//! `PRODUCTS=floats` multiplies with rows as they are.

use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use tilewright_language::block::Products;
use tilewright_language::{Decoder, gguf};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let model = arguments.next().unwrap_or_else(|| "target/smollm2/model.gguf".to_owned());
    let mut number = |default: usize| arguments.next().map_or(Ok(default), |text| text.parse());
    let (prompt, tokens, threads) = (number(128)?, number(64)?, number(1)?);
    tilewright::set_threads(threads);
    let is_exact = std::env::var("PRODUCTS").is_ok_and(|kind| kind == "floats");
    let products = if is_exact { Products::Floats } else { Products::Integers };
    let file = Arc::new(gguf::File::open(&model)?);
    let bytes: usize =
        file.names().map(|name| file.tensor(name).map_or(0, |tensor| tensor.bytes.len())).sum();
    let decoder = Decoder::with_products(&file, products)?;
    let text: Vec<u32> = (0..prompt).map(|place| (place * 37 % decoder.vocabulary()) as u32).collect();
    let (mut read, mut step) = (f64::MAX, f64::MAX);
    for _ in 0..3 {
        let mut sequence = decoder.sequence()?;
        let start = Instant::now();
        decoder.extend(&mut sequence, &text)?;
        read = read.min(start.elapsed().as_secs_f64());
        for token in 0..tokens {
            let start = Instant::now();
            decoder.extend(&mut sequence, &[token as u32])?;
            step = step.min(start.elapsed().as_secs_f64());
        }
        tilewright::background::finish();
    }
    println!("prompt: {:.1} tokens a second at best", prompt as f64 / read);
    println!(
        "continuation: {:.1} tokens a second at best, {:.1} GB of weights a second",
        1.0 / step,
        bytes as f64 / step / 1e9
    );
    Ok(())
}
