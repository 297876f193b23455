//! SmolLM2-135M against stored logits of another implementation.
//!
//! `scripts/fetch-smollm2.sh` fetches the model, and `scripts/reference_logits.py` made the logits, with NumPy on dequantised weights.
//! Without the model nothing is compared.

use std::path::Path;
use std::sync::Arc;

use tilewright_language::block::Products;
use tilewright_language::{Decoder, Sampler, Sampling, Tokenizer, gguf};

/// How far a logit may be from the stored one. Ours are sums of `f32` products through 30 layers.
const BOUND: f64 = 5e-3;

/// The same where rows are quantised to 8 bits before each product.
const BOUND_OF_INTEGERS: f64 = 1.0;

#[test]
fn logits_and_tokens_are_those_of_another_implementation() {
    check(Products::Floats, BOUND);
}

#[test]
fn integer_products_keep_the_next_token_and_stay_near_its_logits() {
    check(Products::Integers, BOUND_OF_INTEGERS);
}

fn check(products: Products, bound: f64) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = root.join("../target/smollm2/model.gguf");
    if !path.exists() {
        eprintln!("SKIPPED: {} is missing; scripts/fetch-smollm2.sh fetches it", path.display());
        return;
    }
    let stored = std::fs::read_to_string(root.join("tests/smollm2.json")).unwrap();
    let stored: serde_json::Value = serde_json::from_str(&stored).unwrap();
    let file = Arc::new(gguf::File::open(&path).unwrap());
    let (tokenizer, decoder) =
        (Tokenizer::of(&file).unwrap(), Decoder::with_products(&file, products).unwrap());
    let mut largest = 0.0f64;
    for case in stored["cases"].as_array().unwrap() {
        let text = case["text"].as_str().unwrap();
        let tokens = tokenizer.encode(text, false).unwrap();
        assert_eq!(serde_json::json!(tokens), case["tokens"], "{text}");
        let bytes: Vec<u8> = tokens.iter().flat_map(|&token| tokenizer.decode(token).unwrap()).collect();
        assert_eq!(bytes, text.as_bytes());
        let logits = decoder.extend(&mut decoder.sequence().unwrap(), &tokens).unwrap();
        let next = Sampler::new(Sampling::Greedy, 0).unwrap().choose(&logits).unwrap();
        assert_eq!(u64::from(next), case["next"].as_u64().unwrap(), "{text}");
        for entry in case["logits"].as_array().unwrap() {
            let (token, expected) = (entry[0].as_u64().unwrap() as usize, entry[1].as_f64().unwrap());
            let found = f64::from(logits[token]);
            assert!((found - expected).abs() < bound, "{text}: token {token}: {found}, not {expected}");
            largest = largest.max((found - expected).abs());
        }
    }
    eprintln!("{products:?}: a logit differs by up to {largest:.4}");
}
