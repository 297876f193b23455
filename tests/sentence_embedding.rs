//! The sentence encoder against embeddings computed by an independent implementation (`scripts/reference_embeddings.py`).
//!
//! Needs the model folder that `scripts/fetch-minilm.sh` fetches; says loudly when it is missing.

#[path = "../examples/sentence_embedding/kernels.rs"]
mod kernels;
#[path = "../examples/sentence_embedding/model.rs"]
mod model;

use std::path::Path;

use model::Model;

#[test]
fn embeddings_equal_those_of_an_independent_implementation() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/minilm");
    if !folder.join("model.safetensors").exists() {
        assert!(std::env::var_os("TILEWRIGHT_REQUIRE_MODEL").is_none(), "{} is missing", folder.display());
        eprintln!("SKIPPED: {} is missing; run scripts/fetch-minilm.sh", folder.display());
        return;
    }
    let model = Model::load(&folder, 256).unwrap_or_else(|error| panic!("{error}"));
    let expected: Vec<serde_json::Value> =
        serde_json::from_str(include_str!("data/minilm_embeddings.json")).expect("the vectors are JSON");
    let sentences: Vec<&str> =
        expected.iter().map(|entry| entry["sentence"].as_str().expect("a sentence")).collect();

    let together = model.embed(&sentences).unwrap_or_else(|error| panic!("{error}"));
    for (row, sentence) in sentences.iter().enumerate() {
        let wanted: Vec<f64> = expected[row]["embedding"]
            .as_array()
            .expect("a vector")
            .iter()
            .map(|value| value.as_f64().expect("a number"))
            .collect();
        let alone = model.embed(&[sentence]).unwrap_or_else(|error| panic!("{error}"));
        for (found, how) in [
            (&together.as_slice()[row * wanted.len()..][..wanted.len()], "padded"),
            (alone.as_slice(), "alone"),
        ] {
            let dot: f64 = found.iter().zip(&wanted).map(|(a, b)| f64::from(*a) * b).sum();
            assert!(dot > 0.9999 && dot < 1.0001, "cosine {dot} for `{sentence}`, {how}");
        }
    }
}
