//! Sentences in, embeddings out: all-MiniLM-L6-v2 with every layer computed by `#[tensor_kernel]`s.
//!
//! `scripts/fetch-minilm.sh` fetches the model folder. Then:
//! `cargo run --release --example sentence_embedding -- target/minilm "A tilewright makes tiles." "Tiles are cut here."`

mod kernels;
mod model;

use std::path::PathBuf;
use std::time::Instant;

use model::Model;

// Of 128 tokens, one sentence and 32; other lengths are fitted to these.
tilewright::ship!("examples/sentence_embedding/tuned/");

fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().unwrap_or_else(|| "target/minilm".into()));
    let given: Vec<String> = arguments.collect();
    let sentences: Vec<&str> = if given.is_empty() {
        vec![
            "A tilewright makes tiles.",
            "Someone is cutting ceramic tiles to size.",
            "The stock market fell sharply on Tuesday.",
        ]
    } else {
        given.iter().map(String::as_str).collect()
    };
    let model =
        Model::load(&folder, 256).map_err(|error| format!("{error}; run scripts/fetch-minilm.sh first"))?;

    let start = Instant::now();
    let embeddings = model.embed(&sentences)?;
    println!("first call, with compilation: {:.1?}", start.elapsed());
    let start = Instant::now();
    model.embed(&sentences)?;
    println!("second call: {:.1?}\n", start.elapsed());

    let [count, features] = embeddings.shape();
    for (row, sentence) in sentences.iter().enumerate() {
        println!("{sentence}");
        for other in (0..count).filter(|other| *other != row) {
            let cosine: f32 = (0..features).map(|f| embeddings[[row, f]] * embeddings[[other, f]]).sum();
            println!("    {cosine:6.3}  {}", sentences[other]);
        }
    }
    Ok(())
}
