//! The sentence encoder against embeddings computed by an independent implementation (`scripts/reference_embeddings.py`).
//!
//! Needs the model folder that `scripts/fetch-minilm.sh` fetches; says loudly when it is missing.

#[path = "../examples/sentence_embedding/kernels.rs"]
mod kernels;
#[path = "../examples/sentence_embedding/model.rs"]
mod model;

use std::path::Path;

use model::Model;
use tilewright_session::{HostTensor, Session};

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
    a_session_gives_the_same(&model, &sentences);
}

/// The recorded graph in a session, against the kernels one after the other.
fn a_session_gives_the_same(model: &Model, sentences: &[&str]) {
    let graph = model::encode::graph(model).unwrap_or_else(|error| panic!("{error}"));
    let loaded = tilewright_session::Model::from_kernels(&graph).unwrap_or_else(|error| panic!("{error}"));
    let mut session = Session::new(&loaded);
    for batch in [sentences, &sentences[..1]] {
        let (ids, lengths) = model.tokenize(batch).unwrap_or_else(|error| panic!("{error}"));
        let host =
            |shape: &[usize], elements: &[i32]| HostTensor::new(shape, elements.to_vec()).expect("it fits");
        let ids_of_session = host(&ids.shape(), ids.as_slice());
        let inputs = [("ids", &ids_of_session), ("lengths", &host(&lengths.shape(), lengths.as_slice()))];
        let outputs = session.run(&inputs).unwrap_or_else(|error| panic!("{error}"));
        let found = outputs[0].expect::<f32>().expect("numbers");
        let expected = model.embed_tokens(&ids, &lengths).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(outputs[0].shape(), expected.shape());
        for (found, expected) in found.iter().zip(&expected) {
            assert!((found - expected).abs() <= 1e-4, "{found} {expected}");
        }
    }
}
