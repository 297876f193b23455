//! Functions with `#[tensor_graph]`: tuned calls, references and sessions give the same, and shapes are checked.

use tilewright::prelude::*;
use tilewright_session::{HostTensor, Model, Session};

/// x·w + b
#[tensor_kernel]
fn linear(x: &Tensor<f32, R, K>, #[constant] w: &Tensor<f32, K, N>, b: &Tensor<f32, N>) -> Tensor<f32, R, N> {
    let mut y = Tensor::zeros();
    for r in 0..R {
        for n in 0..N {
            let mut sum = 0.0;
            for k in 0..K {
                sum += x[[r, k]] * w[[k, n]];
            }
            y[[r, n]] = sum + b[[n]];
        }
    }
    y
}

/// The greater of `x` and `least`, and how much was added.
#[tensor_kernel]
fn clip<T: Number>(x: &Tensor<T, N, M>, least: T) -> (Tensor<T, N, M>, Tensor<T, N, M>) {
    let mut y = Tensor::zeros();
    let mut added = Tensor::zeros();
    for i in 0..N {
        for j in 0..M {
            y[[i, j]] = x[[i, j]].max(least);
            added[[i, j]] = x[[i, j]].max(least) - x[[i, j]];
        }
    }
    (y, added)
}

/// Sums of windows.
#[tensor_kernel]
fn windows(x: &Tensor<f32, B, S>, width: usize) -> Tensor<f32, B, { S - width + 1 }> {
    let mut y = Tensor::zeros();
    for b in 0..B {
        for s in 0..S - width + 1 {
            for k in 0..width {
                y[[b, s]] += x[[b, s + k]];
            }
        }
    }
    y
}

struct Pooling;

#[tensor_kernel]
impl Pooling {
    /// The sum over the middle dimension.
    #[tensor_kernel]
    fn sum(x: &Tensor<f32, B, S, H>) -> Tensor<f32, B, H> {
        let mut y = Tensor::zeros();
        for b in 0..B {
            for h in 0..H {
                for s in 0..S {
                    y[[b, h]] += x[[b, s, h]];
                }
            }
        }
        y
    }
}

/// The features of a token.
const WIDTH: usize = 4;

struct Layer {
    weight: Tensor<f32, 2>,
    bias: Tensor<f32, 1>,
    least: f32,
}

struct Network {
    layers: Vec<Layer>,
    width: usize,
}

/// One layer, for rows of any number.
#[tensor_graph]
fn run_layer(layer: &Layer, x: &Tensor<f32, R, K>) -> Tensor<f32, R, K> {
    let (y, _) = clip(&linear(x, &layer.weight, &layer.bias), layer.least);
    y
}

/// Every token through all layers, and the sum over tokens.
#[tensor_graph]
fn network(
    model: &Network,
    x: &Tensor<f32, B, S, { WIDTH }>,
) -> (Tensor<f32, B, 4>, Tensor<f32, B, { WIDTH - 1 }>) {
    let [batch, tokens, _] = x.shape();
    let mut y = linear(x.reshape([B * S, WIDTH]), &model.layers[0].weight, &model.layers[0].bias);
    for layer in &model.layers {
        y = run_layer(layer, &y);
    }
    let rows = batch * tokens;
    let y = y.reshape([rows / tokens, S, model.width]);
    let sums = Pooling::sum(&y);
    let neighbours = windows(&sums, 2);
    (sums, neighbours)
}

fn small(seed: usize) -> f32 {
    ((seed * 7) % 11) as f32 - 5.0
}

fn model() -> Network {
    let layer = |number: usize| Layer {
        weight: Tensor::from_fn([4, 4], |[k, n]| f32::from(u8::from((k + number) % 4 == n))).unwrap(),
        bias: Tensor::from_fn([4], |[n]| small(n + number)).unwrap(),
        least: -2.0,
    };
    Network { layers: (0..3).map(layer).collect(), width: 4 }
}

fn input(batch: usize, tokens: usize) -> Tensor<f32, 3> {
    Tensor::from_fn([batch, tokens, 4], |[b, s, h]| small(b + 3 * s + 5 * h)).unwrap()
}

fn host<const RANK: usize>(tensor: &Tensor<f32, RANK>) -> HostTensor {
    HostTensor::new(&tensor.shape(), tensor.as_slice().to_vec()).unwrap()
}

#[test]
fn a_graph_is_ordinary_rust() {
    let model = model();
    for (batch, tokens) in [(1, 1), (3, 5), (2, 16)] {
        let x = input(batch, tokens);
        let (sums, neighbours) = network(&model, &x).unwrap();
        let (expected, others) = network::reference(&model, &x).unwrap();
        assert_eq!((&sums, &neighbours), (&expected, &others));
        assert_eq!((sums.shape(), neighbours.shape()), ([batch, 4], [batch, 3]));
    }
}

#[test]
fn a_session_runs_the_recorded_graph_for_every_size() {
    let network_model = model();
    let graph = network::graph(&network_model).unwrap();
    let loaded = Model::from_kernels(&graph).unwrap();
    assert_eq!(loaded.info().inputs[0].name, "x");
    assert_eq!(loaded.info().inputs[0].ty.to_string(), "f32[B, S, 4]");
    assert_eq!(loaded.info().outputs[1].ty.to_string(), "f32[B, 3]");
    let mut session = Session::new(&loaded);
    for (batch, tokens) in [(1, 1), (3, 5), (2, 16), (3, 5), (5, 3)] {
        let x = input(batch, tokens);
        let (expected, others) = network::reference(&network_model, &x).unwrap();
        let outputs = session.run(&[("x", &host(&x))]).unwrap();
        assert_eq!(outputs[0].shape(), expected.shape());
        assert_eq!(outputs[0].expect::<f32>().unwrap(), expected.as_slice(), "{batch} {tokens}");
        assert_eq!(outputs[1].expect::<f32>().unwrap(), others.as_slice(), "{batch} {tokens}");
    }
    assert!(session.arena_bytes() > 0, "it follows a plan");
}

#[test]
fn the_interpreter_says_what_a_recorded_graph_means() {
    let model = model();
    let graph = run_layer::graph(&model.layers[0]).unwrap();
    let calls: Vec<&str> = graph
        .steps
        .iter()
        .filter_map(|step| match step {
            tilewright::graph::GraphStep::Call(call) => Some(call.kernel.name()),
            _ => None,
        })
        .collect();
    assert_eq!(calls, ["linear", "clip_f32"]);
    assert_eq!(graph.inputs.len(), 1);
    assert_eq!(graph.outputs.len(), 1);
}

#[test]
fn a_graph_names_its_kernels_at_sizes_and_how_often_it_calls_them() {
    let graph = network::graph(&model()).unwrap();
    let kernels = graph.kernels(&[("B", 2), ("S", 16)]).unwrap();
    let found: Vec<_> = kernels.iter().map(|one| (one.kernel.name(), one.named_dims(), one.calls)).collect();
    assert_eq!(found[0], ("linear", vec![("R", 32), ("K", 4), ("N", 4)], 4));
    assert_eq!(found[1], ("clip_f32", vec![("N", 32), ("M", 4)], 3));
    assert_eq!(found[2].1, [("B", 2), ("S", 16), ("H", 4)]);
    assert_eq!(found[3], ("windows", vec![("B", 2), ("S", 4), ("width", 2)], 1));
    let error = graph.kernels(&[("B", 2)]).unwrap_err().to_string();
    assert!(error.contains("graph `network`: (B * S) has no size where B = 2"), "{error}");
}

#[test]
fn the_kernels_of_a_graph_are_tuned_together() {
    let graph = network::graph(&model()).unwrap();
    let sizes: [&[(&str, i64)]; 2] = [&[("B", 1), ("S", 8)], &[("B", 2), ("S", 4)]];
    let budget = tilewright::tuning::Budget::trials(12);
    let coverage = tilewright::tuning::Tuner::new().tune_graph(&graph, &sizes, budget).unwrap();
    // Rows are equally many at both sizes, so that the layers are one task each.
    assert_eq!(coverage.tasks.len(), 6);
    assert!(coverage.tasks.iter().all(|task| task.result.is_ok()), "{coverage}");
}

/// Fixed sizes that do not fit, which the compiler does not see.
#[tensor_graph]
fn misfit(x: &Tensor<f32, N, 3>, w: &Tensor<f32, M, 4>, b: &Tensor<f32, M>) -> Tensor<f32, N, M> {
    linear(x, w.reshape([4, M]), b)
}

/// Sizes that fit for some calls only.
#[tensor_graph]
fn hopeful(x: &Tensor<f32, N, K>, w: &Tensor<f32, L, M>, b: &Tensor<f32, M>) -> Tensor<f32, N, M> {
    linear(x, w, b)
}

/// A result of another shape than it says.
#[tensor_graph]
fn boastful(x: &Tensor<f32, N, K>, w: &Tensor<f32, K, M>, b: &Tensor<f32, M>) -> Tensor<f32, N, 7> {
    linear(x, w, b)
}

#[test]
fn shapes_are_checked_across_calls() {
    let zeros = |rows, columns| Tensor::<f32, 2>::zeros([rows, columns]).unwrap();
    let b = Tensor::<f32, 1>::zeros([5]).unwrap();
    let error = misfit::graph().unwrap_err().to_string();
    assert_eq!(error, "kernel `linear`, argument `w`: dimension 0 (`K`) is 4, expected 3");
    let error = misfit(&zeros(2, 4), &zeros(5, 4), &b).unwrap_err().to_string();
    assert_eq!(error, "graph `misfit`, argument `x`: dimension 1 (`3`) is 4, expected 3");

    assert!(hopeful(&zeros(2, 4), &zeros(4, 5), &b).is_ok());
    let graph = hopeful::graph().unwrap();
    let error = Model::from_kernels(&graph).err().expect("K and L are two names").to_string();
    assert!(error.contains("kernel `linear`, argument `w`: dimension 0 (`K`) is L, expected K"), "{error}");

    let error = boastful(&zeros(2, 4), &zeros(4, 5), &b).unwrap_err().to_string();
    assert_eq!(error, "graph `boastful`, the result: dimension 1 (`7`) is 5, expected 7");
    let error = Model::from_kernels(&boastful::graph().unwrap()).err().expect("M is no 7").to_string();
    assert!(error.contains("the result: dimension 1"), "{error}");
}

/// Adds `x` to sums, and gives the greater of both.
#[tensor_kernel]
fn accumulate(sums: &mut Tensor<f32, N>, x: &Tensor<f32, N>) -> Tensor<f32, N> {
    let mut greater = Tensor::zeros();
    for i in 0..N {
        sums[[i]] = sums[[i]] + x[[i]];
    }
    for i in 0..N {
        greater[[i]] = sums[[i]].max(x[[i]]);
    }
    greater
}

/// Stores a row at a place of a table.
#[tensor_kernel]
fn store(table: &mut Tensor<f32, C, N>, row: &Tensor<f32, N>, at: &Tensor<i32, 1>) {
    for i in 0..N {
        table[[at[[0]] as usize, i]] = row[[i]];
    }
}

/// Doubles in place.
#[tensor_graph]
fn double(x: &mut Tensor<f32, N>) {
    let old = x.clone();
    accumulate(x, &old);
}

/// Keeps sums, and rows of tables.
#[tensor_graph]
fn remember(
    bias: &Tensor<f32, N>,
    x: &Tensor<f32, N>,
    at: &Tensor<i32, 1>,
    sums: &mut Tensor<f32, N>,
    tables: &mut [Tensor<f32, C, N>],
) -> (Tensor<f32, N>, Tensor<f32, { C - 1 }>) {
    let mut greater = accumulate(sums, x);
    for table in tables.iter_mut() {
        store(table, sums, at);
        greater = accumulate(sums, &greater);
        accumulate(&mut greater, bias);
    }
    double(&mut greater);
    let heights = windows(&column_sums(&tables[0]).reshape([1, C]), 2);
    (greater, heights.reshape([C - 1]))
}

/// The sum of each row.
#[tensor_kernel]
fn column_sums(table: &Tensor<f32, C, N>) -> Tensor<f32, C> {
    let mut y = Tensor::zeros();
    for c in 0..C {
        for n in 0..N {
            y[[c]] += table[[c, n]];
        }
    }
    y
}

/// The arguments that `remember` updates.
type State = (Tensor<f32, 1>, Vec<Tensor<f32, 2>>);

fn state(rows: usize, width: usize) -> State {
    let table = |number: usize| Tensor::from_fn([rows, width], |[c, n]| small(number + c + 7 * n)).unwrap();
    (Tensor::from_fn([width], |[n]| small(n + 3)).unwrap(), (0..2).map(table).collect())
}

#[test]
fn a_graph_updates_tensors_and_lists_of_them() {
    let graph = remember::graph(2).unwrap();
    let loaded = Model::from_kernels(&graph).unwrap();
    let named = |list: &[tilewright_session::Port]| -> Vec<String> {
        list.iter().map(|value| value.name.clone()).collect()
    };
    assert_eq!(named(&loaded.info().inputs), ["bias", "x", "at", "sums", "tables_0", "tables_1"]);
    let outputs = ["output_0", "output_1", "sums_out", "tables_0_out", "tables_1_out"];
    assert_eq!(named(&loaded.info().outputs), outputs);
    let mut session = Session::new(&loaded);
    for width in [1, 5, 16] {
        let (mut tuned, mut reference) = (state(7, width), state(7, width));
        let mut kept = state(7, width);
        let bias = Tensor::from_fn([width], |[n]| small(2 * n)).unwrap();
        for step in 0..3 {
            let x = Tensor::from_fn([width], |[n]| small(n + step)).unwrap();
            let at = Tensor::from_slice(&[step as i32 * 2], [1]).unwrap();
            let found = remember(&bias, &x, &at, &mut tuned.0, &mut tuned.1).unwrap();
            let expected = remember::reference(&bias, &x, &at, &mut reference.0, &mut reference.1).unwrap();
            assert_eq!((&found, &tuned), (&expected, &reference), "width {width}, step {step}");

            let inputs = [
                ("bias", host(&bias)),
                ("x", host(&x)),
                ("at", HostTensor::new(&[1], at.as_slice().to_vec()).unwrap()),
                ("sums", host(&kept.0)),
                ("tables_0", host(&kept.1[0])),
                ("tables_1", host(&kept.1[1])),
            ];
            let inputs: Vec<(&str, &HostTensor)> = inputs.iter().map(|(name, x)| (*name, x)).collect();
            let outputs = session.run(&inputs).unwrap();
            let numbers = |place: usize| outputs[place].expect::<f32>().unwrap();
            assert_eq!(numbers(0), expected.0.as_slice());
            assert_eq!(numbers(1), expected.1.as_slice());
            kept.0 = Tensor::from_slice(numbers(2), [width]).unwrap();
            kept.1 = (3..5).map(|place| Tensor::from_slice(numbers(place), [7, width]).unwrap()).collect();
            assert_eq!(kept, reference);
        }
    }
}

/// A graph that hands on its tensors as they are.
#[tensor_graph]
fn untouched(x: &Tensor<f32, N>, state: &mut Tensor<f32, N>, busy: bool) -> (Tensor<f32, N>, Tensor<f32, N>) {
    if busy {
        double(state);
    }
    let sum = scaled(x, 2.0);
    (sum.clone(), sum)
}

#[tensor_kernel]
fn scaled(x: &Tensor<f32, N>, factor: f32) -> Tensor<f32, N> {
    let mut y = Tensor::zeros();
    for i in 0..N {
        y[[i]] = factor * x[[i]];
    }
    y
}

#[test]
fn inputs_and_outputs_of_one_tensor_keep_their_names() {
    let loaded = Model::from_kernels(&untouched::graph(false).unwrap()).unwrap();
    let info = loaded.info();
    let inputs: Vec<&str> = info.inputs.iter().map(|port| &*port.name).collect();
    let outputs: Vec<&str> = info.outputs.iter().map(|port| &*port.name).collect();
    assert_eq!(
        (&inputs[..], &outputs[..]),
        (&["x", "state"][..], &["output_0", "output_1", "state_out"][..])
    );
    let numbers = |numbers: [f32; 2]| HostTensor::new(&[2], numbers.to_vec()).unwrap();
    let (x, state) = (numbers([1.0, 2.0]), numbers([3.0, 4.0]));
    let outputs = Session::new(&loaded).run(&[("x", &x), ("state", &state)]).unwrap();
    for (name, expected) in [("output_0", [2.0, 4.0]), ("output_1", [2.0, 4.0]), ("state_out", [3.0, 4.0])] {
        assert_eq!(outputs.get(name).unwrap().expect::<f32>().unwrap(), expected, "{name}");
    }
}

#[test]
fn an_empty_list_gives_a_dimension_no_size() {
    let vector = |length: usize| Tensor::<f32, 1>::zeros([length]).unwrap();
    let at = Tensor::from_slice(&[0], [1]).unwrap();
    let error = remember(&vector(4), &vector(4), &at, &mut vector(4), &mut []).unwrap_err().to_string();
    let expected = "graph `remember`, argument `tables`: an empty list gives the dimension `C` no size";
    assert_eq!(error, expected);
}
