//! A decoder with small random weights against the definition of its layers in `f64`.

use std::sync::Arc;

use super::*;
use crate::block::BlockType;
use crate::gguf::testing::Builder;

/// The sizes of the model: two groups of three heads, and no size that is a power of two but the head's.
const HIDDEN: usize = 96;
const HEADS: usize = 6;
const GROUPS: usize = 2;
const HEAD: usize = 16;
const INNER: usize = 160;
const TOKENS: usize = 70;
const LAYERS: usize = 2;
const CONTEXT: usize = 400;

/// Weights by name: extents and numbers.
#[derive(Clone)]
struct Weights(Vec<(String, Vec<usize>, Vec<f32>)>);

impl Weights {
    fn random() -> Self {
        let mut state = 1u64;
        let mut next = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f32 / (1u64 << 24) as f32 - 0.5
        };
        let mut all = Vec::new();
        let mut add = |name: String, shape: &[usize], offset: f32, size: f32| {
            let numbers = (0..shape.iter().product()).map(|_| offset + size * next()).collect();
            all.push((name, shape.to_vec(), numbers));
        };
        add("token_embd.weight".into(), &[TOKENS, HIDDEN], 0.0, 2.0);
        add("output_norm.weight".into(), &[HIDDEN], 1.0, 0.5);
        for layer in 0..LAYERS {
            let name = |part: &str| format!("blk.{layer}.{part}.weight");
            let (own, shared) = (HEADS * HEAD, GROUPS * HEAD);
            add(name("attn_norm"), &[HIDDEN], 1.0, 0.5);
            add(name("ffn_norm"), &[HIDDEN], 1.0, 0.5);
            add(name("attn_q"), &[own, HIDDEN], 0.0, 0.6);
            add(name("attn_k"), &[shared, HIDDEN], 0.0, 0.6);
            add(name("attn_v"), &[shared, HIDDEN], 0.0, 0.6);
            add(name("attn_output"), &[HIDDEN, own], 0.0, 0.3);
            add(name("ffn_gate"), &[INNER, HIDDEN], 0.0, 0.4);
            add(name("ffn_up"), &[INNER, HIDDEN], 0.0, 0.4);
            add(name("ffn_down"), &[HIDDEN, INNER], 0.0, 0.2);
        }
        Weights(all)
    }

    fn get(&self, name: &str) -> &[f32] {
        &self.0.iter().find(|(own, ..)| own == name).expect("the model has the tensor").2
    }

    fn builder(&self) -> Builder {
        let mut builder = Builder::new()
            .text("general.architecture", "llama")
            .u32("llama.block_count", LAYERS as u32)
            .u32("llama.embedding_length", HIDDEN as u32)
            .u32("llama.attention.head_count", HEADS as u32)
            .u32("llama.attention.head_count_kv", GROUPS as u32)
            .u32("llama.feed_forward_length", INNER as u32)
            .u32("llama.context_length", CONTEXT as u32)
            .f32("llama.rope.freq_base", 500.0)
            .f32("llama.attention.layer_norm_rms_epsilon", 1e-5);
        for (name, shape, numbers) in &self.0 {
            // Queries, keys and values have types of their own, so that they are matrices of their own.
            let half = name.contains("attn_v");
            let bytes: Vec<u8> = match half {
                true => numbers.iter().flat_map(|&n| half::f16::from_f32(n).to_le_bytes()).collect(),
                false => numbers.iter().flat_map(|n| n.to_le_bytes()).collect(),
            };
            let kind = if half { BlockType::F16 } else { BlockType::F32 };
            builder = builder.tensor(name, shape, kind, bytes);
        }
        builder
    }

    fn decoder(&self) -> Decoder {
        Decoder::of(&Arc::new(self.builder().file())).unwrap()
    }
}

fn multiply(w: &[f32], x: &[f64]) -> Vec<f64> {
    w.chunks_exact(x.len()).map(|row| row.iter().zip(x).map(|(&w, &x)| f64::from(w) * x).sum()).collect()
}

fn normal(x: &[f64], w: &[f32]) -> Vec<f64> {
    let mean = x.iter().map(|x| x * x).sum::<f64>() / x.len() as f64;
    x.iter().zip(w).map(|(x, &w)| x / (mean + 1e-5).sqrt() * f64::from(w)).collect()
}

fn turned(heads: &[f64], position: usize) -> Vec<f64> {
    let mut heads = heads.to_vec();
    for head in heads.chunks_exact_mut(HEAD) {
        for pair in 0..HEAD / 2 {
            let angle = position as f64 * 500f64.powf(-((2 * pair) as f64) / HEAD as f64);
            let (x, y) = (head[2 * pair], head[2 * pair + 1]);
            head[2 * pair] = x * angle.cos() - y * angle.sin();
            head[2 * pair + 1] = x * angle.sin() + y * angle.cos();
        }
    }
    heads
}

/// The logits after all tokens.
fn reference(weights: &Weights, tokens: &[u32]) -> Vec<f64> {
    let embedding = weights.get("token_embd.weight");
    let mut rows: Vec<Vec<f64>> = tokens
        .iter()
        .map(|&token| embedding[token as usize * HIDDEN..][..HIDDEN].iter().map(|&x| f64::from(x)).collect())
        .collect();
    for layer in 0..LAYERS {
        let get = |part: &str| weights.get(&format!("blk.{layer}.{part}.weight"));
        let halves: Vec<f32> =
            get("attn_v").iter().map(|&value| half::f16::from_f32(value).to_f32()).collect();
        let normals: Vec<_> = rows.iter().map(|x| normal(x, get("attn_norm"))).collect();
        let keys: Vec<_> =
            normals.iter().enumerate().map(|(place, x)| turned(&multiply(get("attn_k"), x), place)).collect();
        let values: Vec<_> = normals.iter().map(|x| multiply(&halves, x)).collect();
        for (place, x) in rows.iter_mut().enumerate() {
            let queries = turned(&multiply(get("attn_q"), &normals[place]), place);
            let mut context = Vec::new();
            for (head, query) in queries.chunks_exact(HEAD).enumerate() {
                let group = head / (HEADS / GROUPS) * HEAD;
                let score = |key: &Vec<f64>| {
                    let dot: f64 = query.iter().zip(&key[group..]).map(|(q, k)| q * k).sum();
                    (dot / (HEAD as f64).sqrt()).exp()
                };
                let scores: Vec<f64> = keys[..=place].iter().map(score).collect();
                let sum: f64 = scores.iter().sum();
                for number in 0..HEAD {
                    let terms =
                        scores.iter().zip(&values).map(|(score, value)| score * value[group + number]);
                    context.push(terms.sum::<f64>() / sum);
                }
            }
            x.iter_mut().zip(multiply(get("attn_output"), &context)).for_each(|(x, more)| *x += more);
            let inner = normal(x, get("ffn_norm"));
            let gate = multiply(get("ffn_gate"), &inner);
            let passed: Vec<f64> = gate
                .iter()
                .zip(multiply(get("ffn_up"), &inner))
                .map(|(g, u)| g / (1.0 + (-g).exp()) * u)
                .collect();
            x.iter_mut().zip(multiply(get("ffn_down"), &passed)).for_each(|(x, more)| *x += more);
        }
    }
    let last = normal(rows.last().expect("there are tokens"), weights.get("output_norm.weight"));
    multiply(embedding, &last)
}

fn assert_close(found: &[f32], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (place, (&found, expected)) in found.iter().zip(expected).enumerate() {
        assert!((f64::from(found) - expected).abs() < 2e-4, "logit {place}: {found}, not {expected}");
    }
}

fn tokens(count: usize) -> Vec<u32> {
    (0..count).map(|place| ((place * place * 7 + 3) % TOKENS) as u32).collect()
}

#[test]
fn logits_are_those_of_the_definition_however_tokens_are_given() {
    let weights = Weights::random();
    let decoder = weights.decoder();
    for count in [1, 5, 70] {
        let tokens = tokens(count);
        let expected = reference(&weights, &tokens);
        let mut whole = decoder.sequence().unwrap();
        assert_close(&decoder.extend(&mut whole, &tokens).unwrap(), &expected);
        assert_eq!(whole.len(), count);
        let mut parts = decoder.sequence().unwrap();
        let (first, rest) = tokens.split_at(count / 3);
        if !first.is_empty() {
            decoder.extend(&mut parts, first).unwrap();
        }
        let mut logits = Vec::new();
        for &token in rest {
            logits = decoder.extend(&mut parts, &[token]).unwrap();
        }
        assert_close(&logits, &expected);
    }
}

#[test]
fn a_sequence_grows_beyond_its_first_room_and_ends_with_the_context() {
    let weights = Weights::random();
    let decoder = weights.decoder();
    let tokens = tokens(300);
    let mut sequence = decoder.sequence().unwrap();
    decoder.extend(&mut sequence, &tokens[..255]).unwrap();
    let logits = decoder.extend(&mut sequence, &tokens[255..]).unwrap();
    assert_close(&logits, &reference(&weights, &tokens));
    let error = decoder.extend(&mut sequence, &tokens[..101]).unwrap_err().to_string();
    assert!(error.contains("400"), "{error}");
    assert_eq!(sequence.len(), 300);
}

#[test]
fn wrong_tokens_and_files_are_errors() {
    let weights = Weights::random();
    let decoder = weights.decoder();
    let mut sequence = decoder.sequence().unwrap();
    assert!(matches!(decoder.extend(&mut sequence, &[TOKENS as u32]), Err(Error::Token { .. })));
    assert!(decoder.extend(&mut sequence, &[]).is_err());
    assert!(sequence.is_empty());

    let mut without = Weights(weights.0.clone());
    without.0.retain(|(name, ..)| name != "blk.1.ffn_up.weight");
    let message = Decoder::of(&Arc::new(without.builder().file())).err().unwrap().to_string();
    assert!(message.contains("`blk.1.ffn_up.weight`"), "{message}");
    let mut other = Weights(weights.0.clone());
    other.0[3].1.reverse();
    other.0[3].1.push(1);
    let message = Decoder::of(&Arc::new(other.builder().file())).err().unwrap().to_string();
    assert!(message.contains("expected"), "{message}");
    let message = Config::of(&Builder::new().text("general.architecture", "mamba").file()).unwrap_err();
    assert!(message.to_string().contains("mamba"));
}

/// Numbers of both signs.
fn numbers<const RANK: usize>(shape: [usize; RANK], seed: usize) -> tilewright::Tensor<f32, RANK> {
    let count = shape.iter().product();
    let number = |place: usize| ((place * 37 + seed * 11) % 101) as f32 / 25.0 - 2.0;
    tensors::from_vec((0..count).map(number).collect(), shape).unwrap()
}

/// Quantised rows: integers, steps, and sums of the halves of blocks.
type QuantisedRows = (tilewright::Tensor<i8, 2>, tilewright::Tensor<f32, 2>, tilewright::Tensor<i32, 3>);

/// Asserts that quantised rows differ from rows of floats by half a step at most.
fn assert_quantised((integers, steps, sums): &QuantisedRows, expected: &tilewright::Tensor<f32, 2>) {
    let blocks = integers.as_slice().chunks_exact(32).zip(expected.as_slice().chunks_exact(32));
    for (block, (integers, numbers)) in blocks.enumerate() {
        let step = steps.as_slice()[block];
        for (&integer, &number) in integers.iter().zip(numbers) {
            let error = (f32::from(integer) * step - number).abs();
            assert!(error <= step * 0.501, "block {block}: {integer} times {step}, not {number}");
        }
        for (half, integers) in integers.chunks_exact(16).enumerate() {
            let sum: i32 = integers.iter().map(|&integer| i32::from(integer)).sum();
            assert_eq!(sums.as_slice()[block * 2 + half], sum);
        }
    }
}

#[test]
fn rows_are_the_same_as_integers_and_as_floats() {
    for (rows, width) in [(1, 32), (1, 576), (3, 96), (64, 160)] {
        let weights = numbers([width], 3);
        let found = numbers([rows, width], 2);
        let [mut first, mut second] = [(); 2].map(|()| numbers([rows, width], 1));
        let floats = kernels::normalise(&mut first, &found, &weights, 1e-5).unwrap();
        let by_block = weights.reshape([width / 32, 32]).unwrap();
        assert_quantised(&quantised::normalise(&mut second, &found, &by_block, 1e-5).unwrap(), &floats);
        assert_eq!(first, second);
        let both = numbers([rows, 2 * width], 4);
        let passed = kernels::gate(&both.clone().reshape([rows, 2, width]).unwrap()).unwrap();
        let by_block = both.reshape([rows, 2, width / 32, 32]).unwrap();
        assert_quantised(&quantised::gate(&by_block).unwrap(), &passed);
        let by_block = passed.clone().reshape([rows, width / 32, 32]).unwrap();
        let (integers, steps, sums) = crate::block::quantise_rows(&by_block).unwrap();
        let integers = integers.reshape([rows, width]).unwrap();
        assert_quantised(&(integers, steps, sums), &passed);
    }
}

#[test]
fn a_session_runs_the_graph_of_a_step() {
    use tilewright_session::{HostTensor, Model, Session};

    let room = 12;
    let floats = |shape: &[usize], numbers: Vec<f32>| HostTensor::new(shape, numbers).unwrap();
    let integers = |numbers: Vec<i32>| HostTensor::new(&[numbers.len()], numbers).unwrap();
    let empty = |shape: [usize; 3]| floats(&shape, vec![0.0; GROUPS * HEAD * room]);
    for products in [Products::Floats, Products::Integers] {
        let file = Arc::new(Weights::random().builder().file());
        let decoder = Decoder::with_products(&file, products).unwrap();
        let mut session = Session::new(&Model::from_kernels(&decoder.graph(false).unwrap()).unwrap());
        let mut state: Vec<(String, HostTensor)> = Vec::new();
        for layer in 0..LAYERS {
            state.push((format!("keys_{layer}"), empty([GROUPS, HEAD, room])));
            state.push((format!("values_{layer}"), empty([GROUPS, room, HEAD])));
        }
        let mut sequence = decoder.sequence().unwrap();
        // One graph serves steps of all numbers of tokens.
        for count in [3, 1, 1, 2] {
            let start = sequence.len();
            let tokens = &tokens(start + count)[start..];
            let expected = decoder.extend(&mut sequence, tokens).unwrap();
            let places = start..start + count;
            let x = floats(&[count, HIDDEN], decoder.embeddings(tokens).unwrap());
            let turns = floats(&[count, HEAD / 2, 2], decoder.turns(places.clone()));
            let positions = integers(places.map(|place| place as i32).collect());
            let last = integers(vec![count as i32 - 1]);
            let mut inputs = vec![("x", &x), ("turns", &turns), ("positions", &positions), ("last", &last)];
            inputs.extend(state.iter().map(|(name, tensor)| (&**name, tensor)));
            let outputs = session.run(&inputs).unwrap();
            let expected: Vec<f64> = expected.into_iter().map(f64::from).collect();
            assert_close(outputs[0].expect::<f32>().unwrap(), &expected);
            for (name, tensor) in &mut state {
                *tensor = outputs.get(&format!("{name}_out")).unwrap().clone();
            }
        }
    }
}
