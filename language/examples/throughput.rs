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

/// Measured rounds, after one that makes the kernels.
const ROUNDS: usize = 5;

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
    let (mut prompts, mut decoded, mut best) = (Vec::new(), Vec::new(), f64::MAX);
    for round in 0..=ROUNDS {
        let mut sequence = decoder.sequence()?;
        let start = Instant::now();
        decoder.extend(&mut sequence, &text)?;
        let read = prompt as f64 / start.elapsed().as_secs_f64();
        let begin = Instant::now();
        for token in 0..tokens {
            let start = Instant::now();
            decoder.extend(&mut sequence, &[token as u32])?;
            best = best.min(start.elapsed().as_secs_f64());
        }
        // The first round makes the kernels.
        if round > 0 {
            prompts.push(read);
            decoded.push(tokens as f64 / begin.elapsed().as_secs_f64());
        }
        tilewright::background::finish();
    }
    println!(
        "{threads} threads: {} tokens a second, best token {:.2} ms, {:.1} GB of weights a second; prompt of {prompt} {} tokens a second",
        spread(&mut decoded),
        1e3 * best,
        bytes as f64 * decoded[ROUNDS / 2] / 1e9,
        spread(&mut prompts),
    );
    Ok(())
}

/// The median of rates, and their range.
fn spread(rates: &mut [f64]) -> String {
    rates.sort_by(f64::total_cmp);
    format!("{:.1} ({:.1}–{:.1})", rates[rates.len() / 2], rates[0], rates[rates.len() - 1])
}
